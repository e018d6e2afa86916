/** The facts of a directory or an issuer about a person, in the form that Postern stores. */

import { withoutHidden } from '../../domain/visible-text.ts';

const MAX_NAME_LENGTH = 200;
/** The addresses that the API accepts: ASCII, so that lower case is the same in every locale. */
const EMAIL = /^[!-?A-~]+@[!-?A-~]+$/;
const MAX_EMAIL_LENGTH = 254;

/** Returns the address in its stored form; undefined for a text that the API would not accept. */
export function usableEmail(text: string | undefined): string | undefined {
  const email = text?.trim().toLowerCase();
  return email !== undefined && email.length <= MAX_EMAIL_LENGTH && EMAIL.test(email) ? email : undefined;
}

/** Returns the name without control and hidden characters, at most 200 characters long; undefined if none remain. */
export function displayName(text: string | undefined): string | undefined {
  const plain = text === undefined ? undefined : withoutHidden(text.toWellFormed().replaceAll(/\p{Cc}+/gu, ' '));
  const name = plain?.trim().slice(0, MAX_NAME_LENGTH).toWellFormed().trim();
  return name === '' ? undefined : name;
}
