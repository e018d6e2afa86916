/** Reads the headers that carry a credential, and classifies it by form. Nothing is looked up here. */

import { hash } from 'node:crypto';
import { type HeaderValue, REPEATED } from '../decision/model.ts';
import type { CredentialForm } from '../domain/credential.ts';
import { API_KEY_PREFIX, digestOf, hasValidChecksum } from './api-keys.ts';

const MISSING: CredentialForm = Object.freeze({ kind: 'missing' });
const MALFORMED: CredentialForm = Object.freeze({ kind: 'malformed' });
const OTHER_SCHEME: CredentialForm = Object.freeze({ kind: 'other_scheme' });
const BAD_CHECKSUM: CredentialForm = Object.freeze({ kind: 'bad_checksum' });

/** Includes the first of the spaces. */
const SCHEME = 'Bearer ';
const MAX_TOKEN_BYTES = 16_384;
/** More spaces than clients send, and few enough that skipping them costs nothing. */
const MAX_SPACES = 64;
const SPACE = 0x20;
/** RFC 6750, section 2.1: b64token. It has no comma, so two credentials folded into one line are rejected here. */
const B64TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

const MIN_FOREIGN_KEY_LENGTH = 8;
/** Longer than the keys of other systems. */
const MAX_FOREIGN_KEY_LENGTH = 1024;
/** `{"` and a letter in base64url: the beginning of nearly every JWT. */
const JWT_START = 'eyJ';
/**
 * Three parts in base64url, of which the first begins with `{` and a quote, a space, a tab or a line end. The header of a
 * JWT may have white space (RFC 7515, section 3.1; RFC 8259, section 2).
 */
const SPACED_JWT = /^e(?:y[A-DI-L]|w[k-r0-3])[\w-]*\.[\w-]*\.[\w-]*$/;

/** A scheme (RFC 9110, section 11.1), and the space or the end behind it. */
const ANY_SCHEME = /^[A-Za-z0-9!#$%&'*+\-.^_`|~]+(?: |$)/;

/**
 * Reads a request's credential. More than one is malformed, except the same API key in both places, which some clients
 * send.
 *
 * @param authorization the `Authorization` header: `Bearer` in any case, one or more spaces, then one b64token
 * @param apiKey `x-api-key` or `api-key` (see `joinApiKeys`): an API key alone
 */
export function readCredential(authorization: HeaderValue, apiKey?: HeaderValue): CredentialForm {
  // Runs on every check: no allocation beyond the token and its digest.
  if (apiKey === undefined) return authorization === undefined ? MISSING : readAuthorization(authorization);
  if (apiKey === REPEATED) return MALFORMED;
  const form = formOf(apiKey);
  const isKey = form.kind === 'api_key' || form.kind === 'bad_checksum';
  return isKey && (authorization === undefined || bearerToken(authorization) === apiKey) ? form : MALFORMED;
}

/** Combines the two headers that carry an API key only; different values count as repeated. */
export function joinApiKeys(xApiKey: HeaderValue, apiKey: HeaderValue): HeaderValue {
  if (xApiKey === undefined) return apiKey;
  return apiKey === undefined || apiKey === xApiKey ? xApiKey : REPEATED;
}

function readAuthorization(header: Exclude<HeaderValue, undefined>): CredentialForm {
  const token = bearerToken(header);
  if (token !== undefined) return formOf(token);
  return header !== REPEATED && ANY_SCHEME.test(header) && !/^bearer(?: |$)/i.test(header) ? OTHER_SCHEME : MALFORMED;
}

/**
 * @returns the text after the scheme and its spaces; undefined if the scheme is not Bearer or the header is too long
 */
function bearerToken(header: Exclude<HeaderValue, undefined>): string | undefined {
  if (header === REPEATED || header.length > SCHEME.length + MAX_SPACES + MAX_TOKEN_BYTES) return undefined;
  if (!header.startsWith(SCHEME) && header.slice(0, SCHEME.length).toLowerCase() !== SCHEME.toLowerCase())
    return undefined;
  let start = SCHEME.length;
  while (header.charCodeAt(start) === SPACE) start++;
  return header.slice(start);
}

function formOf(token: string): CredentialForm {
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
 * Reports whether the text may be an imported key of another system. Such a key has no checksum, so only a lookup by
 * digest can decide. Every b64token of a permitted length qualifies unless it looks like a JWT. The server therefore
 * never looks up an access token as a key.
 */
function mayBeForeignKey(token: string): boolean {
  if (token.length < MIN_FOREIGN_KEY_LENGTH || token.length > MAX_FOREIGN_KEY_LENGTH) return false;
  return !token.startsWith(JWT_START) && !SPACED_JWT.test(token);
}
