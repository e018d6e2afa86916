/** JSON whose text says the same for equal values: members of objects in the order of their names. */

/** @param value what JSON can say; members that are undefined are absent */
export function canonicalJsonOf(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([left], [right]) => (left < right ? -1 : 1)))
      : member,
  );
}
