/** Reads the `Authorization` header: which kind of credential it carries, by form alone. Nothing is looked up here. */

import { hash } from 'node:crypto';
import { type HeaderValue, REPEATED } from '../decision/model.ts';
import type { CredentialForm } from '../domain/credential.ts';
import { API_KEY_PREFIX, digestOf, hasValidChecksum } from './api-keys.ts';

const MISSING: CredentialForm = Object.freeze({ kind: 'missing' });
const MALFORMED: CredentialForm = Object.freeze({ kind: 'malformed' });
const BAD_CHECKSUM: CredentialForm = Object.freeze({ kind: 'bad_checksum' });

/** With the first of the spaces. */
const SCHEME = 'Bearer ';
const MAX_TOKEN_BYTES = 8192;
/** More spaces than anybody sends, few enough that skipping them costs nothing. */
const MAX_SPACES = 64;
const SPACE = 0x20;
/** RFC 6750, section 2.1: b64token. A comma is not in it, so two credentials folded into one line are refused here. */
const B64TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

/** Shorter texts are no keys of any system. */
const MIN_FOREIGN_KEY_LENGTH = 8;
/** Longer than the keys of other systems. */
const MAX_FOREIGN_KEY_LENGTH = 1024;
/** How every JWT begins: `{"` in base64url. */
const JWT_START = 'eyJ';

/**
 * `Bearer` in any case (RFC 9110, section 11.1), one or more spaces, then one b64token. Everything that is not exactly that is
 * malformed. Runs on every check: no allocation beyond the token and its digest.
 */
export function readCredential(header: HeaderValue): CredentialForm {
  if (header === undefined) {
    return MISSING;
  }
  if (header === REPEATED || header.length > SCHEME.length + MAX_SPACES + MAX_TOKEN_BYTES) {
    return MALFORMED;
  }
  if (!header.startsWith(SCHEME) && header.slice(0, SCHEME.length).toLowerCase() !== SCHEME.toLowerCase()) {
    return MALFORMED;
  }
  let start = SCHEME.length;
  while (header.charCodeAt(start) === SPACE) {
    start++;
  }
  const token = header.slice(start);
  const looksLikeKey = token.startsWith(API_KEY_PREFIX);
  if (looksLikeKey && hasValidChecksum(token)) {
    return { kind: 'api_key', digest: digestOf(token) };
  }
  if (token.length > MAX_TOKEN_BYTES || !B64TOKEN.test(token)) {
    return MALFORMED;
  }
  if (looksLikeKey) {
    return BAD_CHECKSUM;
  }
  return mayBeForeignKey(token)
    ? { kind: 'api_key', digest: digestOf(token) }
    : { kind: 'token', token, digest: hash('sha256', token, 'hex') };
}

/**
 * Reports whether the text may be an imported key of another system. Such a key has no checksum, so only a lookup by digest can tell: any
 * b64token that does not begin like a JWT. Access tokens begin like one, so none of them is looked up as a key.
 */
function mayBeForeignKey(token: string): boolean {
  return token.length >= MIN_FOREIGN_KEY_LENGTH && token.length <= MAX_FOREIGN_KEY_LENGTH && !token.startsWith(JWT_START);
}
