/** Names as they were typed at a login: anything at all. */

/** Longest e-mail address that SMTP carries (RFC 5321, section 4.5.3.1), plus room: nobody has a longer name. */
export const MAX_NAME_LENGTH = 320;

/** As the audit log keeps it: what the database has no place for is replaced, and a name that is too long is cut. */
export function shownName(typed: string): string {
  return kept(typed.slice(0, MAX_NAME_LENGTH));
}

/** Text that comes from elsewhere, as the database can keep it. */
export function kept(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\u{fffd}');
}
