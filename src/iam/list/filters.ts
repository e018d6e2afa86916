/** SQL conditions by the members of a filter. The bindings of a statement have the names of the members. */
export type FilterConditions<Filter> = Readonly<Record<keyof Filter & string, string>>;

/** Returns the conditions of the members that a filter has. */
export function filterConditions<Filter extends object>(
  conditions: FilterConditions<Filter>,
  filter: Filter,
): readonly string[] {
  const given = new Map(Object.entries(filter));
  return Object.entries<string>(conditions).flatMap(([name, sql]) => (given.get(name) === undefined ? [] : [sql]));
}
