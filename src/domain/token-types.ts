/**
 * Types of tokens (`typ`, RFC 7515, section 4.1.9) of other issuers. An empty text is an absent type. SPIFFE's are those
 * of its JWT-SVID, section 3.
 */
export const DEFAULT_TOKEN_TYPES = {
  oidc: ['at+jwt', 'JWT', ''],
  spiffe: ['JWT', 'JOSE', ''],
} as const satisfies Readonly<Record<'oidc' | 'spiffe', readonly string[]>>;

/** Returns a type as it is compared: in lower case, without the `application/` that RFC 7515 recommends to omit. */
export function normalTokenType(type: string): string {
  const lower = type.toLowerCase();
  const rest = lower.startsWith('application/') ? lower.slice('application/'.length) : lower;
  return rest.includes('/') ? lower : rest;
}
