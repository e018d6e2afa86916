import { generateKeyPairSync } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { validateKeySet } from '../../src/identity/issuer-keys.ts';
import { makeIssuerKey } from '../support/issuer.ts';

type Jwk = Readonly<Record<string, unknown>>;

const rsa = (bits: number): Jwk => ({
  ...generateKeyPairSync('rsa', { modulusLength: bits }).publicKey.export({ format: 'jwk' }),
});
const RSA = makeIssuerKey('RS256', 'rsa').jwk;
const EC = makeIssuerKey('ES256', 'ec').jwk;
const ED = makeIssuerKey('EdDSA', 'ed').jwk;
const SMALL_RSA = rsa(1024);

function without({ ...key }: Record<string, unknown>, ...names: readonly string[]): Jwk {
  for (const name of names) delete key[name];
  return key;
}

const keysOf = (keys: readonly unknown[], kind: 'oidc' | 'spiffe' = 'oidc'): readonly Jwk[] => {
  const result = validateKeySet({ keys }, kind);
  return result.kind === 'ok' ? result.keys : [];
};
const messageOf = (value: unknown, kind: 'oidc' | 'spiffe' = 'oidc'): string => {
  const result = validateKeySet(value, kind);
  return result.kind === 'error' ? result.message : 'accepted';
};

test.each(['RS256', 'PS384', 'ES256', 'ES384', 'ES512', 'EdDSA'] as const)('a public key for %s is kept', (alg) => {
  const { jwk } = makeIssuerKey(alg);
  expect(keysOf([jwk])).toEqual([jwk]);
  expect(keysOf([without(jwk, 'use', 'alg')])).toEqual([without(jwk, 'alg')]);
  expect(keysOf([without(jwk, 'kid')])).toEqual([without(jwk, 'kid')]);
});

test('only the public members of a key are kept', () => {
  const decorated = {
    ...RSA,
    x5c: ['MIIB'],
    x5t: 'x',
    issuer: 'x',
    key_ops: ['verify', 'wrapKey'],
    jku: 'https://a.example',
  };
  expect(keysOf([decorated])).toEqual([RSA]);
});

describe('an entry that cannot verify tokens is left out, and a set without another entry is an error', () => {
  const big = (bytes: number): string => Buffer.alloc(bytes, 0xff).toString('base64url');
  const shifted = (key: Jwk, name: string): Jwk => ({ ...key, [name]: Buffer.alloc(32, 7).toString('base64url') });
  test.each<readonly [what: string, key: Jwk]>([
    ['a symmetric key', { kty: 'oct', k: 'c2VjcmV0', kid: 's', alg: 'HS256' }],
    ['a key for encryption', { ...RSA, use: 'enc' }],
    ['an unknown use', { ...RSA, use: 'jwt-svid' }],
    ['operations without verify', { ...RSA, key_ops: ['encrypt'] }],
    ['operations that are no list', { ...RSA, key_ops: 'verify' }],
    ['RSA of 1024 bits', SMALL_RSA],
    [
      'RSA of 2047 bits',
      { kty: 'RSA', e: 'AQAB', n: Buffer.concat([Buffer.of(0x7f), Buffer.alloc(255, 0xff)]).toString('base64url') },
    ],
    [
      'RSA of 1024 bits behind zeros',
      {
        ...SMALL_RSA,
        n: Buffer.concat([Buffer.alloc(256), Buffer.from(String(SMALL_RSA['n']), 'base64url')]).toString('base64url'),
      },
    ],
    ['RSA of 8200 bits', { kty: 'RSA', e: 'AQAB', n: big(1025) }],
    ['the exponent 1, which accepts every signature', { ...RSA, e: 'AQ' }],
    ['the exponent 0', { ...RSA, e: 'AA' }],
    ['an even exponent', { ...RSA, e: 'AQAA' }],
    ['a large exponent', { ...RSA, e: big(8) }],
    ['RSA without a modulus', without(RSA, 'n')],
    ['a modulus in standard base64', { ...RSA, n: `${String(RSA['n']).slice(0, -2)}+/` }],
    ['a modulus that is a number', { ...RSA, n: 2 ** 40 }],
    ['an algorithm of encryption', { ...RSA, alg: 'RSA-OAEP' }],
    ['an algorithm of another type', { ...RSA, alg: 'ES256' }],
    ['an algorithm of another curve', { ...EC, alg: 'ES384' }],
    ['a symmetric algorithm', { ...RSA, alg: 'HS256' }],
    ['no algorithm', { ...RSA, alg: 'none' }],
    ['an algorithm that is no text', { ...RSA, alg: ['RS256'] }],
    ['a point that is not on the curve', shifted(EC, 'y')],
    ['a point without y', without(EC, 'y')],
    ['another curve', { ...EC, crv: 'secp256k1', alg: undefined }],
    ['a curve of another type', { ...ED, kty: 'EC' }],
    ['an inherited name as curve', { kty: 'EC', crv: 'constructor', x: 'AA', y: 'AA' }],
    ['a key agreement', { kty: 'OKP', crv: 'X25519', x: ED['x'] }],
    ['Ed25519 of 31 bytes', { ...ED, x: Buffer.alloc(31, 1).toString('base64url') }],
    ['an unknown type', { kty: 'AKP', alg: 'ML-DSA-44', pub: 'AA' }],
    ['no type', without(RSA, 'kty')],
    ['a kid that is no text', { ...RSA, kid: 1 }],
    ['an empty kid', { ...RSA, kid: '' }],
    ['a long kid', { ...RSA, kid: 'k'.repeat(513) }],
    ['a kid with NUL', { ...RSA, kid: 'a\0b' }],
    ['a kid with an unpaired surrogate', { ...RSA, kid: 'a\ud800' }],
  ])('%s', (_what, key) => {
    expect(messageOf({ keys: [key] })).toMatch(/no key that can verify tokens/);
    expect(keysOf([key, EC])).toEqual([EC]);
  });
});

test.each<readonly [what: string, value: unknown, message: RegExp]>([
  ['no object', [], /must be an object/],
  ['null', null, /must be an object/],
  ['a text', 'keys', /must be an object/],
  ['keys that are no list', { keys: { 0: RSA } }, /must be an object/],
  ['an empty list', { keys: [] }, /no key that can verify/],
  ['a key that is no object', { keys: [RSA, 'key'] }, /must be an object/],
  ['101 keys', { keys: Array(101).fill(RSA) }, /at most 100 keys/],
  ['10,000 keys', { keys: Array(10_000).fill(RSA) }, /at most 100 keys/],
  ['a private RSA key', { keys: [{ ...RSA, d: 'AA' }] }, /private key/],
  ['a private key beside others', { keys: [RSA, { ...EC, d: 'AA' }] }, /private key/],
  ['a prime of a private key', { keys: [{ ...RSA, p: 'AA' }] }, /private key/],
  ['two keys with one kid', { keys: [RSA, { ...EC, kid: RSA['kid'] }] }, /same `kid`/],
  [
    'two keys of one type with one kid',
    { keys: [RSA, { ...makeIssuerKey('RS256').jwk, kid: RSA['kid'] }] },
    /same `kid`/,
  ],
])('%s is an error', (_what, value, message) => {
  expect(messageOf(value)).toMatch(message);
});

test('a key that occurs twice is kept once, and once for each algorithm', () => {
  expect(keysOf([RSA, { ...RSA, issuer: 'another member' }])).toEqual([RSA]);
  const other = { ...RSA, alg: 'RS512' };
  expect(keysOf([RSA, other])).toEqual([RSA, other]);
});

test('a set may have 100 keys', () => {
  const keys = Array.from({ length: 100 }, (_, index) => ({ ...ED, kid: String(index) }));
  expect(keysOf(keys)).toEqual(keys);
});

describe('a SPIFFE bundle', () => {
  const svid = (key: Jwk): Jwk => ({ ...key, use: 'jwt-svid' });

  test('keys for JWT-SVIDs are kept as keys for signatures, others are ignored', () => {
    const x509 = { ...EC, kid: undefined, use: 'x509-svid', x5c: ['MIIB'] };
    const bundle = { spiffe_sequence: 12, spiffe_refresh_hint: 300, keys: [x509, svid(RSA), svid(EC)] };
    expect(validateKeySet(bundle, 'spiffe')).toEqual({ kind: 'ok', keys: [RSA, EC] });
  });

  test.each<readonly [what: string, key: Jwk]>([
    ['use sig', RSA],
    ['no use', without(RSA, 'use')],
    ['no kid', without(svid(RSA), 'kid')],
    ['a weak key', { ...svid(SMALL_RSA), kid: 'weak' }],
  ])('a key with %s is left out', (_what, key) => {
    expect(messageOf({ keys: [key] }, 'spiffe')).toMatch(/The bundle has no key/);
  });
});

test('any JSON gives a result, and each kept key verifies for one type with public members only', () => {
  const member = fc.oneof(fc.constantFrom<unknown>(RSA['n'], EC['x'], EC['y'], ED['x'], 'AQAB', 'AQ'), fc.jsonValue());
  const key = fc.oneof(
    fc.constantFrom(RSA, EC, ED),
    fc.record(
      {
        kty: fc.oneof(fc.constantFrom('RSA', 'EC', 'OKP', 'oct'), fc.jsonValue()),
        crv: fc.oneof(fc.constantFrom('P-256', 'Ed25519', '__proto__'), fc.jsonValue()),
        alg: fc.constantFrom('RS256', 'ES256', 'EdDSA', 'HS256', 'none'),
        use: fc.constantFrom('sig', 'enc'),
        n: member,
        e: member,
        x: member,
        y: member,
        d: member,
      },
      { requiredKeys: ['kty'] },
    ),
  );
  const set = fc.oneof(fc.record({ keys: fc.array(fc.oneof(key, fc.jsonValue()), { maxLength: 4 }) }), fc.jsonValue());
  fc.assert(
    fc.property(set, fc.constantFrom('oidc' as const, 'spiffe' as const), (value, kind) => {
      const result = validateKeySet(value, kind);
      if (result.kind === 'error') return;
      expect(result.keys.length).toBeGreaterThan(0);
      for (const kept of result.keys) {
        const names = Object.keys(kept).filter((name) => !['kid', 'alg', 'use', 'kty'].includes(name));
        expect([
          ['n', 'e'],
          ['crv', 'x', 'y'],
          ['crv', 'x'],
        ]).toContainEqual(names);
        expect(kept['use']).toBe('sig');
      }
    }),
  );
});
