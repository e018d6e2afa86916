/** Tokens of other issuers at the gate: which of them prove a principal, and which attacks on them fail. */

import { createHmac } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { makeIssuerKey, type SigningKeyOfIssuer, signText, signToken } from '../support/issuer.ts';
import { type Harness, it, outcome, type Person, text, unique } from './harness.ts';
import { type Gate, gateOf } from './issuer-gate.ts';

const ACME = unique('acme');
const GLOBEX = unique('globex');
const WEB = 'system:serviceaccount:agents:web';
type Claims = Readonly<Record<string, unknown>>;

const rsa = makeIssuerKey('RS256');
const ec = makeIssuerKey('ES256');
const ed = makeIssuerKey('EdDSA');
/** Of another issuer, with the `kid` of the first one. */
const stranger = makeIssuerKey('ES256', ec.kid);
const jwks = (...keys: SigningKeyOfIssuer[]) => ({ keys: keys.map(({ jwk }) => jwk) });

let h: Harness;
let boss: Person;
let theirs: Person;
let gate: Gate;
/** The issuers of ACME and of GLOBEX, by their values. */
const iss = `https://${unique('cluster')}.example`;
const theirIss = `https://${unique('cluster')}.example`;
let key = '';
let theirKey = '';
let clusterId = '';

const issuer = async (as: Person, members: object): Promise<string> => {
  const reply = await h.api('POST', '/v1/iam/issuers', { as: as.token, body: { audiences: ['postern'], ...members } });
  expect([outcome(reply), reply.json['errors']]).toEqual(['201', undefined]);
  return text(reply.json, 'id');
};
const keyFor = async (as: Person, proof: object, body: object = {}): Promise<string> => {
  const all = { description: 'k', scopes: ['chat:write'], expires_in_days: 1, proof, ...body };
  const reply = await h.api('POST', '/v1/iam/api-keys', { as: as.token, body: all });
  expect([outcome(reply), reply.json['errors']]).toEqual(['201', undefined]);
  return text(reply.json, 'id');
};
const change = async (id: string, body: object, as = boss) =>
  expect(outcome(await h.api('PUT', `/v1/iam/issuers/${id}`, { as: as.token, body }))).toBe('200');

it.beforeAll(async ({ harness }) => {
  h = harness;
  gate = gateOf(h);
  for (const id of [ACME, GLOBEX]) await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  boss = await h.person(ACME, ['tenant-admin', 'developer']);
  theirs = await h.person(GLOBEX, ['tenant-admin', 'developer']);
  clusterId = await issuer(boss, { name: 'cluster', issuer: iss, jwks: jwks(rsa, ec, ed) });
  await issuer(theirs, { name: 'cluster', issuer: theirIss, jwks: jwks(stranger) });
  key = await keyFor(boss, { issuer: 'cluster', subject: WEB });
  theirKey = await keyFor(theirs, { issuer: 'cluster', subject: WEB });
});

const now = () => Math.floor(Date.now() / 1000);
const claims = (more: Claims = {}): Claims => ({
  iss,
  sub: WEB,
  aud: 'postern',
  iat: now(),
  exp: now() + 300,
  ...more,
});
const token = (more: Claims = {}, header: Claims = {}, by = ec) => signToken(by, claims(more), header);
const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const hmac = (secret: string | Buffer, header: Claims): string => {
  const signed = `${encoded({ alg: 'HS256', typ: 'JWT', ...header })}.${encoded(claims())}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
};
/** The longest token of at most this length. */
const ofLength = (length: number): string => {
  const pad = Math.floor(((length - token({ pad: '' }, {}, ed).length) * 3) / 4);
  const made = [-4, -3, -2, -1, 0, 1, 2, 3, 4].map((more) => token({ pad: 'x'.repeat(pad + more) }, {}, ed));
  return made.findLast((one) => one.length <= length) ?? '';
};

describe('a token of an issuer', () => {
  test.each([
    ['of RS256', () => token({}, {}, rsa)],
    ['of ES256', () => token()],
    ['of EdDSA', () => token({}, {}, ed)],
    ['with an audience in a list', () => token({ aud: ['other', 'postern'] })],
    ['with times that have fractions', () => token({ iat: now() - 0.5, exp: now() + 10.25, nbf: now() - 1.75 })],
    ['of the type at+jwt', () => token({}, { typ: 'at+jwt' })],
    ['of the type application/AT+JWT', () => token({}, { typ: 'application/AT+JWT' })],
    ['without a type', () => token({}, { typ: undefined })],
    ['without a kid', () => token({}, { kid: undefined })],
    ['whose exp has passed within the tolerance', () => token({ iat: now() - 60, exp: now() - 2 })],
    [
      'with jku, x5u, x5c and jwk in its header, which count for nothing',
      () => token({}, { jku: 'https://evil.example', x5u: 'https://evil.example', x5c: ['AA'], jwk: stranger.jwk }),
    ],
    ['of 16 KiB', () => ofLength(16_384)],
    [
      'whose header has white space',
      () => signText(ec, JSON.stringify({ alg: 'ES256', kid: ec.kid }, undefined, 2), JSON.stringify(claims())),
    ],
  ])('%s proves the key of its subject', async (_name, make) => {
    const { outcome: result, principal } = await gate(make());
    expect([result, principal?.id, principal?.tenantId]).toEqual(['allow', key, ACME]);
  });

  test.each<[string, () => string, string]>([
    ['expired, and otherwise valid', () => token({ iat: now() - 600, exp: now() - 6 }), 'token_expired'],
    ['expired and for another audience', () => token({ exp: now() - 60, aud: 'x' }), 'invalid_credential audience'],
    [
      'of an issuer that no tenant has',
      () => token({ iss: 'https://nobody.example' }),
      'invalid_credential unknown_issuer',
    ],
    ['without iss', () => token({ iss: undefined }), 'invalid_credential unknown_issuer'],
    ['with an iss in a list', () => token({ iss: [iss] }), 'invalid_credential malformed'],
    ['with another case in iss', () => token({ iss: iss.toUpperCase() }), 'invalid_credential unknown_issuer'],
    ['with a slash behind iss', () => token({ iss: `${iss}/` }), 'invalid_credential unknown_issuer'],
    [
      'with iss twice',
      () => signText(ec, { alg: 'ES256', kid: ec.kid }, `{"iss":"x",${JSON.stringify(claims()).slice(1)}`),
      'invalid_credential malformed',
    ],
    [
      'with a claim twice, once escaped',
      () => signText(ec, { alg: 'ES256', kid: ec.kid }, `{"su\\u0062":"x",${JSON.stringify(claims()).slice(1)}`),
      'invalid_credential malformed',
    ],
    [
      'with an inner member twice',
      () => signText(ec, { alg: 'ES256', kid: ec.kid }, `{"k":{"a":1,"a":2},${JSON.stringify(claims()).slice(1)}`),
      'invalid_credential malformed',
    ],
    [
      'with claims beyond 32 levels',
      () =>
        signText(
          ec,
          { alg: 'ES256', kid: ec.kid },
          `{"k":${'['.repeat(40)}${']'.repeat(40)},${JSON.stringify(claims()).slice(1)}`,
        ),
      'invalid_credential malformed',
    ],
    ['with a list of claims', () => signText(ec, { alg: 'ES256', kid: ec.kid }, '[]'), 'invalid_credential malformed'],
    ['for another audience', () => token({ aud: 'other' }), 'invalid_credential audience'],
    ['without aud', () => token({ aud: undefined }), 'invalid_credential audience'],
    ['with an aud of another type', () => token({ aud: { postern: true } }), 'invalid_credential audience'],
    ['with an aud that holds ours', () => token({ aud: 'postern other' }), 'invalid_credential audience'],
    ['without exp', () => token({ exp: undefined }), 'invalid_credential claims'],
    ['without iat', () => token({ iat: undefined }), 'invalid_credential claims'],
    ['with times as texts', () => token({ exp: String(now() + 60) }), 'invalid_credential claims'],
    ['with exp in milliseconds', () => token({ exp: (now() + 60) * 1000 }), 'invalid_credential claims'],
    ['with a negative iat', () => token({ iat: -1 }), 'invalid_credential claims'],
    ['with nbf as text', () => token({ nbf: 'now' }), 'invalid_credential claims'],
    ['from the future by iat', () => token({ iat: now() + 60 }), 'invalid_credential not_yet_valid'],
    ['from the future by nbf', () => token({ nbf: now() + 60 }), 'invalid_credential not_yet_valid'],
    ['that is an ID token by nonce', () => token({ nonce: 'n' }), 'invalid_credential claims'],
    ['that is an ID token by at_hash', () => token({ at_hash: 'h' }), 'invalid_credential claims'],
    ['that is an ID token by c_hash', () => token({ c_hash: null }), 'invalid_credential claims'],
    ['of another type', () => token({}, { typ: 'logout+jwt' }), 'invalid_credential claims'],
    ['of an empty type', () => token({}, { typ: '' }), 'invalid_credential malformed'],
    ['for the upstream', () => token({}, { typ: 'postern-upstream+jwt' }), 'invalid_credential malformed'],
    [
      'of alg none',
      () => `${encoded({ alg: 'none', typ: 'JWT' })}.${encoded(claims())}.AA`,
      'invalid_credential algorithm',
    ],
    [
      'of alg none without a signature',
      () => `${encoded({ alg: 'none' })}.${encoded(claims())}.`,
      'invalid_credential malformed',
    ],
    [
      'of HS256 with the public key as its secret',
      () => hmac(JSON.stringify(ec.jwk), { kid: ec.kid }),
      'invalid_credential algorithm',
    ],
    ['of HS256 with the public key in PEM', () => hmac(rsaPem(), { kid: rsa.kid }), 'invalid_credential algorithm'],
    [
      'of an algorithm that the issuer does not accept',
      () => token({}, { alg: 'ES384' }),
      'invalid_credential algorithm',
    ],
    ['of RS256 by the header and signed with EC', () => token({}, { alg: 'RS256' }), 'invalid_credential algorithm'],
    ['with a kid of another type of key', () => token({}, { kid: rsa.kid }), 'invalid_credential algorithm'],
    ['with an unknown kid', () => token({}, { kid: 'other' }), 'invalid_credential signature'],
    [
      'with the kid of the issuer and the key of another one',
      () => token({}, {}, stranger),
      'invalid_credential signature',
    ],
    [
      'signed by the jwk in its header',
      () => token({}, { jwk: stranger.jwk }, stranger),
      'invalid_credential signature',
    ],
    [
      'with a changed claim',
      () => token().replace(/\.[^.]+\./, `.${encoded(claims({ sub: 'root' }))}.`),
      'invalid_credential signature',
    ],
    [
      'with the signature of another token',
      () => `${token().split('.', 2).join('.')}.${token({ x: 1 }).split('.')[2]}`,
      'invalid_credential signature',
    ],
    ['with crit', () => token({}, { crit: ['exp'], exp: 1 }), 'invalid_credential malformed'],
    ['with b64', () => token({}, { b64: false, crit: ['b64'] }), 'invalid_credential malformed'],
    ['with zip', () => token({}, { zip: 'DEF' }), 'invalid_credential malformed'],
    ['encrypted in name', () => token({}, { enc: 'A128GCM' }), 'invalid_credential malformed'],
    ['with a kid that is no text', () => token({}, { kid: 7 }), 'invalid_credential malformed'],
    ['with padding', () => `${token()}=`, 'invalid_credential malformed'],
    ['with four parts', () => `${token()}.AA`, 'invalid_credential malformed'],
    ['with two parts', () => token().split('.', 2).join('.'), 'invalid_credential malformed'],
    ['of more than 16 KiB', () => ofLength(17_000), 'invalid_credential malformed'],
    ['of a subject that no key has', () => token({ sub: 'other' }), 'invalid_credential no_principal'],
    ['without sub', () => token({ sub: undefined }), 'invalid_credential no_principal'],
    ['with a sub of another type', () => token({ sub: [WEB] }), 'invalid_credential no_principal'],
    ['with a sub that the store would change', () => token({ sub: '\ud800' }), 'invalid_credential no_principal'],
    ['with a sub with NUL', () => token({ sub: `${WEB}\0` }), 'invalid_credential no_principal'],
    [
      'that only looks like one of ours',
      () => token({}, { alg: 'ES256', typ: 'at+jwt', kid: 'x'.repeat(43) }),
      'invalid_credential signature',
    ],
  ])('%s proves nothing', async (_name, make, expected) => {
    expect((await gate(make())).outcome).toBe(expected);
  });

  test('gets the same answer for every reason except its expiry', async () => {
    const bad = [
      token({ aud: 'x' }),
      token({ iss: 'https://nobody.example' }),
      token({ sub: 'x' }),
      token({}, {}, stranger),
      'eyJ.eyJ.x',
    ];
    const answers = await Promise.all(bad.map(async (one) => (await gate(one)).answer));
    expect(new Set(answers).size).toBe(1);
    expect(answers[0]).toMatch(/^\[401,/);
  });

  test('is a bearer token: in the headers for API keys it proves nothing', async () => {
    expect((await gate(token(), { header: 'x-api-key' })).outcome).toBe('invalid_credential malformed');
    expect((await gate(token(), { header: 'api-key' })).outcome).toBe('invalid_credential malformed');
  });

  test('belongs to the tenant of its issuer: the same subject of another issuer is another key', async () => {
    const foreign = await gate(token({ iss: theirIss }, {}, stranger));
    expect([foreign.outcome, foreign.principal?.id, foreign.principal?.tenantId]).toEqual(['allow', theirKey, GLOBEX]);
    expect((await gate(token(), { tenant: GLOBEX })).outcome).toBe('tenant_mismatch');
    expect((await gate(token({ tenant_id: GLOBEX, iss }), { tenant: ACME })).principal?.id).toBe(key);
    expect((await gate(token({ iss: theirIss }, {}, ec))).outcome).toBe('invalid_credential signature');
  });
});

function rsaPem(): Buffer {
  const { privateKey } = rsa;
  return Buffer.from(privateKey.export({ type: 'pkcs8', format: 'pem' }));
}

describe('the keys that a token matches', () => {
  let name = '';
  let value = '';
  const match = async (sub: string, more: Claims = {}) => {
    const { outcome: result, principal } = await gate(token({ iss: value, sub, ...more }));
    return result === 'allow' ? principal?.id : result;
  };
  beforeEach(async () => {
    name = unique('cluster');
    value = `https://${name}.example`;
    await issuer(boss, { name, issuer: value, jwks: jwks(ec) });
  });

  test('an exact subject beats a glob, and a glob matches every other subject', async () => {
    const glob = await keyFor(boss, { issuer: name, subject: 'agents:*' });
    expect(await match('agents:web')).toBe(glob);
    const exact = await keyFor(boss, { issuer: name, subject: 'agents:web' });
    expect([await match('agents:web'), await match('agents:db'), await match('other')]).toEqual([
      exact,
      glob,
      'invalid_credential no_principal',
    ]);
  });

  test('two that match equally prove none, until the claims of one no longer match', async () => {
    const one = await keyFor(boss, { issuer: name, subject: 'a', claims: [{ claim: 'ref', in: ['main', 'x'] }] });
    const two = await keyFor(boss, { issuer: name, subject: 'a', claims: [{ claim: 'ref', in: ['m*'] }] });
    expect(await match('a', { ref: 'main' })).toBe('invalid_credential ambiguous');
    expect([await match('a', { ref: 'x' }), await match('a', { ref: 'mine' })]).toEqual([one, two]);
    expect(await match('a', { ref: ['y', 'main'] })).toBe('invalid_credential ambiguous');
    expect(await match('a', { ref: 7 })).toBe('invalid_credential no_principal');
    await h.api('DELETE', `/v1/iam/api-keys/${one}`, { as: boss.token });
    expect(await match('a', { ref: 'main' })).toBe(two);
  });

  test('an expired one counts only if no other one matches, and then it proves nothing', async () => {
    const old = await keyFor(boss, { issuer: name, subject: 'a' });
    await h.db.knex.raw(`update api_keys set expires_at = now() - interval '1 minute' where id = ?`, [old]);
    await h.api('GET', `/v1/iam/api-keys/${await keyFor(boss, { issuer: name, subject: 'b' })}`, { as: boss.token });
    expect(await match('a')).toBe('invalid_credential key_expired');
    const glob = await keyFor(boss, { issuer: name, subject: '*' });
    expect(await match('a')).toBe(glob);
  });

  test('a disabled or revoked one proves nothing from the next check on, and the change of a proof counts at once', async () => {
    const id = await keyFor(boss, { issuer: name, subject: 'a' });
    const sent = token({ iss: value, sub: 'a' });
    const check = async () => (await gate(sent)).outcome;
    expect(await check()).toBe('allow');
    await h.api('POST', `/v1/iam/api-keys/${id}/disable`, { as: boss.token });
    expect(await check()).toBe('invalid_credential disabled');
    await h.api('POST', `/v1/iam/api-keys/${id}/enable`, { as: boss.token });
    expect(await check()).toBe('allow');
    await h.api('PUT', `/v1/iam/api-keys/${id}`, { as: boss.token, body: { proof: { issuer: name, subject: 'b' } } });
    expect(await check()).toBe('invalid_credential no_principal');
    await h.api('PUT', `/v1/iam/api-keys/${id}`, { as: boss.token, body: { proof: { issuer: name, subject: 'a*' } } });
    expect(await check()).toBe('allow');
    await h.api('DELETE', `/v1/iam/api-keys/${id}`, { as: boss.token });
    expect(await check()).toBe('invalid_credential no_principal');
  });

  test('no text that a client can send has the digest of a key without a secret', async () => {
    const id = await keyFor(boss, { issuer: name, subject: 'a' });
    for (const sent of [`\0proof\0${id}`, `%00proof%00${id}`, id, `proof${id}`])
      expect((await gate(sent)).outcome).toMatch(/^invalid_credential (malformed|unknown)/);
  });
});

describe('the issuer of a token', () => {
  let name = '';
  let value = '';
  let id = '';
  let sent = '';
  const check = async (one = sent) => (await gate(one)).outcome;
  beforeEach(async () => {
    name = unique('cluster');
    value = `https://${name}.example`;
    id = await issuer(boss, { name, issuer: value, jwks: jwks(ec, rsa) });
    await keyFor(boss, { issuer: name, subject: WEB });
    sent = token({ iss: value });
    expect(await check()).toBe('allow');
  });

  test('ends its tokens at once when it is disabled, and old ones stay refused when it is enabled again', async () => {
    await change(id, { enabled: false });
    expect(await check()).toBe('invalid_credential issuer_disabled');
    await change(id, { enabled: true });
    expect(await check(token({ iss: value, iat: now() - 60 }))).toBe('invalid_credential revoked_before');
  });

  test('has the denials of the tokens that it signed in the records of its tenant, and not those of forged ones', async () => {
    const recorded = async (one: string) => {
      const { outcome: found, tenant, answer } = await gate(one);
      return [found, tenant, answer.includes(ACME)];
    };
    expect(await recorded(token({ iss: value, aud: 'other' }))).toEqual(['invalid_credential audience', ACME, false]);
    expect(await recorded(token({ iss: value, sub: 'stranger' }))).toEqual([
      'invalid_credential no_principal',
      ACME,
      false,
    ]);
    expect(await recorded(token({ iss: value, iat: now() - 900, exp: now() - 60 }))).toEqual([
      'token_expired',
      ACME,
      false,
    ]);
    expect(await recorded(token({ iss: value }, {}, stranger))).toEqual([
      'invalid_credential signature',
      undefined,
      false,
    ]);
    await change(id, { enabled: false });
    expect(await recorded(sent)).toEqual(['invalid_credential issuer_disabled', undefined, false]);
  });

  test('ends its tokens at once when it is deleted', async () => {
    expect(outcome(await h.api('DELETE', `/v1/iam/issuers/${id}?force=true`, { as: boss.token }))).toBe('204');
    expect(await check()).toBe('invalid_credential unknown_issuer');
  });

  test('refuses tokens from before a time, and accepts newer ones', async () => {
    const old = token({ iss: value, iat: now() - 60 });
    expect(await check(old)).toBe('allow');
    const time = new Date((now() - 30) * 1000).toISOString();
    const reply = await h.api('POST', `/v1/iam/issuers/${id}/revoke-before`, { as: boss.token, body: { time } });
    expect(outcome(reply)).toBe('200');
    expect([await check(old), await check()]).toEqual(['invalid_credential revoked_before', 'allow']);
  });

  test('refuses a token whose iat is older than the time within the same second', async () => {
    const iat = now() - 30;
    const old = token({ iss: value, iat });
    expect(await check(old)).toBe('allow');
    const revoke = (ms: number) => {
      const time = new Date(iat * 1000 + ms).toISOString();
      return h.api('POST', `/v1/iam/issuers/${id}/revoke-before`, { as: boss.token, body: { time } });
    };
    expect((await revoke(0)).json['revoked_before']).toBe(new Date(iat * 1000).toISOString());
    expect(await check(old)).toBe('allow');
    expect((await revoke(750)).json['revoked_before']).toBe(new Date(iat * 1000 + 750).toISOString());
    expect([await check(old), await check(token({ iss: value, iat: iat + 0.75 }))]).toEqual([
      'invalid_credential revoked_before',
      'allow',
    ]);
  });

  test('bounds the age of tokens', async () => {
    await change(id, { max_age_seconds: 30 });
    expect([await check(), await check(token({ iss: value, iat: now() - 60 }))]).toEqual([
      'allow',
      'invalid_credential too_old',
    ]);
  });

  test('answers token_expired for a token past its exp, also if it is too old, not valid yet or revoked', async () => {
    const past = (more: Claims) => token({ iss: value, iat: now() - 600, exp: now() - 300, ...more });
    await change(id, { max_age_seconds: 60 });
    expect([await check(past({})), await check(past({ nbf: now() + 60 }))]).toEqual(['token_expired', 'token_expired']);
    await h.api('POST', `/v1/iam/issuers/${id}/revoke-before`, { as: boss.token, body: {} });
    expect([await check(past({})), await check(past({ aud: 'other' }))]).toEqual([
      'token_expired',
      'invalid_credential audience',
    ]);
    expect(await check(past({ exp: now() + 1 }))).toBe('invalid_credential revoked_before');
  });

  test('stops accepting what a narrower change removes', async () => {
    await change(id, { required_claims: [{ claim: 'env', in: ['prod'] }] });
    expect([await check(), await check(token({ iss: value, env: 'prod' }))]).toEqual([
      'invalid_credential claims',
      'allow',
    ]);
    await change(id, { audiences: ['other'] });
    expect(await check(token({ iss: value, env: 'prod' }))).toBe('invalid_credential audience');
  });

  test('accepts by a wider change only the tokens that came after it', async () => {
    const narrow = token({ iss: value, aud: 'wide', iat: now() - 10 });
    expect(await check(narrow)).toBe('invalid_credential audience');
    await change(id, { audiences: ['postern', 'wide'] });
    expect(await check(narrow)).toBe('invalid_credential audience');
    expect(await check(token({ iss: value, aud: 'wide' }))).toBe('allow');
    expect(await check(token({ iss: value, iat: now() - 10 }))).toBe('allow');
  });

  test('has a larger tolerance for the tokens that came after the change only', async () => {
    const ended = (iat: number) => token({ iss: value, iat, exp: now() - 20 });
    const old = ended(now() - 60);
    expect(await check(old)).toBe('token_expired');
    await change(id, { leeway_seconds: 60 });
    expect([await check(old), await check(ended(now()))]).toEqual(['token_expired', 'allow']);
    await change(id, { leeway_seconds: 5 });
    expect(await check(ended(now()))).toBe('token_expired');
  });

  test('verifies with its current keys only: a key that it no longer has verifies nothing', async () => {
    const next = makeIssuerKey('ES256', ec.kid);
    await change(id, { jwks: jwks(next) });
    expect(await check()).toBe('invalid_credential signature');
    expect(await check(signToken(next, claims({ iss: value })))).toBe('allow');
  });

  test('answers 503 while its keys were never fetched, or are too old, also to tokens that it verified', async () => {
    const fetched = (age: string | null) =>
      h.db.knex.raw(
        `with changed as (update issuers set jwks = null, jwks_uri = 'https://nowhere.invalid/jwks' where id = :id)
         insert into issuer_keys (issuer_id, keys, fetched_at, next_fetch_at)
         select :id, :keys, now() - cast(:age as interval), now() + interval '1 hour'
         on conflict (issuer_id) do update set keys = excluded.keys, fetched_at = excluded.fetched_at, error = 'x'`,
        { id, age, keys: age === null ? null : JSON.stringify(jwks(ec).keys) },
      );
    const changed = async () => {
      // A change of another issuer through the API: its answer comes after the feed was applied.
      await change(clusterId, { max_age_seconds: 3600 });
      return check();
    };
    await fetched('1 minute');
    expect(await changed()).toBe('allow');
    await fetched('25 hours');
    expect(await changed()).toBe('unavailable');
    expect((await gate(token())).outcome).toBe('allow');
    await fetched('1 minute');
    expect(await changed()).toBe('allow');
    await fetched(null);
    expect(await changed()).toBe('unavailable');
  });
});

describe('an issuer of the kind spiffe', () => {
  test('is chosen by the trust domain of sub, and needs no iss', async () => {
    const domain = `spiffe://${unique('prod')}.example`;
    await issuer(boss, {
      name: unique('spire'),
      kind: 'spiffe',
      issuer: domain,
      jwks: { keys: [{ ...ec.jwk, use: 'jwt-svid' }] },
    }).then(async (made) => {
      const shown = await h.api('GET', `/v1/iam/issuers/${made}`, { as: boss.token });
      await keyFor(boss, { issuer: text(shown.json, 'name'), subject: `${domain}/web` });
    });
    const svid = (sub: string, header: Claims = {}, more: Claims = {}) =>
      token({ iss: undefined, sub, ...more }, header);
    expect((await gate(svid(`${domain}/web`))).outcome).toBe('allow');
    expect((await gate(svid(`${domain}/web`, {}, { iss: 'https://spire.example' }))).outcome).toBe('allow');
    expect((await gate(svid(`${domain}/db`))).outcome).toBe('invalid_credential no_principal');
    expect((await gate(svid(`${domain}/../web`))).outcome).toBe('invalid_credential unknown_issuer');
    expect((await gate(svid(domain))).outcome).toBe('invalid_credential unknown_issuer');
    expect((await gate(svid(`${domain}/web`, { jku: 'x' }))).outcome).toBe('invalid_credential claims');
    expect((await gate(svid('spiffe://other.example/web', {}, { iss: domain }))).outcome).toBe(
      'invalid_credential claims',
    );
    // An OpenID issuer with a subject of the trust domain stays that issuer.
    expect((await gate(token({ sub: `${domain}/web` }))).outcome).toBe('invalid_credential no_principal');
  });

  test('proves its subjects whatever issuer another tenant has for the iss of its tokens', async () => {
    const domain = `spiffe://${unique('prod')}.example`;
    const spire = `https://${unique('spire')}.example`;
    const name = unique('spire');
    await issuer(boss, { name, kind: 'spiffe', issuer: domain, jwks: { keys: [{ ...ec.jwk, use: 'jwt-svid' }] } });
    await keyFor(boss, { issuer: name, subject: `${domain}/web` });
    const svid = (more: Claims = {}, by = ec) => token({ iss: spire, sub: `${domain}/web`, ...more }, {}, by);
    const outcomes = async () => [
      (await gate(svid())).outcome,
      (await gate(svid({ aud: 'x' }))).outcome,
      (await gate(svid({}, makeIssuerKey('ES256', ec.kid)))).outcome,
    ];
    const alone = ['allow', 'invalid_credential audience', 'invalid_credential signature'];
    expect(await outcomes()).toEqual(alone);
    const other = await issuer(theirs, { name, issuer: spire, jwks: jwks(stranger), enabled: false });
    expect(await outcomes()).toEqual(alone);
    await change(other, { enabled: true }, theirs);
    expect(await outcomes()).toEqual(alone);
    await change(other, { jwks: null }, theirs);
    expect(await outcomes()).toEqual(alone);
    expect((await gate(svid({}, stranger))).outcome).toBe('invalid_credential signature');
  });
});

describe('a token that the keys of two issuers verify', () => {
  const explained = async (credential: string, as: Person) => {
    const body = { method: 'POST', path: '/v1/chat/completions', body: '{"model":"m"}', credential };
    const { json } = await h.api('POST', '/v1/iam/explain', { as: as.token, body });
    return json['code'];
  };

  test.each(['spiffe', 'oidc'] as const)(
    'stays with the issuer that had its value first, here one of the kind %s, when another tenant copies its keys',
    async (kind) => {
      const copied = kind === 'spiffe' ? 'oidc' : 'spiffe';
      const values = { spiffe: `spiffe://${unique('prod')}.example`, oidc: `https://${unique('spire')}.example` };
      const svid = (more: Claims = {}) =>
        token({ iss: values.oidc, sub: `${values.spiffe}/web`, jti: unique('jti'), ...more });
      const outcomes = async () => {
        const fresh = svid();
        const { outcome: proved, principal } = await gate(fresh);
        const rejected = await gate(svid({ aud: 'x' }));
        const explanations = [await explained(fresh, boss), await explained(fresh, theirs)];
        return [proved, principal?.id, rejected.outcome, rejected.tenant, ...explanations];
      };
      const members = { kind: copied, jwks: jwks(ec) };
      // Both are older than the issuer that they copy, and take their values later.
      const renamed = `${copied === 'oidc' ? 'https' : 'spiffe'}://${unique('old')}.example`;
      const older = [
        await issuer(theirs, { ...members, name: unique('renamed'), issuer: renamed }),
        await issuer(theirs, { ...members, name: unique('off'), issuer: values[copied], enabled: false }),
      ];
      const name = unique('spire');
      await issuer(boss, { name, kind, issuer: values[kind], jwks: jwks(ec) });
      const own = await keyFor(boss, { issuer: name, subject: `${values.spiffe}/web` });
      const alone = await outcomes();
      expect(alone.slice(0, 4)).toEqual(['allow', own, 'invalid_credential audience', ACME]);
      for (const id of older) {
        await change(id, { issuer: values[copied], enabled: true }, theirs);
        expect(await outcomes()).toEqual(alone);
        await change(id, { enabled: false }, theirs);
      }
      const late = unique('late');
      await issuer(theirs, { ...members, name: late, issuer: values[copied] });
      await keyFor(theirs, { issuer: late, subject: '*' });
      expect(await outcomes()).toEqual(alone);
    },
  );
});

describe('an explanation of a token of an issuer', () => {
  const explain = async (credential: string, as: Person) => {
    const body = { method: 'POST', path: '/v1/chat/completions', body: '{"model":"m"}', credential };
    const reply = await h.api('POST', '/v1/iam/explain', { as: as.token, body });
    const steps: unknown = reply.json['steps'];
    const step: unknown = Array.isArray(steps) ? steps[7] : undefined;
    return typeof step === 'object' && step !== null && 'reason' in step ? step.reason : reply.json['code'];
  };

  test('names the reason to a caller that manages the issuer, and an unknown issuer to every other one', async () => {
    const reasons: readonly [string, string][] = [
      [token({ aud: 'x' }), 'audience'],
      [token({}, {}, stranger), 'signature'],
      [token({ nonce: 'n' }), 'claims'],
      [token({ sub: 'stranger' }), 'no_principal'],
      [token({ iss: 'https://nobody.example' }), 'unknown_issuer'],
    ];
    for (const [sent, reason] of reasons) {
      expect(await explain(sent, boss)).toBe(reason);
      expect(await explain(sent, theirs)).toBe('unknown_issuer');
    }
    await h.api('POST', '/v1/iam/roles', { as: boss.token, body: { name: 'reader', permissions: ['admin:policies'] } });
    const reader = await h.person(ACME, ['reader']);
    expect(await explain(token({ aud: 'x' }), reader)).toBe('unknown');
    expect(await explain(token(), boss)).toBe('allow');
  });

  test('of a token that names two issuers is that of the issuer whose key signed it', async () => {
    const domain = `spiffe://${unique('prod')}.example`;
    const value = `https://${unique('spire')}.example`;
    const name = unique('spire');
    await issuer(theirs, { name, issuer: value, jwks: jwks(stranger) });
    await issuer(boss, { name, kind: 'spiffe', issuer: domain, jwks: { keys: [{ ...ec.jwk, use: 'jwt-svid' }] } });
    const svid = token({ iss: value, sub: `${domain}/web`, aud: 'x' });
    expect([await explain(svid, boss), await explain(svid, theirs)]).toEqual(['audience', 'unknown_issuer']);
  });

  test('names the end of the key that the token matches', async () => {
    const sub = unique('pod');
    const id = await keyFor(boss, { issuer: 'cluster', subject: sub });
    await h.api('POST', `/v1/iam/api-keys/${id}/disable`, { as: boss.token });
    expect(await explain(token({ sub }), boss)).toBe('disabled');
  });

  test('creates no user, and the first request creates it', async () => {
    const name = unique('people');
    const value = `https://${name}.example`;
    const users = { create: true, default_roles: ['developer'] };
    await issuer(boss, { name, issuer: value, jwks: jwks(ec), users });
    const sent = token({ iss: value, sub: 'ada' });
    expect(await explain(sent, boss)).toBe('no_principal');
    expect(await h.db.knex('users').where({ source: `issuer:${name}` })).toEqual([]);
    expect((await gate(sent)).outcome).toBe('allow');
    expect(await h.db.knex('users').where({ source: `issuer:${name}` })).toHaveLength(1);
    expect(await explain(sent, boss)).toBe('allow');
  });
});

describe('the users of an issuer at the gate', () => {
  test('have the roles of their newest token, and an older token gives nothing back', async () => {
    const name = unique('people');
    const value = `https://${name}.example`;
    const roles = [{ claim: 'groups', in: ['dev'], roles: ['developer'] }];
    await issuer(boss, { name, issuer: value, jwks: jwks(ec), users: { create: true, roles } });
    const at = (iat: number, groups: readonly string[], more: Claims = {}) =>
      token({ iss: value, sub: 'ada', iat, groups, ...more });
    const older = at(now() - 30, ['dev']);
    expect((await gate(older)).outcome).toBe('allow');
    expect((await gate(at(now() - 20, []))).outcome).toBe('insufficient_permission');
    expect((await gate(older)).outcome).toBe('insufficient_permission');
    expect((await gate(at(now() - 10, ['dev']))).outcome).toBe('allow');
    expect((await gate(older)).outcome).toBe('allow');
    const overage = { groups: undefined, _claim_names: { groups: 'src1' }, _claim_sources: { src1: {} } };
    expect((await gate(at(now(), [], overage))).outcome).toBe('invalid_credential claims');
    expect((await gate(older)).outcome).toBe('allow');
  });

  test('are never found by an email address: an address that another user holds creates none', async () => {
    const name = unique('people');
    const value = `https://${name}.example`;
    await issuer(boss, { name, issuer: value, jwks: jwks(ec), users: { create: true, email_claim: 'email' } });
    const email = `${boss.id}@example.test`;
    const sent = token({ iss: value, sub: 'eve', email });
    expect([(await gate(sent)).outcome, (await gate(sent)).outcome]).toEqual([
      'invalid_credential email_in_use',
      'invalid_credential email_in_use',
    ]);
    const request = { credential: sent, method: 'GET', path: '/v1/models' };
    const explained = await h.api('POST', '/v1/iam/explain', { as: boss.token, body: request });
    expect(Object(explained.json['steps'])[7]).toMatchObject({ line: 8, reason: 'email_in_use' });
    const link = { identities: [{ issuer: name, subject: 'eve' }] };
    const linked = await h.person(ACME, ['developer']);
    expect(outcome(await h.api('PUT', `/v1/iam/users/${linked.id}`, { as: boss.token, body: link }))).toBe('200');
    expect((await gate(sent)).principal?.id).toBe(linked.id);
  });

  test.each<[string, Claims, boolean]>([
    ['have a verified address', { email_verified: true }, true],
    ['have an address of which the token does not say whether it is verified', {}, true],
    ['have no unverified address', { email_verified: false }, false],
    ['have no address that the token calls unverified by a text', { email_verified: 'false' }, false],
  ])('%s', async (_name, claims, isGiven) => {
    const name = unique('people');
    const value = `https://${name}.example`;
    const users = { create: true, default_roles: ['developer'], email_claim: 'email' };
    await issuer(boss, { name, issuer: value, jwks: jwks(ec), users });
    const email = `${name}@example.test`;
    expect((await gate(token({ iss: value, sub: 'mallory', email, ...claims }))).outcome).toBe('allow');
    const holders = await h.api('GET', `/v1/iam/users?email=${email}`, { as: boss.token });
    expect(Object(holders.json['data'])).toHaveLength(isGiven ? 1 : 0);
    // The address stays free for the person who owns it.
    const owner = token({ iss: value, sub: 'owner', email, email_verified: true });
    expect((await gate(owner)).outcome).toBe(isGiven ? 'invalid_credential email_in_use' : 'allow');
  });
});
