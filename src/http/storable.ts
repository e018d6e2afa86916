/**
 * Text that cannot be stored: with NUL, which PostgreSQL rejects, or with an unpaired surrogate. Names of members count
 * as well.
 */

import { pointerTo } from '../domain/json.ts';
import { isStorable } from '../domain/storable.ts';

const MAX_FOUND = 50;

/**
 * Finds text in a value that cannot be stored.
 * @returns at most 50 JSON pointers (RFC 6901), in the order of the value
 */
export function unstorable(value: unknown): readonly string[] {
  const found: string[] = [];
  search(value, [], found);
  return found;
}

/** `path` holds the names and indices that lead to `value`. A pointer is built only for a finding. */
function search(value: unknown, path: (string | number)[], found: string[]): void {
  if (found.length >= MAX_FOUND) return;
  if (typeof value === 'string') {
    if (!isStorable(value)) found.push(pointerTo(...path));
  } else if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      path.push(i);
      search(value[i], path, found);
      path.pop();
    }
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, member] of Object.entries(value)) {
      path.push(name);
      search(isStorable(name) ? member : name, path, found);
      path.pop();
    }
  }
}
