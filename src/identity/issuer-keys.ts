/**
 * The key sets of issuers (RFC 7517, SPIFFE bundles). A set is validated when it is fetched or pasted, and only
 * validated public keys are stored: a gate verifies with nothing else. Entries for another purpose are left out,
 * because issuers publish them beside the keys of their tokens.
 */

import { createPublicKey } from 'node:crypto';
import { isObject } from '../domain/json.ts';
import type { IssuerKey } from '../domain/records.ts';
import { isStorable } from '../domain/storable.ts';

type KeySetResult =
  /** At least one key. */
  | { readonly kind: 'ok'; readonly keys: readonly IssuerKey[] }
  /** One sentence without a text of the set. */
  | { readonly kind: 'error'; readonly message: string };

/** The kinds of issuers: an OpenID provider, or a SPIFFE trust domain with its bundle. */
type KeySetKind = 'oidc' | 'spiffe';

/** The largest number of entries of a set, with those that are left out. */
const MAX_KEYS = 100;
const MAX_KID_LENGTH = 512;
const MIN_RSA_BITS = 2048;
/** A larger key makes each verification dear. */
const MAX_RSA_BITS = 8192;
/** An exponent of 1 would accept every signature; a large one makes each verification dear. */
const MIN_EXPONENT = 3;
const MAX_EXPONENT = 2 ** 32;

/** The members of a public key by `kty`, and the algorithms of each type or curve. */
const RSA_ALGORITHMS: readonly string[] = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
const CURVES: Readonly<Record<string, { kty: string; algorithm: string; members: readonly string[] }>> = {
  'P-256': { kty: 'EC', algorithm: 'ES256', members: ['crv', 'x', 'y'] },
  'P-384': { kty: 'EC', algorithm: 'ES384', members: ['crv', 'x', 'y'] },
  'P-521': { kty: 'EC', algorithm: 'ES512', members: ['crv', 'x', 'y'] },
  Ed25519: { kty: 'OKP', algorithm: 'EdDSA', members: ['crv', 'x'] },
};
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth'] as const;
const BASE64URL = /^[A-Za-z0-9_-]+$/;

type Entry = Readonly<Record<string, unknown>>;

/**
 * Returns the keys of a set that can verify tokens, each with `use: sig` and its public members only. A key set with a
 * private key is an error, because everyone who read it can sign. So is a `kid` with two different keys: a token would
 * not name its key.
 * @param value the parsed JSON
 */
export function validateKeySet(value: unknown, kind: KeySetKind): KeySetResult {
  const entries = isObject(value) ? value['keys'] : undefined;
  if (!Array.isArray(entries)) return error('A key set must be an object with the member `keys`, a list.');
  if (entries.length > MAX_KEYS) return error(`A key set may have at most ${MAX_KEYS} keys.`);
  const keys: IssuerKey[] = [];
  for (const entry of entries) {
    if (!isObject(entry)) return error('Each key of a key set must be an object.');
    if (entry['kty'] !== 'oct' && PRIVATE_MEMBERS.some((name) => Object.hasOwn(entry, name)))
      return error('The key set has a private key. It must have public keys only.');
    const key = verificationKey(entry, kind);
    if (key === undefined || keys.some((other) => isSameKey(key, other) && key['alg'] === other['alg'])) continue;
    if (key['kid'] !== undefined && keys.some((other) => other['kid'] === key['kid'] && !isSameKey(key, other)))
      return error('Two different keys of the key set have the same `kid`.');
    keys.push(key);
  }
  return keys.length > 0 ? { kind: 'ok', keys } : error(NO_KEY[kind]);
}

const USABLE = `RSA of ${MIN_RSA_BITS} to ${MAX_RSA_BITS} bits, EC of P-256, P-384 or P-521, or Ed25519`;
const NO_KEY: Readonly<Record<KeySetKind, string>> = {
  oidc: `The key set has no key that can verify tokens: ${USABLE}, for signatures.`,
  spiffe: `The bundle has no key that can verify tokens: ${USABLE}, with \`use: jwt-svid\` and a \`kid\`.`,
};

function error(message: string): KeySetResult {
  return { kind: 'error', message };
}

/** Returns undefined for a key that is for another purpose, is too weak, or is not a key. */
function verificationKey(entry: Entry, kind: KeySetKind): IssuerKey | undefined {
  const { kid, alg } = { kid: entry['kid'], alg: entry['alg'] };
  if (kid === undefined ? kind === 'spiffe' : !isKeyId(kid)) return undefined;
  if (!isForTokens(entry, kind)) return undefined;
  const shape = shapeOf(entry);
  if (shape === undefined || (alg !== undefined && !(isText(alg) && shape.algorithms.includes(alg)))) return undefined;
  const members = shape.members.map((name): readonly [string, unknown] => [name, entry[name]]);
  if (!isPublicKey({ kty: entry['kty'], ...Object.fromEntries(members) })) return undefined;
  return {
    kty: entry['kty'],
    use: 'sig',
    ...(kid === undefined ? {} : { kid }),
    ...(alg === undefined ? {} : { alg }),
    ...Object.fromEntries(members),
  };
}

function isKeyId(kid: unknown): boolean {
  return isText(kid) && kid.length <= MAX_KID_LENGTH && isStorable(kid);
}

function isForTokens(entry: Entry, kind: KeySetKind): boolean {
  const { use, operations } = { use: entry['use'], operations: entry['key_ops'] };
  if (kind === 'spiffe') return use === 'jwt-svid';
  if (use !== undefined && use !== 'sig') return false;
  return operations === undefined || (Array.isArray(operations) && operations.includes('verify'));
}

/** The public members of a key beside `kty`, and the algorithms that it can verify. */
function shapeOf(
  entry: Entry,
): { readonly members: readonly string[]; readonly algorithms: readonly string[] } | undefined {
  const { kty, crv } = { kty: entry['kty'], crv: entry['crv'] };
  if (kty === 'RSA') {
    const isStrong = isStrongModulus(entry['n']) && isSoundExponent(entry['e']);
    return isStrong ? { members: ['n', 'e'], algorithms: RSA_ALGORITHMS } : undefined;
  }
  const curve = isText(crv) && Object.hasOwn(CURVES, crv) ? CURVES[crv] : undefined;
  if (curve === undefined || curve.kty !== kty) return undefined;
  const hasPoint = curve.members.every((name) => name === 'crv' || isBase64Url(entry[name]));
  return hasPoint ? { members: curve.members, algorithms: [curve.algorithm] } : undefined;
}

function isStrongModulus(n: unknown): boolean {
  const bits = bitsOf(n);
  return bits >= MIN_RSA_BITS && bits <= MAX_RSA_BITS;
}

function isSoundExponent(e: unknown): boolean {
  if (!isBase64Url(e) || bitsOf(e) > 33) return false;
  const value = Number(BigInt(`0x${Buffer.from(e, 'base64url').toString('hex') || '0'}`));
  return value >= MIN_EXPONENT && value <= MAX_EXPONENT && value % 2 === 1;
}

/** The length of an unsigned integer; 0 for anything that is not in base64url. */
function bitsOf(text: unknown): number {
  if (!isBase64Url(text)) return 0;
  const bytes = Buffer.from(text, 'base64url');
  const first = bytes.findIndex((byte) => byte !== 0);
  return first < 0 ? 0 : (bytes.length - first) * 8 - (Math.clz32(bytes[first] ?? 0) - 24);
}

/** Reports whether the cryptographic library accepts the key: a point must be on its curve. */
function isPublicKey(key: Readonly<Record<string, unknown>>): boolean {
  try {
    createPublicKey({ key, format: 'jwk' });
    return true;
  } catch {
    return false;
  }
}

function isSameKey(a: IssuerKey, b: IssuerKey): boolean {
  return ['kid', 'kty', 'crv', 'x', 'y', 'n', 'e'].every((name) => a[name] === b[name]);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isBase64Url(value: unknown): value is string {
  return typeof value === 'string' && BASE64URL.test(value);
}
