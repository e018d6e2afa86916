/**
 * The form of Postern's access tokens, before anything in them is trusted. It is stricter than RFC 7515: one
 * serialization (compact), one header text, one encoding of each byte. A text in any other form is not a token of ours.
 */

interface TokenParts {
  readonly kid: string;
  readonly payload: string;
}

/** A P-256 signature in the form of RFC 7518, section 3.4: R and S, 32 bytes each. DER has another length. */
const SIGNATURE_BYTES = 64;
const MAX_TOKEN_BYTES = 8192;

/**
 * `alg`, `typ`, `kid` and no other member: no `crit`, `zip`, `b64`, `jwk`, `jku`, `x5u` or `x5c`, and no member twice.
 */
const HEADER = /^\{"alg":"ES256","typ":"at\+jwt","kid":"([0-9A-Za-z_-]{43})"\}$/;

export function tokenHeader(kid: string): { readonly alg: 'ES256'; readonly typ: 'at+jwt'; readonly kid: string } {
  return { alg: 'ES256', typ: 'at+jwt', kid };
}

/** Reports whether the header of a token is the text that `tokenHeader` makes. */
export function hasOwnHeader(token: string): boolean {
  const header = decodeCanonical(token.slice(0, Math.max(0, token.indexOf('.'))));
  return header !== undefined && HEADER.test(header.toString('latin1'));
}

/** Returns the parts of a token in this form; undefined for any other text. */
export function readTokenForm(token: string): TokenParts | undefined {
  if (token.length > MAX_TOKEN_BYTES) {
    return undefined;
  }
  const [header, payload, signature, ...more] = token.split('.', 4).map(decodeCanonical);
  if (header === undefined || payload === undefined || signature === undefined || more.length > 0) {
    return undefined;
  }
  const kid = HEADER.exec(header.toString('latin1'))?.[1];
  if (kid === undefined || signature.length !== SIGNATURE_BYTES || signature.every((byte) => byte === 0)) {
    return undefined;
  }
  return { kid, payload: payload.toString('utf8') };
}

/** Encodes a header or claims as a part of a JWT. */
export function encodedPart(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

/** Decodes base64url without padding. Returns undefined for a text that is not the canonical encoding of its bytes. */
export function decodeCanonical(segment: string): Buffer | undefined {
  const bytes = Buffer.from(segment, 'base64url');
  return bytes.toString('base64url') === segment ? bytes : undefined;
}
