/** At most this many characters. */
export const MAX_NAME = 63;
const NAME = /^[a-z][a-z0-9_-]*$/;

/** Reports whether the server takes the text as the name of a role, a policy or an issuer. */
export function isName(text: string): boolean {
  return text.length <= MAX_NAME && NAME.test(text);
}
