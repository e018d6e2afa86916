/**
 * The form of an access token of ours, before anything in it is believed. Stricter than RFC 7515 allows a verifier to be: one
 * serialisation (compact), one header text, one way to write each byte. What we did not write ourselves has no other form to hide in.
 */

export interface TokenParts {
  readonly kid: string;
  readonly payload: string;
}

/** A P-256 signature as RFC 7518, section 3.4 writes it: R and S, 32 bytes each. DER has another length. */
const SIGNATURE_BYTES = 64;
const MAX_TOKEN_BYTES = 8192;

/** `alg`, `typ`, `kid` and nothing else: no `crit`, `zip`, `b64`, `jwk`, `jku`, `x5u` or `x5c` to misunderstand, no member twice. */
const HEADER = /^\{"alg":"ES256","typ":"at\+jwt","kid":"([0-9A-Za-z_-]{43})"\}$/;

export function tokenHeader(kid: string): { readonly alg: 'ES256'; readonly typ: 'at+jwt'; readonly kid: string } {
  return { alg: 'ES256', typ: 'at+jwt', kid };
}

/** The parts of a token of that form; undefined for any other text. */
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

/** Base64url without padding; undefined when another text would decode to the same bytes and this one is not what encoding gives. */
function decodeCanonical(segment: string): Buffer | undefined {
  const bytes = Buffer.from(segment, 'base64url');
  return bytes.toString('base64url') === segment ? bytes : undefined;
}
