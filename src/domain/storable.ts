/** Text that PostgreSQL can store. */

/**
 * Reports whether a text has no NUL, which PostgreSQL rejects, and no unpaired surrogate, which would be stored as
 * another text.
 */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}
