/**
 * The form of the tokens of other issuers: a JWS in the compact serialization (RFC 7515) whose payload is a JSON
 * object. Nothing in it is trusted. It is stricter than RFC 7515: one encoding of each byte, no member twice at any
 * depth, and no extension that changes how the token is read.
 */

import { isUtf8 } from 'node:buffer';
import { hasNameWithFinalBackslash, isObject } from '../domain/json.ts';
import { MAX_SUBJECT_LENGTH } from '../domain/records.ts';
import { isStorable } from '../domain/storable.ts';
import { normalTokenType } from '../domain/token-types.ts';
import { type Claims, claimValue } from './claims.ts';
import { decodeCanonical } from './token-form.ts';
import { UPSTREAM_TOKEN_TYPE } from './upstream-token.ts';

/** A token of another issuer that was read and not verified. */
export interface UnverifiedToken {
  readonly token: string;
  readonly alg: string;
  readonly kid: string | undefined;
  /** In the form of `normalTokenType`; empty = absent. */
  readonly typ: string;
  /** True if the header has a member beside `alg`, `kid` and `typ`. Such members are ignored. */
  readonly hasOtherHeaders: boolean;
  readonly claims: Claims;
  /** The values by which its issuer is found, in order: `iss`, then the SPIFFE trust domain of `sub`. */
  readonly issuers: readonly string[];
}

const MAX_ISSUER_TOKEN_BYTES = 16_384;
const MAX_DEPTH = 32;
/** Longest value of `iss` that is looked up. */
const MAX_ISSUER_LENGTH = 512;
const MAX_KID_LENGTH = 1024;

/** Each changes the meaning of the token, or demands to be understood. */
const REFUSED_HEADERS = ['crit', 'zip', 'b64', 'enc'];
const KNOWN_HEADERS: ReadonlySet<string> = new Set(['alg', 'kid', 'typ']);

/** A SPIFFE ID (SPIFFE-ID, section 2): the trust domain, and at least one segment of a path. */
const SPIFFE_ID = /^(spiffe:\/\/[a-z0-9._-]{1,255})(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._-]+)+$/;

type ReadToken =
  | { readonly kind: 'token'; readonly token: UnverifiedToken }
  | { readonly kind: 'malformed'; readonly problem: string };

/** Reads a token. The text of a problem is for the administrator who tests an issuer. */
export function parseIssuerToken(token: string): ReadToken {
  if (token.length > MAX_ISSUER_TOKEN_BYTES) return malformed('The token is longer than 16 KiB.');
  const segments = token.split('.', 4);
  const [head = '', payload = '', signature = ''] = segments;
  if (segments.length !== 3) return malformed('The token does not have the three parts of a signed JWT.');
  if (signature === '' || decodeCanonical(signature) === undefined)
    return malformed('The signature is missing, or is not base64url.');
  const header = decodeObject(head);
  const claims = decodeObject(payload);
  if (header === undefined) return malformed(`The header ${NO_OBJECT}`);
  if (claims === undefined) return malformed(`The payload ${NO_OBJECT}`);
  return read(token, header, claims);
}

const NO_OBJECT = 'is not base64url of a JSON object in UTF-8 with each member once and at most 32 levels of nesting.';

function read(token: string, header: Claims, claims: Claims): ReadToken {
  const refused = REFUSED_HEADERS.find((name) => Object.hasOwn(header, name));
  if (refused !== undefined) return malformed(`The header has the member ${refused}.`);
  const { alg, kid, typ } = ownMembers(header);
  if (typeof alg !== 'string') return malformed('The header has no text in alg.');
  if (kid !== undefined && (typeof kid !== 'string' || kid.length > MAX_KID_LENGTH))
    return malformed('The kid is no text, or longer than 1,024 characters.');
  if (typ !== undefined && (typeof typ !== 'string' || typ === ''))
    return malformed('The typ is no text, or an empty one.');
  const type = normalTokenType(typ ?? '');
  if (type === UPSTREAM_TOKEN_TYPE) return malformed('Tokens for the upstream are not accepted.');
  const iss = claimValue(claims, 'iss');
  if (iss !== undefined && typeof iss !== 'string') return malformed('The iss is no text.');
  const hasOtherHeaders = Object.keys(header).some((name) => !KNOWN_HEADERS.has(name));
  const issuers = [iss, trustDomainOf(claims)].flatMap((value) =>
    value !== undefined && isIssuer(value) ? [value] : [],
  );
  return { kind: 'token', token: { token, alg, kid, typ: type, hasOtherHeaders, claims, issuers } };
}

const malformed = (problem: string): ReadToken => ({ kind: 'malformed', problem });

function ownMembers(header: Claims): { readonly alg: unknown; readonly kid: unknown; readonly typ: unknown } {
  return { alg: claimValue(header, 'alg'), kid: claimValue(header, 'kid'), typ: claimValue(header, 'typ') };
}

function isIssuer(value: string): boolean {
  return value !== '' && value.length <= MAX_ISSUER_LENGTH && isStorable(value);
}

/** Returns `spiffe://<trust domain>` if `sub` is a SPIFFE ID; otherwise undefined. */
export function trustDomainOf(claims: Claims): string | undefined {
  const sub = claimValue(claims, 'sub');
  return typeof sub === 'string' && sub.length <= MAX_SUBJECT_LENGTH ? SPIFFE_ID.exec(sub)?.[1] : undefined;
}

function decodeObject(segment: string): Claims | undefined {
  const bytes = decodeCanonical(segment);
  return bytes !== undefined && isUtf8(bytes) ? parseStrict(bytes.toString('utf8')) : undefined;
}

/** Reports whether the header or the payload of a token has a name that must not be parsed. */
export function hasUnreadableName(token: string): boolean {
  const parts = token.split('.', 2).map((part) => Buffer.from(part, 'base64url').toString());
  return parts.some(hasNameWithFinalBackslash);
}

const STRINGS = /"(?:[^"\\]|\\.)*"/g;

/**
 * Parses a JSON object. Returns undefined for any other text, if an object at any depth has a member twice or one whose
 * name ends with a backslash, or beyond `MAX_DEPTH`. JSON.parse keeps the last of equal members, so the text then has
 * more colons than the value has members.
 */
function parseStrict(text: string): Claims | undefined {
  const value = parsed(text);
  if (!isObject(value)) return undefined;
  const colons = text.replace(STRINGS, '').split(':').length - 1;
  return countMembers(value, MAX_DEPTH) === colons ? value : undefined;
}

function parsed(text: string): unknown {
  if (hasNameWithFinalBackslash(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Counts the members of all objects in the value. Returns NaN if it is nested deeper than `depth`. */
function countMembers(value: unknown, depth: number): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (depth === 0) return Number.NaN;
  const values = Object.values(value);
  const inner = values.reduce<number>((sum, item) => sum + countMembers(item, depth - 1), 0);
  return inner + (Array.isArray(value) ? 0 : values.length);
}
