/** What differs between two views of one thing, member by member. */

import { isDeepStrictEqual } from 'node:util';
import type { View } from './view.ts';

export interface MemberChange {
  /** Such as `permissions` or `quotas.max_users`. */
  readonly member: string;
  /** Undefined = absent. */
  readonly before: unknown;
  readonly after: unknown;
}

/** Of objects each member by itself, so that a change of one setting reads as that. */
export function difference(before: View, after: View): readonly MemberChange[] {
  const old = flat(before);
  const now = flat(after);
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((member) => !isDeepStrictEqual(old[member], now[member]))
    .map((member) => ({ member, before: old[member], after: now[member] }));
}

function flat(view: View): View {
  return Object.fromEntries(
    Object.entries(view).flatMap(([name, value]) =>
      isMembers(value) ? Object.entries(value).map(([inner, part]) => [`${name}.${inner}`, part]) : [[name, value]],
    ),
  );
}

function isMembers(value: unknown): value is View {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
