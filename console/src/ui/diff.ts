/** The difference between two JSON values, by member. */

export interface Difference {
  /** `conditions.weekly_hours.not_in`; empty for a value that is no object. */
  readonly path: string;
  /** Undefined: it was not there. */
  readonly before: unknown;
  /** Undefined: it is not there any more. */
  readonly after: unknown;
  readonly isChanged: boolean;
}

/**
 * Every member of both values, those of objects within objects too; lists are compared whole. In the order of the
 * second value.
 */
export function differences(before: unknown, after: unknown, path = ''): readonly Difference[] {
  if (isObject(before) || isObject(after)) {
    const was = isObject(before) ? before : {};
    const is = isObject(after) ? after : {};
    const names = [...new Set([...Object.keys(is), ...Object.keys(was)])];
    if (names.length > 0 || path === '') {
      return names.flatMap((name) => differences(was[name], is[name], path === '' ? name : `${path}.${name}`));
    }
  }
  return [{ path, before, after, isChanged: JSON.stringify(before) !== JSON.stringify(after) }];
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
