/** /v1/iam/issuers: authorities whose tokens a tenant accepts. */

import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { makeAuthority } from '../support/certificates.ts';
import { startIssuer, type TestIssuer } from '../support/issuer.ts';
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
const ISSUERS = '/v1/iam/issuers';
const SECRET = 'the secret of a client 7Qx';

let h: Harness;
let boss: Person;
let theirs: Person;
/** Holds `admin:*` and nothing else. */
let clerk: Person;
let keys: TestIssuer;
it.beforeAll(async ({ harness }) => {
  h = harness;
  keys = await startIssuer();
  for (const id of [ACME, GLOBEX]) await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  boss = await h.person(ACME, ['tenant-admin']);
  theirs = await h.person(GLOBEX, ['tenant-admin']);
  const role = { name: 'clerk', permissions: ['admin:*'] };
  await h.api('POST', '/v1/iam/roles', { as: h.root.token, tenant: ACME, body: role });
  clerk = await h.person(ACME, ['clerk']);
});
afterAll(() => keys.close());

let n = 0;
let name = '';
let url = '';
beforeEach(() => {
  n += 1;
  name = `issuer-${n}`;
  url = `https://login-${unique('x')}.example/realms/staff`;
});

const body = (members: object = {}) => ({ name, issuer: url, audiences: ['postern'], jwks: keys.jwks(), ...members });
const create = (members: object = {}, as = boss.token) => h.api('POST', ISSUERS, { as, body: body(members) });
async function made(members: object = {}, as = boss.token): Promise<string> {
  const reply = await create(members, as);
  expect([outcome(reply), reply.json['errors']]).toEqual(['201', undefined]);
  return text(reply.json, 'id');
}
const get = (id: string, as = boss.token) => h.api('GET', `${ISSUERS}/${id}`, { as });
const put = (id: string, changes: object, as = boss.token) => h.api('PUT', `${ISSUERS}/${id}`, { as, body: changes });
const post = (id: string, verb: string, members: object = {}, as = boss.token) =>
  h.api('POST', `${ISSUERS}/${id}/${verb}`, { as, body: members });
const remove = (id: string, query = '', as = boss.token) => h.api('DELETE', `${ISSUERS}/${id}${query}`, { as });
const failed = (reply: Reply): unknown => [outcome(reply), reply.json['errors']];

/** The columns that no response shows. */
export async function hiddenOf(id: string): Promise<Json> {
  const { rows: found } = await h.db.knex.raw<{ rows: Json[] }>(
    'select earlier, users_since, revoked_before, sso_secret_sealed from issuers where id = ?',
    [id],
  );
  return found[0] ?? {};
}

describe('an issuer', () => {
  test('is made with its defaults, shown, changed member by member and deleted', async () => {
    const reply = await h.api('POST', ISSUERS, { as: boss.token, body: { name, issuer: url, audiences: ['postern'] } });
    const id = text(reply.json, 'id');
    expect([outcome(reply), reply.headers['location']]).toEqual(['201', `${ISSUERS}/${id}`]);
    expect(reply.json).toEqual({
      id,
      tenant_id: ACME,
      name,
      kind: 'oidc',
      issuer: url,
      audiences: ['postern'],
      jwks_uri: null,
      jwks: null,
      ca: null,
      algorithms: ['RS256', 'ES256', 'EdDSA'],
      token_types: null,
      required_claims: [],
      users: null,
      sso: null,
      enabled: true,
      max_age_seconds: null,
      leeway_seconds: 5,
      revoked_before: null,
      keys: { count: 0, kids: [], pasted: false, fetched_at: null, error: null, stale: false },
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    const rules = [{ claim: '/kubernetes.io/namespace', in: ['team-*', 'shared'] }];
    expect((await put(id, { required_claims: rules, enabled: false })).json).toMatchObject({
      required_claims: rules,
      enabled: false,
      audiences: ['postern'],
    });
    expect((await put(id, { users: {} })).json).toMatchObject({
      users: { subject_claim: 'sub', create: false, roles: [], default_roles: [] },
    });
    expect((await put(id, { users: null })).json).toMatchObject({ users: null });
    expect(outcome(await remove(id))).toBe('204');
    expect(outcome(await get(id))).toBe('404 not_found');
  });

  test('shows a pasted key set and its age, which begins anew when it is pasted again', async () => {
    const id = await made();
    const before = (await get(id)).json;
    expect(before).toMatchObject({
      jwks: { keys: [{ kid: keys.key.kid }] },
      keys: { count: 1, kids: [keys.key.kid], pasted: true, fetched_at: expect.any(String), stale: false },
    });
    await h.db.knex.raw(`update issuers set jwks_set_at = jwks_set_at - interval '91 days' where id = ?`, [id]);
    const old = (await get(id)).json['keys'];
    await put(id, { leeway_seconds: 6 });
    expect((await get(id)).json['keys']).toEqual(old);
    await put(id, { jwks: keys.jwks() });
    expect((await get(id)).json['keys']).not.toEqual(old);
  });

  test('of a trust domain takes its bundle, and shows it in a form that can be pasted again', async () => {
    const issuer = `spiffe://${unique('prod')}.example`;
    const bundle = {
      keys: [
        { ...keys.key.jwk, use: 'jwt-svid' },
        { ...keys.key.jwk, use: 'x509-svid' },
      ],
    };
    const id = await made({ kind: 'spiffe', issuer, jwks: bundle });
    const shown = (await get(id)).json;
    expect(shown).toMatchObject({ token_types: null, keys: { count: 1 } });
    expect(outcome(await put(id, { jwks: shown['jwks'] }))).toBe('200');
  });

  test('is found by a part of its name or value, and by whether it is enabled', async () => {
    const one = await made({ name: `needle-${name}` });
    const other = await made({ name: `other-${name}`, issuer: `${url}/needle`, enabled: false });
    const list = (query: string) => h.api('GET', `${ISSUERS}?${query}`, { as: boss.token });
    expect(column(await list(`q=NEEDLE&limit=200`), 'id')).toEqual(expect.arrayContaining([one, other]));
    expect(column(await list(`q=needle-${name}`), 'id')).toEqual([one]);
    expect(column(await list(`q=needle&enabled=false&count=true`), 'id')).toContain(other);
    expect((await list(`q=needle-${name}&count=true`)).json).toMatchObject({ total: 1 });
    const page = await list('limit=1');
    const next = await list(`limit=1&cursor=${encodeURIComponent(text(page.json, 'next_cursor'))}`);
    expect(rows(next)[0]?.['name']).not.toBe(rows(page)[0]?.['name']);
  });

  test('has a name of its own in the tenant, and a value of its own in the installation while it is enabled', async () => {
    const id = await made();
    expect(outcome(await create({ issuer: `${url}/2` }))).toBe('409 already_exists');
    const other = { name: `${name}-b` };
    expect(outcome(await create(other))).toBe('409 already_exists');
    expect(outcome(await create(other, theirs.token))).toBe('409 already_exists');
    const disabled = await made({ ...other, enabled: false }, theirs.token);
    expect(outcome(await put(disabled, { enabled: true }, theirs.token))).toBe('409 already_exists');
    await put(id, { enabled: false });
    expect(outcome(await put(disabled, { enabled: true }, theirs.token))).toBe('200');
  });

  test('leaves audit rows of each change, without the secret of its client', async () => {
    const sso = { client_id: 'console', client_secret: SECRET, label: 'Log in' };
    const id = await made({ users: {}, sso });
    await put(id, { sso: { ...sso, label: 'Other' } });
    await post(id, 'revoke-before');
    await remove(id);
    const ours = (await h.audit()).filter((row) => row['target_id'] === id);
    expect(ours.map((row) => row['action'])).toEqual([
      'issuer.create',
      'issuer.update',
      'issuer.revoke_before',
      'issuer.delete',
    ]);
    expect(JSON.stringify(ours)).not.toContain(SECRET);
    expect(JSON.stringify(ours)).toContain('"client_secret_set":true');
  });
});

const CERTIFICATE = makeAuthority().certPem;

describe('the values of an issuer', () => {
  test.each<[string, object, string]>([
    ['a name with a capital letter', { name: 'Staff' }, '/name'],
    ['a value that is no address', { issuer: 'login.example' }, '/issuer'],
    ['a value with a user name', { issuer: 'https://me@login.example' }, '/issuer'],
    ['a value with an empty user name', { issuer: 'https://@login.example' }, '/issuer'],
    ['a value with a query', { issuer: 'https://login.example/?a=b' }, '/issuer'],
    ['a value with an empty query', { issuer: 'https://login.example?' }, '/issuer'],
    ['a value with a fragment', { issuer: 'https://login.example#' }, '/issuer'],
    ['a value with a line break', { issuer: 'https://login.example\n' }, '/issuer'],
    ['a value with a space', { issuer: ' https://login.example' }, '/issuer'],
    ['a value with plain HTTP', { issuer: 'http://login.example' }, '/issuer'],
    ['plain HTTP on loopback that no setting allows', { issuer: 'http://127.0.0.1:8080' }, '/issuer'],
    ['a value of another scheme', { issuer: 'file:///etc/passwd' }, '/issuer'],
    ['a scheme in capitals', { issuer: 'HTTPS://login.example' }, '/issuer'],
    ['an oidc issuer with a trust domain', { issuer: 'spiffe://prod.example' }, '/issuer'],
    ['a trust domain with a path', { kind: 'spiffe', issuer: 'spiffe://prod.example/ns' }, '/issuer'],
    ['a trust domain with a capital letter', { kind: 'spiffe', issuer: 'spiffe://Prod.example' }, '/issuer'],
    ['a trust domain with https', { kind: 'spiffe' }, '/issuer'],
    ['a trust domain without keys', { kind: 'spiffe', issuer: 'spiffe://prod.example', jwks: null }, '/jwks'],
    ['no audience', { audiences: [] }, '/audiences'],
    ['an empty audience', { audiences: [''] }, '/audiences/0'],
    ['both sources of keys', { jwks_uri: 'https://login.example/keys' }, '/jwks'],
    ['an address of keys with plain HTTP', { jwks: null, jwks_uri: 'http://login.example/keys' }, '/jwks_uri'],
    ['an address of keys with a fragment', { jwks: null, jwks_uri: 'https://login.example/keys#a' }, '/jwks_uri'],
    ['a key set without keys', { jwks: { keys: [] } }, '/jwks/keys'],
    ['a symmetric key', { jwks: { keys: [{ kty: 'oct', k: 'c2VjcmV0' }] } }, '/jwks'],
    ['a certificate that is none', { ca: 'hello' }, '/ca'],
    ['a broken certificate', { ca: CERTIFICATE.replace(/^MII/m, 'AAAA') }, '/ca'],
    ['a private key', { ca: `${CERTIFICATE}-----BEGIN PRIVATE KEY-----\n` }, '/ca'],
    ['an algorithm with a shared secret', { algorithms: ['HS256'] }, '/algorithms/0'],
    ['the algorithm none', { algorithms: ['none'] }, '/algorithms/0'],
    ['no algorithm', { algorithms: [] }, '/algorithms'],
    ['no token type', { token_types: [] }, '/token_types'],
    ['a rule without values', { required_claims: [{ claim: 'hd', in: [] }] }, '/required_claims/0/in'],
    ['a pointer with a lone tilde', { required_claims: [{ claim: '/a~b', in: ['x'] }] }, '/required_claims/0/claim'],
    [
      'a glob with nine stars',
      { required_claims: [{ claim: 'a', in: ['*a*a*a*a*a*a*a*a*'] }] },
      '/required_claims/0/in/0',
    ],
    [
      'a mapping to an unknown role',
      { users: { roles: [{ claim: 'r', in: ['x'], roles: ['wizard'] }] } },
      '/users/roles/0/roles/0',
    ],
    ['an unknown default role', { users: { default_roles: ['developer', 'wizard'] } }, '/users/default_roles/1'],
    ['a text that is no role name', { users: { default_roles: ['No Role'] } }, '/users/default_roles/0'],
    ['a subject pointer that is none', { users: { subject_claim: '/~' } }, '/users/subject_claim'],
    ['a login without users', { sso: { client_id: 'a', label: 'L' } }, '/sso'],
    [
      'a login of a trust domain',
      { kind: 'spiffe', issuer: 'spiffe://prod.example', users: {}, sso: { client_id: 'a', label: 'L' } },
      '/sso',
    ],
    ['a login without openid', { users: {}, sso: { client_id: 'a', label: 'L', scopes: ['email'] } }, '/sso/scopes'],
    [
      'a scope with a space',
      { users: {}, sso: { client_id: 'a', label: 'L', scopes: ['openid email'] } },
      '/sso/scopes/0',
    ],
    [
      'an acr with a space',
      { users: {}, sso: { client_id: 'a', label: 'L', required_acr: 'a b' } },
      '/sso/required_acr',
    ],
    ['a negative age', { max_age_seconds: -1 }, '/max_age_seconds'],
    ['a tolerance of more than a minute', { leeway_seconds: 61 }, '/leeway_seconds'],
    ['an unknown member', { tenant_claim: 'tid' }, '/tenant_claim'],
  ])('%s is rejected with the path of its member', async (_name, members, path) => {
    const reply = await create(members);
    expect(failed(reply)).toMatchObject(['422 invalid_field', [{ path }]]);
  });

  test.each<[string, object]>([
    ['an address of keys with a query', { jwks: null, jwks_uri: 'https://login.example/keys?p=b2c' }],
    ['a port and a path with a slash at its end', { issuer: 'https://login.example:8443/realms/a/' }],
    ['certificates with text between them', { jwks: null, ca: `# root\n${CERTIFICATE}\n# next\n${CERTIFICATE}` }],
    ['every algorithm', { algorithms: ['RS512', 'PS256', 'ES384', 'EdDSA', 'EdDSA'].slice(0, 4) }],
    ['the absent type only', { token_types: [''] }],
    ['eight stars', { required_claims: [{ claim: '/a~1b~0', in: ['*a*a*a*a*a*a*a*'] }] }],
  ])('%s is accepted', async (_name, members) => {
    const id = await made(members);
    expect(outcome(await remove(id))).toBe('204');
  });

  test('a change is checked together with what is stored', async () => {
    const id = await made();
    expect(failed(await put(id, { jwks_uri: 'https://login.example/keys' }))).toMatchObject([
      '422 invalid_field',
      [{ path: '/jwks_uri' }],
    ]);
    expect(outcome(await put(id, { jwks: null, jwks_uri: 'https://login.example/keys' }))).toBe('200');
    expect(failed(await put(id, { sso: { client_id: 'a', label: 'L' } }))).toMatchObject([
      '422 invalid_field',
      [{ path: '/sso' }],
    ]);
    expect(failed(await put(id, { kind: 'spiffe' }))).toMatchObject(['422 invalid_field', [{ path: '/kind' }]]);
  });
});

test('a caller that holds admin:* and no role of the mapping reads issuers', async () => {
  expect(outcome(await get(await made(), clerk.token))).toBe('200');
});
