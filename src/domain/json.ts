/** JSON values. */

/** Reports whether a parsed value is an object: neither a list nor null. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns a member of an object or an item of a list; undefined for any other value, and if there is none. */
export function ownMember(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}

/** Returns the JSON pointer (RFC 6901) of names and indices. */
export function pointerTo(...steps: readonly (string | number)[]): string {
  return steps.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** Returns the names and indices of a JSON pointer. */
export function pointerSteps(pointer: string): readonly string[] {
  return (
    pointer
      .split('/')
      .slice(1)
      // `~1` first, so that `~01` becomes `~1`.
      .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
  );
}

/**
 * Returns the same text for equal values: the members of objects are in the order of their names.
 * @param value what JSON can say; members that are undefined are absent
 */
export function canonicalJsonOf(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) =>
    isObject(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([left], [right]) => (left < right ? -1 : 1)))
      : member,
  );
}

/** A string, closed or not, and the colon after it if it is the name of a member. */
const STRING = /"((?:[^"\\]|\\.)*)"?(\s*:)?/gs;

/**
 * Reports whether a name in a JSON text ends with a backslash. After JSON.parse of V8 14 has read such a name once, it
 * can read other names with an escape at the same place as that name (https://github.com/nodejs/node/issues/63785), so
 * one author could change the names that another one writes. The text need not be valid JSON.
 */
export function hasNameWithFinalBackslash(text: string): boolean {
  if (!text.includes('\\')) return false;
  return text
    .matchAll(STRING)
    .some(([, name = '', colon]) => colon !== undefined && (name.endsWith('\\') || /\\u005c$/i.test(name)));
}
