/** Objects whose members are made in one way. */

/** Returns an object with a member for each name. */
export function makeMembers<Name extends string, Value>(
  names: readonly Name[],
  make: (name: Name) => Value,
): { readonly [N in Name]: Value } {
  const made: { [N in Name]?: Value } = {};
  for (const name of names) made[name] = make(name);
  // Each name has a member now.
  return made as { [N in Name]: Value };
}

/** Returns an object with the same members, each with the value that `make` returns for it. */
export function mapMembers<Members extends object, Value>(
  members: Members,
  make: (value: Members[keyof Members]) => Value,
): { readonly [Name in keyof Members]: Value } {
  const made: { [Name in keyof Members]?: Value } = {};
  for (const name in members) made[name] = make(members[name]);
  // Each name has a member now.
  return made as { [Name in keyof Members]: Value };
}

/** Returns an object without the members that are undefined. */
export function present<Members extends object>(
  members: Members,
): { [Name in keyof Members]?: Exclude<Members[Name], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Members]?: Exclude<Members[Name], undefined>;
  };
}
