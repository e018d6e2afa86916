/**
 * Texts that cannot be stored: with NUL, which PostgreSQL has no place for, or with a lone surrogate, which is no character. Member names
 * count as the text of their member.
 */

/** Errors of one answer. */
const MAX_FOUND = 50;

/**
 * Finds texts of a value that cannot be stored, at most 50.
 * @returns their JSON pointers (RFC 6901), in the order of the value
 */
export function unstorable(value: unknown): readonly string[] {
  const found: string[] = [];
  search(value, [], found);
  return found;
}

/** `path` holds the names and indices that lead to `value`; a pointer is made of them only for what is found. */
function search(value: unknown, path: (string | number)[], found: string[]): void {
  if (found.length >= MAX_FOUND) return;
  if (typeof value === 'string') {
    if (!isStorable(value)) found.push(pointerTo(path));
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

function pointerTo(path: readonly (string | number)[]): string {
  return path.map((step) => `/${escapePointer(String(step))}`).join('');
}

export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/** One member name as a segment of a JSON pointer. */
export function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
