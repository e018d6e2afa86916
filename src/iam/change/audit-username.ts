/** Usernames of login attempts, which may be any text. */

/** The longest email address that SMTP carries (RFC 5321, section 4.5.3.1), rounded up. No username is longer. */
export const MAX_USERNAME_LENGTH = 320;

/** Returns the typed username for the audit log: storable, and cut to the maximum length. */
export function auditUsername(typed: string): string {
  return toStorableText(typed.slice(0, MAX_USERNAME_LENGTH));
}

/** Replaces what PostgreSQL cannot store in text: NUL and unpaired surrogates. */
export function toStorableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\u{fffd}');
}
