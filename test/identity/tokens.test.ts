import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { makeId, parseTenantId } from '../../src/domain/ids.ts';
import { digestOfProof } from '../../src/identity/api-keys.ts';
import { rotationTimes } from '../../src/identity/signing-key-plan.ts';
import { rotateSigningKeys, SigningKeys } from '../../src/identity/signing-keys.ts';
import { AccessTokens } from '../../src/identity/tokens.ts';
import { memoryKeyStore } from './support/memory-key-store.ts';

const SECRET = 'a secret key of more than 32 characters';
const NOW = Date.parse('2026-11-18T11:00:00Z');
const USER = makeId('usr', NOW, new Uint8Array(10));
const SESSION = makeId('ses', NOW, new Uint8Array(10));
const KEY = makeId('key', NOW, new Uint8Array(10));
const TENANT = parseTenantId('acme') ?? expect.fail('acme is a tenant id');

const time = { nowMs: NOW };
const store = memoryKeyStore();
const times = rotationTimes(3_600_000);
const keys = new SigningKeys({
  store,
  secretKey: SECRET,
  times,
  clock: () => time.nowMs,
  monotonicMs: () => 0,
  onFault: (error) => expect.fail(String(error)),
});
const parts = {
  keys,
  issuer: 'https://issuer.example',
  audience: 'platform',
  ttlSeconds: 3600,
  clock: () => time.nowMs,
};
const tokens = new AccessTokens(parts);
const TERMS = { sessionId: SESSION, tenantId: TENANT, nowMs: NOW, jti: 'jti-1' };
const issue = () => tokens.issue({ userId: USER, ...TERMS });

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const signP1363 = (input: string, key: KeyObject): string =>
  sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url');

const CLAIMS = {
  iss: 'https://issuer.example',
  aud: 'platform',
  sub: USER,
  iat: NOW / 1000,
  exp: NOW / 1000 + 3600,
  jti: 'jti-1',
  sid: SESSION,
  tenant_id: TENANT,
};
let header: { readonly alg: string; readonly typ: string; readonly kid: string };
let privateKey: KeyObject;

/**
 * Returns a token with any claims, signed with our own key: as a thief of the key, or a bug of ours, could create it.
 */
function signed(claims: unknown, head: unknown = header): string {
  const input = `${encode(head)}.${encode(claims)}`;
  return `${input}.${signP1363(input, privateKey)}`;
}

beforeAll(async () => {
  await keys.maintain();
  ({ privateKey } = keys.current());
  header = { alg: 'ES256', typ: 'at+jwt', kid: keys.current().kid };
});

describe('an access token', () => {
  it('is an ES256 at+jwt with every required claim, valid for its lifetime and the tolerance', async () => {
    const { token, expiresIn } = await issue();
    const [head = '', payload = ''] = token.split('.');
    expect(JSON.parse(Buffer.from(head, 'base64url').toString())).toEqual(header);
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toEqual(CLAIMS);
    expect(expiresIn).toBe(3600);
    expect(await tokens.verify(token)).toEqual({
      kind: 'valid',
      userId: USER,
      sessionId: SESSION,
      validFromMs: NOW - 5000,
      validUntilMs: NOW + 3_605_000,
    });
  });

  it('of a narrowed session has its scope, and nbf, which servers that do not know the scope reject', async () => {
    const { token } = await tokens.issue({ ...TERMS, userId: USER, scope: 'chat:write models:read' });
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    expect(claims).toEqual({ ...CLAIMS, scope: 'chat:write models:read', nbf: CLAIMS.iat });
    expect((await tokens.verify(token)).kind).toBe('valid');
  });

  it('of a key without a secret leads to the key by its digest', async () => {
    const { token } = await tokens.issue({ ...TERMS, keyId: KEY });
    const verified = await tokens.verify(token);
    expect(verified).toMatchObject({ kind: 'valid', sessionId: SESSION, keyDigest: digestOfProof(KEY) });
    expect(verified).not.toHaveProperty('userId');
  });

  it('lives for the shorter of the configured lifetime and that of its session', async () => {
    for (const [mostSeconds, lives] of [
      [60, 60],
      [10_000, 3600],
    ] as const) {
      const { token, expiresIn } = await tokens.issue({ ...TERMS, userId: USER, mostSeconds });
      expect(expiresIn).toBe(lives);
      expect(await tokens.verify(token)).toMatchObject({ validUntilMs: NOW + (lives + 5) * 1000 });
    }
  });

  it('can be verified with the published key set, which has no private member', () => {
    const [key] = tokens.jwks().keys;
    expect(new Set(Object.keys(key ?? {}))).toEqual(new Set(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']));
    expect(key).toMatchObject({ kty: 'EC', crv: 'P-256', use: 'sig', alg: 'ES256', kid: header.kid });
  });

  it.each([
    ['just before its expiry and the tolerance', 3_605_000 - 1, 'valid'],
    ['from its expiry and the tolerance', 3_605_000, 'expired'],
    ['at most 5 s before it was issued', -5000, 'valid'],
  ])('is judged by the clock: %s', async (_, offsetMs, kind) => {
    const { token } = await issue();
    time.nowMs = NOW + offsetMs;
    const verified = await tokens.verify(token);
    time.nowMs = NOW;
    expect(verified.kind).toBe(kind);
  });

  it('of a server whose clock is ahead has the time from which it is valid, so that its rejection is not kept', async () => {
    const { token } = await tokens.issue({ userId: USER, ...TERMS, nowMs: NOW + 31_000 });
    expect(await tokens.verify(token)).toMatchObject({ kind: 'valid', validFromMs: NOW + 26_000 });
  });

  it('is expired only when all else is right: of a wrong signature or issuer it is invalid', async () => {
    const past = { ...CLAIMS, iat: NOW / 1000 - 7200, exp: NOW / 1000 - 3600 };
    expect(await tokens.verify(signed(past))).toEqual({ kind: 'expired' });
    expect((await tokens.verify(signed({ ...past, iss: 'x' }))).kind).toBe('invalid');
    expect((await tokens.verify(`${signed(past).split('.', 2).join('.')}.${'AQ'.repeat(43)}`)).kind).toBe('invalid');
  });

  it('still verifies after a rotation, until its key is gone', async () => {
    const { token } = await issue();
    await rotateSigningKeys(store, { secretKey: SECRET, times, nowMs: time.nowMs });
    await keys.maintain();
    expect(tokens.jwks().keys).toHaveLength(2);
    expect((await tokens.verify(token)).kind).toBe('valid');
  });

  it.each([
    ['issuer', { ...parts, issuer: '' }],
    ['audience', { ...parts, audience: '' }],
    ['lifetime', { ...parts, ttlSeconds: Number.NaN }],
  ])('cannot be checked by a server without %s: it does not start', (_, incomplete) => {
    expect(() => new AccessTokens(incomplete)).toThrow(/access tokens need/);
  });
});

describe('the claims of a token, even when our own key signed them', () => {
  it.each(['iss', 'aud', 'sub', 'iat', 'exp', 'jti', 'sid', 'tenant_id'])('are refused without %s', async (claim) => {
    const claims = Object.fromEntries(Object.entries(CLAIMS).filter(([name]) => name !== claim));
    expect((await tokens.verify(signed(claims))).kind).toBe('invalid');
  });

  it.each([
    ['another issuer', { iss: 'https://issuer.example/' }],
    ['another audience', { aud: 'other' }],
    ['a list of audiences', { aud: ['platform', 'other'] }],
    ['a subject that is neither a user nor a key', { sub: SESSION }],
    ['a session id that is none', { sid: USER }],
    ['a malformed tenant', { tenant_id: 'Acme' }],
    ['an empty jti', { jti: '' }],
    ['exp as text', { exp: String(CLAIMS.exp) }],
    ['exp as null', { exp: null }],
    ['exp too large for a clock', { exp: 1e300 }],
    ['a fraction in exp', { exp: CLAIMS.exp + 0.5 }],
    ['iat as text', { iat: String(CLAIMS.iat) }],
    ['nbf', { nbf: CLAIMS.iat }],
    ['a scope without nbf', { scope: 'chat:write' }],
    ['a scope with another nbf', { scope: 'chat:write', nbf: 0 }],
  ])('are refused with %s', async (_, changes) => {
    expect((await tokens.verify(signed({ ...CLAIMS, ...changes }))).kind).toBe('invalid');
  });

  it.each([[null], ['text'], [[]], [7]])('are refused when the payload is %j', async (payload) => {
    expect((await tokens.verify(signed(payload))).kind).toBe('invalid');
  });
});

describe('a forged token is refused', () => {
  const refused = async (token: string): Promise<void> => {
    expect(['invalid', 'foreign']).toContain((await tokens.verify(token)).kind);
  };
  const headed = (changes: Record<string, unknown>): string => signed(CLAIMS, { ...header, ...changes });

  it.each(['none', 'None', 'NONE', 'nOnE'])('with alg %s, with and without a signature', async (alg) => {
    const input = `${encode({ ...header, alg })}.${encode(CLAIMS)}`;
    await refused(`${input}.`);
    await refused(input);
    await refused(headed({ alg }));
  });

  it('with HS256 keyed with our public key, in every form of it', async () => {
    const publicKey = createPublicKey(privateKey);
    const secrets = [
      publicKey.export({ format: 'pem', type: 'spki' }),
      publicKey.export({ format: 'der', type: 'spki' }),
      JSON.stringify(publicKey.export({ format: 'jwk' })),
    ];
    const input = `${encode({ ...header, alg: 'HS256' })}.${encode(CLAIMS)}`;
    for (const secret of secrets) {
      await refused(`${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`);
    }
  });

  it.each(['ES384', 'ES512', 'ES256K', 'RS256', 'PS256', 'EdDSA', 'HS256', 'es256', 'ES256 ', ''])(
    'with alg %j',
    async (alg) => {
      await refused(headed({ alg }));
    },
  );

  it.each(['JWT', 'at+JWT', 'application/at+jwt', '', undefined])('with typ %j', async (typ) => {
    await refused(headed({ typ }));
  });

  it('with a key of its own, carried or pointed to in the header', async () => {
    const own = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const jwk = own.publicKey.export({ format: 'jwk' });
    for (const extra of [
      { jwk },
      { jku: 'http://127.0.0.1:1/' },
      { x5u: 'http://127.0.0.1:1/' },
      { x5c: ['MIIB'] },
      {},
    ]) {
      const input = `${encode({ ...header, ...extra })}.${encode(CLAIMS)}`;
      await refused(`${input}.${signP1363(input, own.privateKey)}`);
    }
  });

  it.each([
    { jwk: {} },
    { jku: 'https://x.example' },
    { x5u: 'https://x.example' },
    { x5c: [] },
    { x5t: 'x' },
    { crit: ['exp'] },
    { crit: [] },
    { b64: false },
    { b64: true },
    { zip: 'DEF' },
    { cty: 'JWT' },
    { unknown: 1 },
  ])('with any other header member, even when our own key signed it: %j', async (extra) => {
    await refused(headed(extra));
  });

  it.each(['../../etc/passwd', "x' or '1'='1", '', 'x'.repeat(43), '__proto__', 7, null, undefined])(
    'with kid %j',
    async (kid) => {
      await refused(headed({ kid }));
    },
  );

  it('with a member of the header twice, or white space in it', async () => {
    const { kid } = header;
    for (const head of [
      `{"alg":"none","alg":"ES256","typ":"at+jwt","kid":"${kid}"}`,
      `{ "alg":"ES256","typ":"at+jwt","kid":"${kid}"}`,
      `{"kid":"${kid}","alg":"ES256","typ":"at+jwt"}`,
      `{"alg":"ES256","typ":"at+jwt","kid":"${kid}"}\n`,
    ]) {
      const input = `${Buffer.from(head).toString('base64url')}.${encode(CLAIMS)}`;
      await refused(`${input}.${signP1363(input, privateKey)}`);
    }
  });

  it('with a signature of zeros, of the group order, in DER, cut, doubled or empty', async () => {
    const [head = '', payload = '', signature = ''] = signed(CLAIMS).split('.');
    const input = `${head}.${payload}`;
    const order = 'ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551';
    const forged = [
      Buffer.alloc(64),
      Buffer.from(order + order, 'hex'),
      Buffer.from('00'.repeat(31) + '01'.padEnd(66, '0'), 'hex'),
      sign('sha256', Buffer.from(input), privateKey),
      Buffer.from(signature, 'base64url').subarray(0, 63),
      Buffer.from(signature + signature, 'base64url'),
      Buffer.alloc(0),
    ];
    for (const bytes of forged) {
      await refused(`${input}.${bytes.toString('base64url')}`);
    }
  });

  it('in base64url that is not canonical: other last bits, padding, line feeds, the other alphabet', async () => {
    const { token } = await issue();
    const last = token.at(-1) ?? '';
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const sibling = alphabet.charAt(alphabet.indexOf(last) ^ 1);
    expect((await tokens.verify(token)).kind).toBe('valid');
    await refused(token.slice(0, -1) + sibling);
    await refused(`${token}==`);
    await refused(`${token}\n`);
    await refused(` ${token}`);
    await refused(token.replaceAll('-', '+').replaceAll('_', '/').replace('.', '=.'));
  });

  it('in another serialisation, with more or fewer parts, or over 8 KiB', async () => {
    const { token } = await issue();
    const [head, payload, signature] = token.split('.');
    await refused(JSON.stringify({ protected: head, payload, signature }));
    await refused(JSON.stringify({ payload, signatures: [{ protected: head, signature }] }));
    await refused(`${token}.`);
    await refused(`.${token}`);
    await refused(`${token}.${signature}.${signature}`);
    await refused(`${head}..${signature}`);
    await refused(signed({ ...CLAIMS, filler: 'x'.repeat(8192) }));
    await refused('');
    await refused('...');
  });

  it('when any one character of it is another', async () => {
    const { token } = await issue();
    for (let at = 0; at < token.length; at++) {
      const other = token[at] === 'A' ? 'B' : 'A';
      await refused(token.slice(0, at) + other + token.slice(at + 1));
    }
  });

  it('when another installation signed it', async () => {
    const foreign = createPrivateKey(
      generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'pem', type: 'pkcs8' }),
    );
    const input = `${encode(header)}.${encode(CLAIMS)}`;
    await refused(`${input}.${signP1363(input, foreign)}`);
  });
});
