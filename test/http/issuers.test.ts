/** /v1/iam/issuers: authorities whose tokens a tenant accepts. */

import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
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
  startHarness,
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
async function hiddenOf(id: string): Promise<Json> {
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
      'a glob of 257 characters, which would match nothing',
      { required_claims: [{ claim: 'a', in: ['x'.repeat(512), `${'x'.repeat(256)}*`] }] },
      '/required_claims/0/in/1',
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
    ['a glob of 256 characters', { required_claims: [{ claim: 'a', in: [`${'x'.repeat(255)}*`] }] }],
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

/** Makes a user of ACME with these roles, linked to a subject of the issuer. */
async function linked(issuer: string, roles: readonly string[], subject = unique('subject')): Promise<Person> {
  const person = await h.person(ACME, roles);
  await h.db.knex('user_identities').insert({ issuer_id: issuer, subject, user_id: person.id });
  return person;
}

async function provedKey(issuer: string, scopes: readonly string[], subject = unique('pod')): Promise<string> {
  const shown = (await get(issuer)).json;
  const key = { description: name, scopes, expires_in_days: 1, proof: { issuer: shown['name'], subject } };
  const reply = await h.api('POST', '/v1/iam/api-keys', { as: boss.token, body: key });
  expect([outcome(reply), reply.json['errors']]).toEqual(['201', undefined]);
  return text(reply.json, 'id');
}

const rule = (roles: readonly string[], value = 'staff') => ({ claim: 'groups', in: [value], roles });
const WIDER: readonly (readonly [string, () => object])[] = [
  ['another audience', () => ({ audiences: ['postern', 'other'] })],
  ['another algorithm', () => ({ algorithms: ['RS256', 'ES256', 'EdDSA', 'PS256'] })],
  ['another type', () => ({ token_types: ['JWT', 'JOSE'] })],
  ['one rule less', () => ({ required_claims: [] })],
  ['a rule with another value', () => ({ required_claims: [{ claim: 'hd', in: ['acme.example', 'globex.example'] }] })],
  ['a rule with a glob', () => ({ required_claims: [{ claim: 'hd', in: ['*.example'] }] })],
  ['a rule on another claim', () => ({ required_claims: [{ claim: 'domain', in: ['acme.example'] }] })],
  ['a longer age', () => ({ max_age_seconds: 7200 })],
  ['no bound of the age', () => ({ max_age_seconds: null })],
  ['more tolerance', () => ({ leeway_seconds: 6 })],
  ['other keys', () => ({ jwks: { keys: [{ ...keys.key.jwk, kid: 'other' }] } })],
  ['keys from an address', () => ({ jwks: null, jwks_uri: 'https://login.example/keys' })],
  ['another certificate authority', () => ({ ca: CERTIFICATE })],
  ['another value', () => ({ issuer: `${url}/other` })],
  ['another subject', () => ({ users: { subject_claim: 'oid', roles: [rule(['developer'])] } })],
  ['a login', () => ({ sso: { client_id: 'console', label: 'Log in' } })],
];
const NARROWER: readonly (readonly [string, () => object])[] = [
  ['the same audiences in another order', () => ({ audiences: ['postern', 'postern'] })],
  ['an algorithm less', () => ({ algorithms: ['ES256'] })],
  ['a type less', () => ({ token_types: ['JWT'] })],
  [
    'another rule',
    () => ({
      required_claims: [
        { claim: 'hd', in: ['acme.example'] },
        { claim: 'x', in: ['y'] },
      ],
    }),
  ],
  ['a shorter age', () => ({ max_age_seconds: 60 })],
  ['less tolerance', () => ({ leeway_seconds: 0 })],
  ['another name', () => ({ name: `${name}-renamed` })],
  ['no roles', () => ({ users: { roles: [] } })],
  ['a narrower mapping', () => ({ users: { roles: [{ ...rule(['developer']), in: ['staff'] }] } })],
  ['no users', () => ({ users: null })],
  ['being disabled', () => ({ enabled: false })],
];

describe('a caller gives by an issuer only what it has', () => {
  const base = () => ({
    required_claims: [{ claim: 'hd', in: ['acme.example'] }],
    token_types: ['JWT'],
    max_age_seconds: 3600,
    users: { roles: [rule(['developer'], 'sta*')] },
  });

  test.each([
    ['developer', '403 escalation'],
    ['admin', '403 escalation'],
    ['clerk', '201'],
  ])('in the mapping of a new issuer: %s', async (role, expected) => {
    expect(outcome(await create({ users: { roles: [rule([role])] } }, clerk.token))).toBe(expected);
    const users = { default_roles: [role] };
    expect(outcome(await create({ name: `${name}-b`, issuer: `${url}/b`, users }, clerk.token))).toBe(expected);
  });

  test('admin is mapped by platform administrators only', async () => {
    const users = { default_roles: ['admin'] };
    expect(outcome(await create({ users }))).toBe('403 escalation');
    const made = await h.api('POST', ISSUERS, { as: h.root.token, tenant: ACME, body: body({ users }) });
    expect(outcome(made)).toBe('201');
    const id = text(made.json, 'id');
    expect(outcome(await put(id, { audiences: ['postern', 'b'] }))).toBe('403 escalation');
    expect(outcome(await put(id, { leeway_seconds: 0 }))).toBe('200');
    expect(outcome(await put(id, { users: { default_roles: [] } }))).toBe('200');
    expect(outcome(await put(id, { audiences: ['postern', 'b'] }))).toBe('200');
  });

  test.each(WIDER)('%s needs what the mapping gives', async (_name, changes) => {
    const id = await made(base());
    const before = (await get(id)).json;
    expect(outcome(await put(id, changes(), clerk.token))).toBe('403 escalation');
    expect((await get(id)).json).toEqual(before);
    expect(outcome(await put(id, changes()))).toBe('200');
  });

  test.each(NARROWER)('%s needs nothing', async (_name, changes) => {
    const id = await made(base());
    expect(outcome(await put(id, changes(), clerk.token))).toBe('200');
    expect(await hiddenOf(id)).toMatchObject({ earlier: null, users_since: null, revoked_before: null });
  });

  test('to enable an issuer again needs what it gives, and refuses older tokens', async () => {
    const id = await made(base());
    await put(id, { enabled: false }, clerk.token);
    expect(outcome(await put(id, { enabled: true }, clerk.token))).toBe('403 escalation');
    const reply = await put(id, { enabled: true });
    expect([outcome(reply), reply.json['revoked_before']]).toEqual(['200', expect.stringMatching(/:\d\d\.000Z$/)]);
  });

  test.each([
    ['a role for another value', { roles: [rule(['developer'], 'sta*'), rule(['developer'], 'guests')] }],
    ['a role for everyone', { roles: [rule(['developer'], 'sta*')], default_roles: ['developer'] }],
    ['a role for a wider value', { roles: [rule(['developer'], '*')] }],
    ['the same roles for new users', { roles: [rule(['developer'], 'sta*')], create: true }],
  ])('%s needs this role, and older tokens do not give it', async (_name, users) => {
    const id = await made(base());
    expect(outcome(await put(id, { users }, clerk.token))).toBe('403 escalation');
    expect(outcome(await put(id, { users }))).toBe('200');
    expect(await hiddenOf(id)).toMatchObject({ earlier: null, users_since: expect.any(Date), revoked_before: null });
  });

  test('the keys with a proof count', async () => {
    const id = await made();
    const wider = { audiences: ['postern', 'b'] };
    await provedKey(id, ['admin:keys']);
    expect(outcome(await put(id, wider, clerk.token))).toBe('200');
    const key = await provedKey(id, ['chat:write']);
    const refused = await put(id, { audiences: ['postern', 'c'] }, clerk.token);
    expect([outcome(refused), refused.json['detail']]).toEqual([
      '403 escalation',
      'A key of this issuer has permissions that you do not have: chat:write.',
    ]);
    await h.api('DELETE', `/v1/iam/api-keys/${key}`, { as: boss.token });
    expect(outcome(await put(id, { audiences: ['postern', 'c'] }, clerk.token))).toBe('200');
  });

  test('each key with a proof waits for a turn of its own if the keys before it took long', async () => {
    const id = await made();
    const actions = Array.from({ length: 50 }, (_, i) => `admin:a${i}`);
    const readings = async (audience: string): Promise<number> => {
      const clock = vi.spyOn(performance, 'now');
      try {
        expect(outcome(await put(id, { audiences: ['postern', audience] }, clerk.token))).toBe('200');
        return clock.mock.calls.length;
      } finally {
        clock.mockRestore();
      }
    };
    // Other work of the process reads the clock as well.
    const before = Math.min(await readings('b'), await readings('d'), await readings('e'));
    for (const action of actions) await provedKey(id, [action]);
    expect(await readings('c')).toBeGreaterThanOrEqual(before + actions.length);
  });

  test('keys whose comparison takes longer than 300 ms are refused, except to a platform administrator', async () => {
    const id = await made();
    for (let i = 0; i < 20; i += 1) await provedKey(id, [`admin:a${i}`]);
    const change = (audience: string, as: string) => put(id, { audiences: ['postern', audience] }, as);
    const real = performance.now.bind(performance);
    let aheadMs = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => {
      aheadMs += 20;
      return real() + aheadMs;
    });
    try {
      expect((await change('b', clerk.token)).json).toMatchObject({
        code: 'escalation',
        detail: expect.stringContaining('too different to compare'),
      });
      expect(outcome(await change('c', h.root.token))).toBe('200');
    } finally {
      clock.mockRestore();
    }
    expect(outcome(await change('d', clerk.token))).toBe('200');
  });

  test('the linked users count, while tokens prove users', async () => {
    const id = await made();
    await linked(id, ['tenant-admin']);
    expect(outcome(await put(id, { audiences: ['postern', 'b'] }, clerk.token))).toBe('200');
    expect(outcome(await put(id, { users: {} }, clerk.token))).toBe('403 escalation');
    expect(outcome(await put(id, { users: {} }))).toBe('200');
    expect(outcome(await put(id, { audiences: ['postern'] }, clerk.token))).toBe('200');
    expect(outcome(await put(id, { audiences: ['postern', 'd'] }, clerk.token))).toBe('403 escalation');
    expect(outcome(await put(id, { audiences: ['postern', 'd'] }))).toBe('200');
  });

  test('a user linked to the issuer that gives itself nothing new is no stronger than itself', async () => {
    const id = await made({ users: {} });
    await h.db.knex('user_identities').insert({ issuer_id: id, subject: unique('self'), user_id: boss.id });
    expect(outcome(await put(id, { audiences: ['postern', 'b'] }))).toBe('200');
    expect(outcome(await put(id, { audiences: ['postern', 'c'] }, clerk.token))).toBe('403 escalation');
  });

  test('a linked platform administrator is out of reach of a tenant administrator', async () => {
    const id = await made({ users: {} });
    await linked(id, ['admin']);
    expect(outcome(await put(id, { jwks: { keys: [{ ...keys.key.jwk, kid: 'mine' }] } }))).toBe('403 escalation');
    const reply = await h.api('PUT', `${ISSUERS}/${id}`, {
      as: h.root.token,
      tenant: ACME,
      body: { audiences: ['postern', 'b'] },
    });
    expect(outcome(reply)).toBe('200');
  });
});

describe('a wider change applies to tokens issued after it', () => {
  test('the members before it are kept, with the second of the change', async () => {
    const id = await made();
    const since = Math.floor(Date.now() / 1000) * 1000;
    await put(id, { audiences: ['postern', 'b'] });
    const { earlier } = await hiddenOf(id);
    expect(earlier).toMatchObject({
      audiences: ['postern'],
      algorithms: ['RS256', 'ES256', 'EdDSA'],
      tokenTypes: ['at+jwt', 'JWT', ''],
      requiredClaims: [],
    });
    expect(earlier).not.toHaveProperty('keys');
    const { untilMs } = Object.assign({ untilMs: 0 }, earlier);
    expect([untilMs >= since, untilMs <= Date.now(), untilMs % 1000]).toEqual([true, true, 0]);
  });

  test('of two within a day, both count; the first is forgotten after a day', async () => {
    const id = await made({ max_age_seconds: 60 });
    await put(id, { audiences: ['postern', 'b'] });
    await put(id, { audiences: ['postern', 'b'], max_age_seconds: 120, required_claims: [{ claim: 'x', in: ['y'] }] });
    await put(id, { required_claims: [] });
    expect((await hiddenOf(id))['earlier']).toMatchObject({
      audiences: ['postern'],
      maxAgeSeconds: 60,
      requiredClaims: [{ claim: 'x', in: ['y'] }],
    });
    await h.db.knex.raw(
      `update issuers set earlier = jsonb_set(earlier, '{untilMs}', to_jsonb((earlier->>'untilMs')::bigint - 86400001)) where id = ?`,
      [id],
    );
    await put(id, { audiences: ['postern', 'b', 'c'] });
    expect((await hiddenOf(id))['earlier']).toMatchObject({ audiences: ['postern', 'b'], maxAgeSeconds: 120 });
  });

  test('other keys leave the former ones as what older tokens must satisfy', async () => {
    const id = await made();
    await put(id, { jwks: { keys: [{ ...keys.key.jwk, kid: 'other' }] } });
    expect((await hiddenOf(id))['earlier']).toMatchObject({ keys: [{ kid: keys.key.kid }] });
    await put(id, { jwks: null, jwks_uri: 'https://login.example/keys' });
    expect((await hiddenOf(id))['earlier']).toMatchObject({ keys: [] });
    expect((await get(id)).json['keys']).toMatchObject({ count: 0, pasted: false, fetched_at: null });
  });

  test.each([
    ['issuer', () => ({ issuer: `${url}/other` })],
    ['users.subject_claim', () => ({ users: { subject_claim: 'oid' } })],
  ])('a change of %s refuses older tokens', async (_name, changes) => {
    const id = await made({ users: {} });
    expect((await put(id, changes())).json['revoked_before']).toMatch(/:\d\d\.000Z$/);
  });
});

describe('the end of tokens', () => {
  async function session(issuer: string, user: Person, sso = false): Promise<string> {
    const id = `ses_${Math.random()
      .toString(36)
      .slice(2)
      .padEnd(26, '0')
      .replace(/[ilou]/g, '0')}`;
    const expires_at = new Date(Date.now() + 3_600_000);
    const row = { id, user_id: user.id, issuer_id: issuer, expires_at, sso_subject: sso ? 'subject' : null };
    await h.db.knex('sessions').insert(row);
    return id;
  }
  const isEnded = async (id: string): Promise<boolean> => {
    const { rows: found } = await h.db.knex.raw<{ rows: { ended: boolean }[] }>(
      'select ended_at is not null as ended from sessions where id = ?',
      [id],
    );
    return found[0]?.ended ?? true;
  };

  test('revoke-before refuses older tokens and ends the sessions, and moving it back gives nothing back', async () => {
    const id = await made({ users: {} });
    const user = await linked(id, []);
    const other = await made({ name: `${name}-other`, issuer: `${url}/other`, users: {} });
    const [ours, others] = [await session(id, user), await session(other, user)];
    const reply = await post(id, 'revoke-before', {}, clerk.token);
    const time = text(reply.json, 'revoked_before');
    expect([outcome(reply), time]).toEqual(['200', expect.stringMatching(/:\d\d\.000Z$/)]);
    expect([await isEnded(ours), await isEnded(others)]).toEqual([true, false]);
    const back = await post(id, 'revoke-before', { time: '2020-01-01T00:00:00Z' });
    expect([outcome(back), back.json['revoked_before']]).toEqual(['200', time]);
    expect(failed(await post(id, 'revoke-before', { time: '2999-01-01T00:00:00Z' }))).toMatchObject([
      '422 invalid_field',
      [{ path: '/time' }],
    ]);
  });

  test('a wider change does not move the time of revoke-before back', async () => {
    const id = await made({ users: {} });
    const time = new Date(Date.now() + 50_000).toISOString();
    expect((await post(id, 'revoke-before', { time })).json['revoked_before']).toBe(time);
    await put(id, { enabled: false });
    expect((await put(id, { enabled: true })).json['revoked_before']).toBe(time);
  });

  test.each(['2020-12-31T23:59:60Z', '2020-01-01T00:00:00+02'])('revoke-before %s is no time', async (time) => {
    const id = await made();
    expect(failed(await post(id, 'revoke-before', { time }))).toMatchObject(['422 invalid_field', [{ path: '/time' }]]);
  });

  const TEAM = { claim: 'team', in: ['blue', 'red'] };

  test.each<[string, object, readonly [boolean, boolean]]>([
    ['disabling', { enabled: false }, [true, true]],
    ['removing its users', { users: null, sso: null }, [true, true]],
    ['removing its login', { sso: null }, [false, true]],
    ['another label', { sso: { client_id: 'console', label: 'Other' } }, [false, false]],
    ['another client of its login', { sso: { client_id: 'other', label: 'Log in' } }, [false, true]],
    ['a required_acr', { sso: { client_id: 'console', label: 'Log in', required_acr: 'mfa' } }, [false, true]],
    ['a further required claim', { required_claims: [TEAM, { claim: 'hd', in: ['acme.example'] }] }, [true, true]],
    ['a stricter required claim', { required_claims: [{ claim: 'team', in: ['blue'] }] }, [true, true]],
    ['a weaker required claim', { required_claims: [{ claim: 'team', in: ['*'] }] }, [false, false]],
    ['the same required claim', { required_claims: [TEAM] }, [false, false]],
    ['no required claim', { required_claims: [] }, [false, false]],
  ])('%s ends exactly the sessions whose tokens the issuer may refuse now', async (_name, changes, ended) => {
    const id = await made({ users: {}, required_claims: [TEAM], sso: { client_id: 'console', label: 'Log in' } });
    const user = await linked(id, []);
    const [exchanged, login] = [await session(id, user), await session(id, user, true)];
    expect(outcome(await put(id, changes))).toBe('200');
    expect([await isEnded(exchanged), await isEnded(login)]).toEqual(ended);
  });

  test('an issuer with keys or linked users is deleted with force only, which ends all of them', async () => {
    const id = await made({ users: { default_roles: ['analyst'] } });
    const user = await linked(id, []);
    await h.db.knex.raw(
      `insert into user_roles (user_id, role_name, source, tenant_id, status) values (?, 'analyst', ?, ?, 'active')`,
      [user.id, `issuer:${id}`, ACME],
    );
    const key = await provedKey(id, ['chat:write']);
    const began = await session(id, user);
    expect(outcome(await remove(id))).toBe('409 in_use');
    expect(outcome(await remove(id, '?force=true', clerk.token))).toBe('403 escalation');
    expect(await isEnded(began)).toBe(false);
    expect(outcome(await remove(id, '?force=true'))).toBe('204');
    expect(await isEnded(began)).toBe(true);
    const shown = await h.api('GET', `/v1/iam/api-keys/${key}`, { as: boss.token });
    expect(shown.json).toMatchObject({ status: 'revoked', proof: null });
    const person = await h.api('GET', `/v1/iam/users/${user.id}`, { as: boss.token });
    expect(person.json).toMatchObject({ issuer_roles: [], identities: [], status: 'active' });
  });

  test('a revoked key does not keep an issuer', async () => {
    const id = await made();
    const key = await provedKey(id, ['chat:write']);
    await h.api('DELETE', `/v1/iam/api-keys/${key}`, { as: boss.token });
    expect(outcome(await remove(id, '', clerk.token))).toBe('204');
  });

  test('a role that a mapping names is deleted with force only, and the mapping loses it', async () => {
    const role = { name, permissions: ['chat:read'] };
    await h.api('POST', '/v1/iam/roles', { as: boss.token, body: role });
    const users = { roles: [rule([name]), rule([name, 'analyst'], 'b')], default_roles: [name] };
    const id = await made({ users });
    const drop = (query = '') => h.api('DELETE', `/v1/iam/roles/${name}${query}`, { as: boss.token });
    expect(outcome(await drop())).toBe('409 in_use');
    expect(outcome(await drop('?force=true'))).toBe('204');
    expect((await get(id)).json['users']).toMatchObject({ roles: [rule(['analyst'], 'b')], default_roles: [] });
  });

  test('the issuers of a deleted tenant are deleted, so another tenant may have their value', async () => {
    const gone = unique('gone');
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: gone, name: gone } });
    await h.api('POST', ISSUERS, { as: h.root.token, tenant: gone, body: body() });
    expect(outcome(await create())).toBe('409 already_exists');
    expect(outcome(await h.api('DELETE', `/v1/iam/tenants/${gone}`, { as: h.root.token }))).toBe('204');
    expect(outcome(await create())).toBe('201');
  });
});

describe('the secret of a client', () => {
  const sso = (members: object = {}) => ({ client_id: 'console', label: 'Log in', ...members });

  test('is in no answer, and stays while requests do not name it', async () => {
    const reply = await create({ users: {}, sso: sso({ client_secret: SECRET }) });
    const id = text(reply.json, 'id');
    expect(reply.json['sso']).toEqual({
      client_id: 'console',
      scopes: ['openid', 'profile', 'email'],
      label: 'Log in',
      client_secret_set: true,
    });
    const { sso_secret_sealed: sealed } = await hiddenOf(id);
    const changed = await put(id, { sso: sso({ label: 'Other' }) });
    expect(changed.json['sso']).toMatchObject({ label: 'Other', client_secret_set: true });
    expect((await hiddenOf(id))['sso_secret_sealed']).toEqual(sealed);
    const list = await h.api('GET', `${ISSUERS}?q=${name}`, { as: boss.token });
    for (const answer of [reply, changed, list, await get(id)]) expect(answer.text).not.toContain(SECRET);
    const invalid = await put(id, { sso: sso({ client_secret: `${SECRET}é` }) });
    expect([outcome(invalid), invalid.text.includes(SECRET)]).toEqual(['422 invalid_field', false]);
    await put(id, { sso: null });
    expect((await hiddenOf(id))['sso_secret_sealed']).toBeNull();
  });

  test('is not sent to another issuer: a change of the value needs it again', async () => {
    const id = await made({ users: {}, sso: sso({ client_secret: SECRET }) });
    const issuer = `${url}/other`;
    expect(failed(await put(id, { issuer }))).toMatchObject(['422 invalid_field', [{ path: '/sso/client_secret' }]]);
    expect(failed(await put(id, { issuer, sso: sso() }))).toMatchObject([
      '422 invalid_field',
      [{ path: '/sso/client_secret' }],
    ]);
    expect(outcome(await put(id, { issuer, sso: sso({ client_secret: SECRET }) }))).toBe('200');
    expect(outcome(await put(id, { issuer: `${url}/third`, sso: null }))).toBe('200');
  });
});

describe('the test of a token', () => {
  const steps = (reply: Reply): Readonly<Record<string, unknown>> => {
    const found = reply.json['steps'];
    return Object.fromEntries((Array.isArray(found) ? found : []).map((one: Json) => [one['step'], one['outcome']]));
  };
  const ALL = ['parsed', 'issuer', 'keys', 'algorithm', 'signature', 'type', 'audience', 'required_claims', 'time'];
  const passed = (...more: readonly string[]) => Object.fromEntries([...ALL, ...more].map((step) => [step, 'passed']));
  const sign = (claims: object = {}) => keys.sign({ iss: url, ...claims });
  const check = async (id: string, token: string, as = boss.token) => {
    const reply = await post(id, 'test', { token }, as);
    expect(outcome(reply)).toBe('200');
    return reply;
  };

  test('names the key that the token proves, and its name for those who may read keys', async () => {
    const id = await made();
    const subject = unique('pod');
    const key = await provedKey(id, ['chat:write'], subject);
    const reply = await check(id, sign({ sub: subject }));
    expect(reply.json).toMatchObject({ accepted: true, principal: { type: 'api_key', id: key, name } });
    expect(steps(reply)).toEqual(passed('principal'));
    await h.api('POST', '/v1/iam/roles', { as: boss.token, body: { name, permissions: ['admin:issuers'] } });
    const only = await h.person(ACME, [name]);
    const shown = await check(id, sign({ sub: subject }), only.token);
    expect(shown.json['principal']).toEqual({ type: 'api_key', id: key, name: null });
  });

  test('names a linked user, and says that a first token creates one', async () => {
    const id = await made({ users: { default_roles: ['analyst'] } });
    const subject = unique('person');
    const user = await linked(id, [], subject);
    expect((await check(id, sign({ sub: subject }))).json).toMatchObject({
      accepted: true,
      principal: { type: 'user', id: user.id },
    });
    expect((await check(id, sign({ sub: unique('new') }))).json).toMatchObject({ accepted: false, principal: null });
    await put(id, { users: { create: true, default_roles: ['analyst'] } });
    const first = await check(id, sign({ sub: unique('new') }));
    expect(first.json).toMatchObject({ accepted: true, principal: null });
    expect(first.text).toContain('creates a user with the roles analyst');
    const { rows: users } = await h.db.knex.raw<{ rows: unknown[] }>(
      'select from user_identities where issuer_id = ?',
      [id],
    );
    expect(users).toHaveLength(1);
  });

  test('says that two keys match equally, that a key is disabled, and that an address is taken', async () => {
    const id = await made({ users: { create: true, email_claim: 'email' } });
    const subject = unique('pod');
    const key = await provedKey(id, ['chat:write'], subject);
    await provedKey(id, ['chat:read'], subject);
    const ambiguous = await check(id, sign({ sub: subject }));
    expect([ambiguous.json['accepted'], steps(ambiguous)['principal']]).toEqual([false, 'failed']);
    expect(ambiguous.text).toContain('2 API keys match equally');
    const other = unique('pod');
    const disabled = await provedKey(id, ['chat:read'], other);
    await h.api('POST', `/v1/iam/api-keys/${disabled}/disable`, { as: boss.token });
    expect((await check(id, sign({ sub: other }))).text).toContain('which is disabled');
    const email = `${boss.id}@example.test`;
    expect((await check(id, sign({ sub: unique('x'), email }))).text).toContain('Another user has the email address');
    expect(key).not.toBe(disabled);
  });

  test('refuses a user whom its directory suspends, and a key of such a user, as the gate does', async () => {
    const id = await made({ users: {} });
    const [subject, pod] = [unique('person'), unique('pod')];
    const user = await linked(id, [], subject);
    const key = await provedKey(id, ['chat:write'], pod);
    await h.db.knex('api_keys').where({ id: key }).update({ user_id: user.id });
    const accepted = async () =>
      Promise.all([subject, pod].map(async (sub) => (await check(id, sign({ sub }))).json['accepted']));
    expect(await accepted()).toEqual([true, true]);
    await h.db
      .knex('users')
      .where({ id: user.id })
      .update({
        ...{ source: 'ldap', directory: 'corp', directory_id: `x:${subject}` },
        ...{ directory_suspension: 'disabled', directory_suspended_at: new Date() },
      });
    expect(await accepted()).toEqual([false, false]);
    expect((await check(id, sign({ sub: subject }))).text).toContain('suspended by its directory');
  });

  test('says that a first token creates no user in a tenant that is full or suspended', async () => {
    const tenant = unique('full');
    const as = h.root.token;
    await h.api('POST', '/v1/iam/tenants', { as, body: { id: tenant, name: tenant } });
    await h.person(tenant, []);
    const reply = await h.api('POST', ISSUERS, { as, tenant, body: body({ users: { create: true } }) });
    const test = async () =>
      (await h.api('POST', `${ISSUERS}/${text(reply.json, 'id')}/test`, { as, tenant, body: { token: sign() } })).json;
    const setMost = async (max_users: number) =>
      outcome(await h.api('PUT', `/v1/iam/tenants/${tenant}`, { as, body: { quotas: { max_users } } }));
    const detail = (part: string) =>
      expect.arrayContaining([expect.objectContaining({ detail: expect.stringContaining(part) })]);
    expect(await setMost(2)).toBe('200');
    expect(await test()).toMatchObject({ accepted: true, principal: null });
    expect(await setMost(1)).toBe('200');
    expect(await test()).toMatchObject({ accepted: false, principal: null, steps: detail('max_users') });
    expect(await setMost(2)).toBe('200');
    await h.api('POST', `/v1/iam/tenants/${tenant}/suspend`, { as });
    expect(await test()).toMatchObject({ accepted: false, principal: null, steps: detail('suspended') });
  });

  test.each<[string, object, string]>([
    ['another audience', { aud: 'other' }, 'audience'],
    ['another issuer', { iss: 'https://other.example' }, 'issuer'],
    ['an ID token', { nonce: 'n' }, 'type'],
    ['a missing claim', { hd: 'globex.example' }, 'required_claims'],
    ['an expired token', { exp: 1 }, 'time'],
  ])('%s fails that step and goes on to the principal', async (_name, claims, failing) => {
    const id = await made({ required_claims: [{ claim: 'hd', in: ['acme.example'] }] });
    const subject = unique('pod');
    await provedKey(id, ['chat:write'], subject);
    const reply = await check(id, sign({ sub: subject, hd: 'acme.example', ...claims }));
    expect([reply.json['accepted'], steps(reply)]).toEqual([false, { ...passed('principal'), [failing]: 'failed' }]);
  });

  test('works at a disabled issuer, reports a text that is no token, and stores nothing', async () => {
    const id = await made({ enabled: false });
    const before = (await h.audit()).length;
    const token = sign();
    const reply = await check(id, token);
    expect(steps(reply)).toMatchObject({ parsed: 'passed', issuer: 'failed', signature: 'passed' });
    expect(steps(await check(id, 'hello'))).toEqual({ parsed: 'failed' });
    expect(await h.audit()).toHaveLength(before);
  });
});

describe('the refresh of keys', () => {
  let own: Harness;
  let admin: Person;
  beforeAll(async () => {
    own = await startHarness({ settings: { POSTERN_ISSUERS_ALLOWED_HOSTS: JSON.stringify([keys.host]) } });
    admin = await own.person('default', ['tenant-admin']);
  });
  afterAll(() => own.close());

  test('answers the state of the keys after the attempt, also of one that failed', async () => {
    const issuer = { name, issuer: keys.url, audiences: ['postern'] };
    const id = text((await own.api('POST', ISSUERS, { as: admin.token, body: issuer })).json, 'id');
    const refresh = () => own.api('POST', `${ISSUERS}/${id}/refresh`, { as: admin.token });
    const fetched = await refresh();
    const state = { count: 1, kids: [keys.key.kid], pasted: false, error: null, stale: false };
    expect([outcome(fetched), fetched.json['keys']]).toEqual(['200', { ...state, fetched_at: expect.any(String) }]);
    keys.answer = (_request, response) => {
      response.writeHead(500).end();
      return true;
    };
    const failedOne = await refresh();
    expect([outcome(failedOne), failedOne.json['keys']]).toEqual([
      '200',
      { ...Object(fetched.json['keys']), error: expect.stringContaining('500') },
    ]);
    keys.answer = undefined;
    expect((await refresh()).json['keys']).toMatchObject(state);
    expect((await own.audit('issuer.refresh')).map((row) => row['result'])).toEqual(['success', 'failure', 'success']);
    await own.api('PUT', `${ISSUERS}/${id}`, { as: admin.token, body: { jwks: keys.jwks() } });
    expect(outcome(await refresh())).toBe('422 invalid_field');
  });
});

describe('another tenant', () => {
  test('finds no issuer of this one, by any method', async () => {
    const id = await made();
    const all = await Promise.all([
      get(id, theirs.token),
      put(id, { enabled: false }, theirs.token),
      remove(id, '', theirs.token),
      post(id, 'refresh', {}, theirs.token),
      post(id, 'revoke-before', {}, theirs.token),
      post(id, 'test', { token: keys.sign() }, theirs.token),
    ]);
    expect(new Set(all.map(outcome))).toEqual(new Set(['404 not_found']));
    expect(column(await h.api('GET', `${ISSUERS}?limit=200`, { as: theirs.token }), 'id')).not.toContain(id);
    const everywhere = await h.api('GET', `${ISSUERS}?tenant_id=*&q=${name}`, { as: h.root.token });
    expect(column(everywhere, 'id')).toContain(id);
    expect((await get(id)).json).toMatchObject({ enabled: true, revoked_before: null });
  });
});

test('a tenant has at most 100 issuers', async () => {
  const full = unique('full');
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: full, name: full } });
  await h.db.knex.raw(
    `insert into issuers (id, tenant_id, name, kind, issuer, audiences, algorithms, enabled)
     select 'iss_' || lpad(i::text, 26, '0'), ?, 'one-' || i, 'oidc', 'https://login.example', '{postern}', '{ES256}', false
     from generate_series(1, 99) i`,
    [full],
  );
  const one = () => h.api('POST', ISSUERS, { as: h.root.token, tenant: full, body: body({ enabled: false }) });
  expect(outcome(await one())).toBe('201');
  name = `${name}-next`;
  expect(outcome(await one())).toBe('409 quota_exceeded');
});
