/** POST /v1/auth/token: a token of another issuer becomes an access token (RFC 8693). */

import { randomBytes } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { makeIssuerKey, startIssuer, type TestIssuer } from '../support/issuer.ts';
import {
  column,
  type Harness,
  it,
  type Json,
  outcome,
  type Person,
  type Reply,
  rows,
  text,
  unique,
} from './harness.ts';

const ACME = unique('acme');
const GLOBEX = unique('globex');
const TOKEN = '/v1/auth/token';
const ISSUERS = '/v1/iam/issuers';
const KEYS = '/v1/iam/api-keys';
const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
const TYPE = 'urn:ietf:params:oauth:token-type:';

let h: Harness;
let boss: Person;
let keys: TestIssuer;
/** The values of `iss`. */
const iss = { staff: `https://${unique('staff')}.example`, globex: `https://${unique('globex')}.example` };
let staffId: string;

const issuerBody = (name: string, issuer: string, users?: object) => ({
  ...{ name, issuer, audiences: ['postern'], jwks: keys.jwks() },
  ...(users === undefined ? {} : { users }),
});

it.beforeAll(async ({ harness }) => {
  h = harness;
  keys = await startIssuer();
  for (const id of [ACME, GLOBEX]) await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  boss = await h.person(ACME, ['tenant-admin']);
  const theirs = await h.person(GLOBEX, ['tenant-admin']);
  const users = {
    subject_claim: 'sub',
    create: true,
    roles: [
      { claim: 'groups', in: ['dev'], roles: ['developer'] },
      { claim: 'groups', in: ['ops'], roles: ['tenant-admin'] },
    ],
  };
  const made = await h.api('POST', ISSUERS, { as: boss.token, body: issuerBody('staff', iss.staff, users) });
  expect(outcome(made)).toBe('201');
  staffId = text(made.json, 'id');
  const other = await h.api('POST', ISSUERS, { as: theirs.token, body: issuerBody('cluster', iss.globex) });
  expect(outcome(other)).toBe('201');
});
afterAll(() => keys.close());

let subject = '';
/** Failures of each test count for an address of its own. */
let from: Record<string, string> = {};
beforeEach(() => {
  subject = unique('subject');
  from = { 'x-forwarded-for': `2001:db8:${randomBytes(2).toString('hex')}:${randomBytes(2).toString('hex')}::1` };
});

const signed = (claims: Json = {}) => keys.sign({ iss: iss.staff, sub: subject, groups: ['dev'], ...claims });
const form = (parameters: Readonly<Record<string, string>>) =>
  new URLSearchParams({
    ...{ grant_type: GRANT, subject_token_type: `${TYPE}jwt` },
    ...parameters,
  }).toString();
const post = (raw: string, headers: Readonly<Record<string, string>> = {}) =>
  h.api('POST', TOKEN, {
    raw,
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...from, ...headers },
  });
const exchange = (subject_token = signed(), more: Readonly<Record<string, string>> = {}) =>
  post(form({ subject_token, ...more }));
async function exchanged(subjectToken = signed(), more: Readonly<Record<string, string>> = {}): Promise<string> {
  const reply = await exchange(subjectToken, more);
  expect([outcome(reply), reply.json['error_description']]).toEqual(['200', undefined]);
  return text(reply.json, 'access_token');
}
const me = (as: string) => h.api('GET', '/v1/auth/me', { as });
const refusedBy = ({ status, json }: Reply) => `${status} ${String(json['error'])} ${String(json['code'])}`;
const pod = async (body: object = {}) => {
  const proof = { issuer: 'staff', subject };
  const base = { description: 'pod', scopes: ['chat:*', 'models:read'], expires_in_days: 1, proof };
  const reply = await h.api('POST', KEYS, { as: boss.token, body: { ...base, ...body } });
  expect([outcome(reply), reply.json['errors']]).toEqual(['201', undefined]);
  return text(reply.json, 'id');
};
const claimsOf = (token: string): Json =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));

describe('an exchange', () => {
  test('gives an access token of the user, without a refresh token, for the rest of the time of its subject token', async () => {
    const reply = await exchange();
    expect(reply.json).toEqual({
      access_token: expect.any(String),
      issued_token_type: `${TYPE}access_token`,
      token_type: 'Bearer',
      expires_in: expect.toSatisfy((seconds: number) => seconds > 270 && seconds <= 300),
      scope: expect.stringMatching(/(^| )chat:\*( |$)/),
    });
    expect(reply.headers['cache-control']).toBe('no-store');
    const self = await me(text(reply.json, 'access_token'));
    expect(self.json).toMatchObject({ type: 'user', tenant_id: ACME, roles: ['developer'], source: 'issuer:staff' });
    const long = await exchange(signed({ exp: Math.floor(Date.now() / 1000) + 100_000 }));
    expect(long.json['expires_in']).toBe(3600);
  });

  test('gives an access token that ends with the greatest age of its subject token', async () => {
    const now = Math.floor(Date.now() / 1000);
    const value = `https://${unique('short')}.example`;
    const body = { ...issuerBody(unique('short'), value, { create: true }), max_age_seconds: 600, leeway_seconds: 30 };
    expect(outcome(await h.api('POST', ISSUERS, { as: boss.token, body }))).toBe('201');
    const aged = (seconds: number, exp = 3000) => exchange(signed({ iss: value, iat: now - seconds, exp: now + exp }));
    const restOf = async (reply: Promise<Reply>) => Number((await reply).json['expires_in']);
    expect(await restOf(aged(200))).toSatisfy((seconds: number) => seconds > 380 && seconds <= 400);
    expect(await restOf(aged(200, 100))).toSatisfy((seconds: number) => seconds > 80 && seconds <= 100);
    expect(refusedBy(await aged(615))).toBe('400 invalid_request invalid_subject_token');
  });

  test('gives an access token of the key that the subject token proves', async () => {
    const id = await pod();
    const reply = await exchange();
    expect(reply.json['scope']).toBe('chat:* models:read');
    const token = text(reply.json, 'access_token');
    expect(claimsOf(token)).toMatchObject({ sub: id, tenant_id: ACME });
    expect((await me(token)).json).toMatchObject({ id, type: 'api_key', permissions: ['chat:*', 'models:read'] });
  });

  test('makes a session that its user and administrators see, with its origin, and end', async () => {
    const [first, second] = [await exchanged(), await exchanged(signed(), { scope: 'chat:*' })];
    const list = await h.api('GET', '/v1/auth/sessions', { as: first });
    expect(rows(list)).toEqual([
      expect.objectContaining({ issuer: 'staff', scope: ['chat:*'], cookie: false, current: false }),
      expect.objectContaining({ issuer: 'staff', scope: null, cookie: false, current: true }),
    ]);
    const user = text((await me(first)).json, 'id');
    const seen = await h.api('GET', `/v1/iam/users/${user}/sessions`, { as: boss.token });
    expect(column(seen, 'issuer')).toEqual(['staff', 'staff']);
    const [newest] = column(list, 'id');
    await h.api('DELETE', `/v1/iam/users/${user}/sessions/${String(newest)}`, { as: boss.token });
    expect([outcome(await me(first)), outcome(await me(second))]).toEqual(['200', '401 invalid_credential']);
    expect((await h.api('POST', '/v1/auth/logout', { as: first })).status).toBe(204);
    expect(outcome(await me(first))).toBe('401 invalid_credential');
  });

  test('writes an audit row about the principal, without the token', async () => {
    const token = signed();
    await exchanged(token, { scope: 'chat:write' });
    const row = (await h.audit('auth.exchange')).at(-1);
    expect(row).toMatchObject({
      ...{ actor_type: 'user', tenant_id: ACME, target_type: 'user', result: 'success' },
      after: { issuer_id: staffId, scope: 'chat:write', session_id: expect.stringMatching(/^ses_/) },
    });
    expect(JSON.stringify(row)).not.toContain(token.split('.')[2]);
  });

  test('ignores unknown and empty parameters, and takes those that ask for what it does anyway', async () => {
    await exchanged(signed(), {
      ...{ client_id: 'ci', requested_token_type: `${TYPE}access_token`, subject_token_type: `${TYPE}access_token` },
      ...{ audience: 'platform', resource: 'postern-test', scope: '', actor_token: '' },
    });
  });

  test('takes a subject token of 16 KiB', async () => {
    const size = 16_384;
    const token = signed({ padding: 'x'.repeat(Math.floor(((size - signed({ padding: '' }).length) * 3) / 4) - 4) });
    expect(token.length).toSatisfy((length: number) => length <= size && length > size - 16);
    await exchanged(token);
  });
});

describe('a form that is no exchange is rejected in the form of RFC 6749', () => {
  const token = 'eyJhbGciOiJub25lIn0.e30.';
  test.each([
    ['no parameter', '', '400 invalid_request invalid_parameter'],
    [
      'another grant type',
      form({ grant_type: 'password', subject_token: token }),
      '400 unsupported_grant_type unsupported_grant_type',
    ],
    ['no subject token', form({}), '400 invalid_request invalid_parameter'],
    ['an empty subject token', form({ subject_token: '' }), '400 invalid_request invalid_parameter'],
    [
      'an ID token',
      form({ subject_token: token, subject_token_type: `${TYPE}id_token` }),
      '400 invalid_request invalid_parameter',
    ],
    [
      'a refresh token as its result',
      form({ subject_token: token, requested_token_type: `${TYPE}refresh_token` }),
      '400 invalid_request invalid_parameter',
    ],
    ['an actor', form({ subject_token: token, actor_token: token }), '400 invalid_request invalid_parameter'],
    ['another audience', form({ subject_token: token, audience: 'elsewhere' }), '400 invalid_target invalid_target'],
    [
      'another resource',
      form({ subject_token: token, resource: 'https://elsewhere.example' }),
      '400 invalid_target invalid_target',
    ],
    [
      'a scope that is no pattern',
      form({ subject_token: token, scope: 'chat:write openid' }),
      '400 invalid_scope invalid_scope',
    ],
    ['a scope of spaces', form({ subject_token: token, scope: '  ' }), '400 invalid_scope invalid_scope'],
    [
      'a scope of 2,049 characters',
      form({ subject_token: token, scope: `a:${'b'.repeat(120)} `.repeat(17).slice(0, 2049) }),
      '400 invalid_scope invalid_scope',
    ],
    [
      'a repeated parameter',
      `${form({ subject_token: token })}&scope=chat%3Aread&scope=chat%3Awrite`,
      '400 invalid_request invalid_parameter',
    ],
    [
      'a token of 17 KiB',
      form({ subject_token: `eyJ${'a'.repeat(17_408)}` }),
      '400 invalid_request invalid_subject_token',
    ],
    [
      'a body of 21 KiB',
      form({ subject_token: token, more: 'a'.repeat(21_504) }),
      '413 invalid_request body_too_large',
    ],
  ])('%s', async (_name, raw, expected) => {
    const reply = await post(raw);
    expect(refusedBy(reply)).toBe(expected);
    expect(reply.json).toEqual({
      error: expect.any(String),
      error_description: expect.stringMatching(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/),
      code: expect.any(String),
      status: reply.status,
      request_id: expect.stringMatching(/^req_/),
    });
    expect(reply.headers['content-type']).toMatch(/^application\/json/);
    expect(reply.headers['cache-control']).toBe('no-store');
  });

  test('JSON', async () => {
    const reply = await post('{}', { 'content-type': 'application/json' });
    expect(refusedBy(reply)).toBe('415 invalid_request unsupported_media_type');
  });
});

describe('a subject token that proves no principal', () => {
  const invalid = '400 invalid_request invalid_subject_token';
  const now = () => Math.floor(Date.now() / 1000);

  test.each<[string, () => Promise<string>, string]>([
    [
      'an API key',
      async () =>
        text(
          (
            await h.api('POST', KEYS, {
              as: boss.token,
              body: { description: 'x', scopes: ['chat:write'], expires_in_days: 1 },
            })
          ).json,
          'key',
        ),
      'api_key',
    ],
    ['an access token of ours', async () => boss.token, 'own_token'],
    ['an access token that came from an exchange', async () => exchanged(), 'own_token'],
    ['an expired token', async () => signed({ iat: now() - 600, exp: now() - 300 }), 'expired'],
    ['a token that expired within the tolerance', async () => signed({ iat: now() - 600, exp: now() - 1 }), 'expired'],
    ['a token of another audience', async () => signed({ aud: 'elsewhere' }), 'audience'],
    ['an ID token', async () => signed({ nonce: 'n' }), 'claims'],
    ['a token of an unknown issuer', async () => signed({ iss: 'https://unknown.example' }), 'unknown_issuer'],
    ['a token with another signature', async () => `${signed().slice(0, -8)}AAAAAAAA`, 'signature'],
    ['a token of a cluster without a key for it', async () => signed({ iss: iss.globex }), 'no_principal'],
    ['text', async () => 'eyJ, nothing', 'malformed'],
  ])('%s is rejected, and the reason is in the audit log only', async (_name, make, reason) => {
    const reply = await exchange(await make());
    expect(refusedBy(reply)).toBe(invalid);
    expect(reply.json['error_description']).toBe(
      reason === 'expired' ? 'The subject token has expired.' : 'The subject token is not valid.',
    );
    const row = (await h.audit('auth.exchange')).at(-1);
    expect(row).toMatchObject({ result: 'failure', actor_type: 'anonymous', target_type: 'issuer', after: { reason } });
  });

  test('a failure belongs to the tenant of its issuer', async () => {
    await exchange(signed({ aud: 'elsewhere' }));
    expect((await h.audit('auth.exchange')).at(-1)).toMatchObject({ tenant_id: ACME, target_id: staffId });
    await exchange(signed({ iss: iss.globex }));
    expect((await h.audit('auth.exchange')).at(-1)).toMatchObject({ tenant_id: GLOBEX });
    const domain = `spiffe://${unique('prod')}.example`;
    const svids = { keys: keys.jwks().keys.map((key) => ({ ...key, use: 'jwt-svid' })) };
    const body = { ...issuerBody('svids', domain), kind: 'spiffe', jwks: svids };
    const made = await h.api('POST', ISSUERS, { as: boss.token, body });
    const spire = {
      name: 'spire',
      issuer: `https://${unique('spire')}.example`,
      audiences: ['postern'],
      enabled: true,
    };
    const other = { ...spire, jwks: { keys: [makeIssuerKey().jwk] } };
    const theirs = await h.person(GLOBEX, ['tenant-admin']);
    expect(outcome(await h.api('POST', ISSUERS, { as: theirs.token, body: other }))).toBe('201');
    await exchange(signed({ iss: spire.issuer, sub: `${domain}/web` }));
    expect((await h.audit('auth.exchange')).at(-1)).toMatchObject({ tenant_id: ACME, target_id: made.json['id'] });
  });

  test('failures of one address have the limit of failed logins, and valid tokens still work', async () => {
    const before = (await h.audit('auth.exchange')).length;
    // Ten failures of one token use up the limit of the token at this address.
    const token = signed({ aud: 'elsewhere' });
    for (let i = 0; i < 10; i++) expect(refusedBy(await exchange(token))).toBe(invalid);
    const limited = await exchange(token);
    expect(refusedBy(limited)).toBe('429 temporarily_unavailable too_many_attempts');
    expect(limited.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect((await h.audit('auth.exchange')).length - before).toBe(10);
    await exchanged();
  });
});

describe('the session of an exchange ends', () => {
  const ended = '401 invalid_credential';

  /** Ends the session of a user or of a key by `end`, and expects that another one lives on. */
  async function endsBy(end: (id: string) => Promise<Reply>, isKey: boolean): Promise<void> {
    const other = await exchanged(signed({ sub: unique('other') }));
    const id = isKey ? await pod() : text((await me(await exchanged())).json, 'id');
    const token = await exchanged();
    expect(outcome(await me(token))).toBe('200');
    expect((await end(id)).status).toBeLessThan(300);
    expect([outcome(await me(token)), outcome(await me(other))]).toEqual([ended, '200']);
  }

  test('with the deactivation of its user, and stays ended after the activation', async () => {
    let token = '';
    await endsBy(async (id) => {
      token = await exchanged();
      return h.api('POST', `/v1/iam/users/${id}/deactivate`, { as: boss.token });
    }, false);
    expect(refusedBy(await exchange())).toBe('400 invalid_request invalid_subject_token');
    const [user] = rows(await h.api('GET', `/v1/iam/users?q=${subject}`, { as: boss.token }));
    if (user !== undefined) await h.api('POST', `/v1/iam/users/${text(user, 'id')}/activate`, { as: boss.token });
    expect(outcome(await me(token))).toBe(ended);
  });

  test('with all sessions of its user', () =>
    endsBy((id) => h.api('DELETE', `/v1/iam/users/${id}/sessions`, { as: boss.token }), false));

  test('with the revocation of its key', () =>
    endsBy((id) => h.api('DELETE', `${KEYS}/${id}`, { as: boss.token }), true));

  test('with a new proof of its key', () =>
    endsBy((id) => {
      const proof = { issuer: 'staff', subject: unique('another') };
      return h.api('PUT', `${KEYS}/${id}`, { as: boss.token, body: { proof } });
    }, true));

  test('while its key is disabled', async () => {
    const id = await pod();
    const token = await exchanged();
    await h.api('POST', `${KEYS}/${id}/disable`, { as: boss.token });
    expect(outcome(await me(token))).toBe(ended);
    await h.api('POST', `${KEYS}/${id}/enable`, { as: boss.token });
    expect(outcome(await me(token))).toBe('200');
  });

  test('with its issuer, of users and of keys, also after the issuer is enabled again', async () => {
    const issuer = unique('https://issuer');
    const made = await h.api('POST', ISSUERS, {
      as: boss.token,
      body: issuerBody(unique('issuer'), issuer, { subject_claim: 'sub', create: true }),
    });
    const id = text(made.json, 'id');
    const token = (more: Json = {}) => signed({ iss: issuer, ...more });
    const ofUser = await exchanged(token());
    await pod({ proof: { issuer: text(made.json, 'name'), subject: `${subject}-pod` } });
    const ofKey = await exchanged(token({ sub: `${subject}-pod` }));
    expect([outcome(await me(ofUser)), outcome(await me(ofKey))]).toEqual(['200', '200']);
    await h.api('PUT', `${ISSUERS}/${id}`, { as: boss.token, body: { enabled: false } });
    expect([outcome(await me(ofUser)), outcome(await me(ofKey))]).toEqual([ended, ended]);
    expect(refusedBy(await exchange(token()))).toBe('400 invalid_request invalid_subject_token');
    await h.api('PUT', `${ISSUERS}/${id}`, { as: boss.token, body: { enabled: true } });
    expect([outcome(await me(ofUser)), outcome(await me(ofKey))]).toEqual([ended, ended]);
    const again = await exchanged(token());
    await h.api('POST', `${ISSUERS}/${id}/revoke-before`, { as: boss.token, body: {} });
    expect(outcome(await me(again))).toBe(ended);
  });

  test('with the end of its subject token', async () => {
    const { rows: stored } = await h.db.knex.raw<{ rows: { rest: number }[] }>(
      `select extract(epoch from expires_at - created_at)::float8 as rest from sessions where id = :id`,
      { id: text(claimsOf(await exchanged()), 'sid') },
    );
    expect(stored[0]?.rest).toSatisfy((seconds: number) => seconds > 270 && seconds <= 300);
  });
});

test.each(['header', 'payload'])(
  'of a token does not change how the names of later bodies are read (%s)',
  async (part) => {
    const member = unique('m');
    const hostile = `{"${member}":"a","\\\\":0}`;
    const encoded = (text: string) => Buffer.from(text).toString('base64url');
    const [header, payload] = part === 'header' ? [hostile, '{}'] : ['{"alg":"ES256"}', hostile];
    expect((await exchange(`${encoded(header)}.${encoded(payload)}.c2ln`)).status).toBe(400);
    const metadata = { [member]: 'a', '"': 'b' };
    const body = { description: 'own', scopes: ['chat:write'], expires_in_days: 1, metadata };
    expect((await h.api('POST', KEYS, { as: boss.token, body })).json['metadata']).toEqual(metadata);
  },
);

test('in a suspended tenant is 403, and nothing begins', async () => {
  const tenant = unique('asleep');
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: tenant, name: tenant } });
  const admin = await h.person(tenant, ['tenant-admin']);
  const issuer = unique('https://asleep');
  const users = { subject_claim: 'sub', create: true };
  await h.api('POST', ISSUERS, { as: admin.token, body: issuerBody('staff', issuer, users) });
  await exchanged(signed({ iss: issuer }));
  await h.api('POST', `/v1/iam/tenants/${tenant}/suspend`, { as: h.root.token });
  const reply = await exchange(signed({ iss: issuer }));
  expect(refusedBy(reply)).toBe('403 invalid_grant tenant_suspended');
  expect((await h.audit('auth.exchange')).at(-1)).toMatchObject({ tenant_id: tenant, result: 'refused' });
});

describe('a token of another issuer', () => {
  const READS = ['/v1/auth/me', '/v1/iam/users', '/v1/iam/roles', KEYS];

  test.each(READS)('reads %s', async (path) => {
    const token = signed({ groups: ['ops'] });
    expect(outcome(await h.api('GET', path, { as: token }))).toBe('200');
    expect(outcome(await h.api('GET', path, { as: await exchanged(token) }))).toBe('200');
  });

  test.each<[string, string, object | undefined, number]>([
    ['POST', '/v1/iam/roles', { name: 'made', permissions: ['chat:read'] }, 201],
    ['PUT', '/v1/iam/roles/made', { permissions: ['chat:write'] }, 200],
    ['DELETE', '/v1/iam/roles/made', undefined, 204],
  ])('does not write: %s %s needs an exchange', async (method, path, body, status) => {
    const token = signed({ groups: ['ops'] });
    const call = (as: string) => h.api(method, path, { as, ...(body === undefined ? {} : { body }) });
    const refused = await call(token);
    expect(outcome(refused)).toBe('403 insufficient_permission');
    expect(refused.json['detail']).toContain('/v1/auth/token');
    expect((await call(await exchanged(token))).status).toBe(status);
  });

  test('of a key without a secret writes after an exchange only', async () => {
    await pod({ scopes: ['admin:roles', 'chat:*'] });
    const token = signed();
    const name = unique('role').replace('-', '_');
    const call = (as: string) => h.api('POST', '/v1/iam/roles', { as, body: { name, permissions: ['chat:read'] } });
    expect(outcome(await call(token))).toBe('403 insufficient_permission');
    expect(outcome(await call(await exchanged(token)))).toBe('201');
    expect((await h.audit('role.create')).at(-1)).toMatchObject({ actor_type: 'api_key', target_id: name });
  });

  test('does not act on itself: its own keys and sessions need an exchange', async () => {
    const token = signed();
    const access = await exchanged(token);
    const self = text((await me(access)).json, 'id');
    for (const path of [`${KEYS}?user_id=${self}`, '/v1/auth/sessions']) {
      expect(outcome(await h.api('GET', path, { as: token }))).toBe('403 insufficient_permission');
      expect(outcome(await h.api('GET', path, { as: access }))).toBe('200');
    }
  });
});

describe('an explanation of an exchanged token', () => {
  const explain = async (credential: string, path = '/v1/chat/completions') => {
    const question = { credential, method: 'POST', path, body: '{"model":"llama-3"}' };
    const { json } = await h.api('POST', '/v1/iam/explain', { as: boss.token, body: question });
    return json;
  };

  test('allows what both its scope and its principal have, for users and for keys', async () => {
    for (const isKey of [false, true]) {
      if (isKey) await pod();
      const narrow = await exchanged(signed(), { scope: 'chat:read' });
      expect(await explain(narrow)).toMatchObject({
        code: 'insufficient_permission',
        detail: expect.stringContaining('The scope of the access token does not include chat:write'),
      });
      for (const scope of ['chat:write', 'chat:*', '*']) {
        expect(await explain(await exchanged(signed(), { scope }))).toMatchObject({ code: 'allow' });
      }
      expect(await explain(await exchanged())).toMatchObject({ code: 'allow' });
      expect(await explain(await exchanged(signed(), { scope: '*' }), '/v1/rag/query')).not.toMatchObject(
        isKey ? { code: 'allow' } : { code: 'no_route' },
      );
    }
  });

  test('names why the session of a key proves nothing', async () => {
    const id = await pod();
    const token = await exchanged();
    await h.api('POST', '/v1/auth/logout', { as: token });
    const step = async () => {
      const { steps } = await explain(token);
      return Array.isArray(steps) ? steps[7] : undefined;
    };
    expect(await step()).toMatchObject({ name: 'identity', reason: 'session_ended', key_id: id });
    await h.api('DELETE', `${KEYS}/${id}`, { as: boss.token });
    expect(await step()).toMatchObject({ reason: 'revoked', key_id: id });
  });
});

describe('a scope', () => {
  const ops = () => signed({ groups: ['ops'] });

  test('narrows reads and writes of management, the answer, and the own permissions', async () => {
    const reply = await exchange(ops(), { scope: 'admin:roles chat:write admin:roles' });
    expect(reply.json['scope']).toBe('admin:roles chat:write');
    const narrow = text(reply.json, 'access_token');
    expect((await me(narrow)).json).toMatchObject({
      permissions: ['admin:roles', 'chat:write'],
      platform_admin: false,
    });
    const whole = await exchanged(ops());
    for (const [path, status] of [
      ['/v1/iam/roles', '200'],
      ['/v1/iam/users', '403 insufficient_permission'],
    ] as const) {
      expect(outcome(await h.api('GET', path, { as: narrow }))).toBe(status);
      expect(outcome(await h.api('GET', path, { as: whole }))).toBe('200');
    }
    const refused = await h.api('GET', '/v1/iam/users', { as: narrow });
    expect(refused.json['detail']).toContain('scope of the access token does not include admin:users');
  });

  test('bounds what its token gives to others', async () => {
    const role = (as: string, permissions: string[]) =>
      h.api('POST', '/v1/iam/roles', { as, body: { name: unique('role').replace('-', '_'), permissions } });
    const narrow = await exchanged(ops(), { scope: 'admin:roles chat:write' });
    expect(outcome(await role(narrow, ['chat:write']))).toBe('201');
    expect(outcome(await role(narrow, ['chat:read']))).toBe('403 escalation');
    expect(outcome(await role(await exchanged(ops()), ['chat:read']))).toBe('201');
  });

  test('removes the right to act on oneself', async () => {
    const [whole, narrow] = [await exchanged(), await exchanged(signed(), { scope: 'chat:*' })];
    const own = { description: 'own', scopes: ['chat:write'], expires_in_days: 1 };
    const made = await h.api('POST', KEYS, { as: whole, body: own });
    expect(outcome(made)).toBe('201');
    const key = `${KEYS}/${text(made.json, 'id')}`;
    const calls: readonly [string, string, object | undefined][] = [
      ['POST', KEYS, own],
      ['GET', key, undefined],
      ['POST', `${key}/rotate`, {}],
      ['GET', '/v1/auth/sessions', undefined],
      ['DELETE', '/v1/auth/sessions', undefined],
    ];
    for (const [method, path, body] of calls) {
      const reply = await h.api(method, path, { as: narrow, ...(body === undefined ? {} : { body }) });
      expect([method, path, outcome(reply)]).toEqual([method, path, '403 insufficient_permission']);
    }
    expect(outcome(await h.api('POST', `${key}/rotate`, { as: whole, body: {} }))).toBe('200');
    // A narrowed session may still be left.
    expect((await h.api('POST', '/v1/auth/logout', { as: narrow })).status).toBe(204);
    expect(outcome(await me(narrow))).toBe('401 invalid_credential');
  });

  test('narrows a key without a secret, which then does not change itself', async () => {
    const id = await pod({ scopes: ['admin:keys', 'chat:*'] });
    const [whole, narrow] = [await exchanged(), await exchanged(signed(), { scope: 'admin:keys' })];
    expect((await me(narrow)).json['permissions']).toEqual(['admin:keys']);
    const change = (as: string) => h.api('PUT', `${KEYS}/${id}`, { as, body: { description: 'changed' } });
    expect(outcome(await change(narrow))).toBe('403 escalation');
    expect(outcome(await change(whole))).toBe('200');
  });

  test('of which the principal has nothing is rejected, and one of which it has a part is not', async () => {
    const rejected = await exchange(signed(), { scope: 'chat:write admin:users' });
    expect(refusedBy(rejected)).toBe('400 invalid_scope invalid_scope');
    expect(rejected.json['error_description']).toContain('admin:users');
    const wide = await exchanged(signed(), { scope: 'chat:* *:query' });
    expect((await me(wide)).json['permissions']).toEqual(expect.arrayContaining(['chat:*', 'rag:query']));
  });

  test('wider than the principal is answered with the permissions that both have', async () => {
    const scopeOf = async (scope: string) => (await exchange(signed(), { scope })).json['scope'];
    const whole = (await exchange()).json['scope'];
    expect(whole).toBe('agents:* chat:* embeddings:* rag:*');
    expect([await scopeOf('*'), await scopeOf('*:write chat:*')]).toEqual([
      whole,
      'agents:write chat:* chat:write embeddings:write rag:write',
    ]);
  });

  test('makes a platform administrator an ordinary user, unless it covers everything', async () => {
    const root = await h.person('default', ['admin']);
    const issuer = unique('https://root');
    const body = issuerBody(unique('root'), issuer, { subject_claim: 'sub' });
    const made = await h.api('POST', ISSUERS, { as: h.root.token, body });
    await h.db.knex('user_identities').insert({ issuer_id: text(made.json, 'id'), subject, user_id: root.id });
    const reads = async (scope: string | undefined) => {
      const token = await exchanged(signed({ iss: issuer }), scope === undefined ? {} : { scope });
      const self = (await me(token)).json['platform_admin'];
      const elsewhere = await h.api('GET', '/v1/iam/roles', { as: token, tenant: ACME });
      return [self, outcome(elsewhere)];
    };
    expect(await reads(undefined)).toEqual([true, '200']);
    expect(await reads('*')).toEqual([true, '200']);
    expect(await reads('*:*')).toEqual([true, '200']);
    expect(await reads('admin:* audit:*')).toEqual([false, '403 tenant_mismatch']);
  });
});
