import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Harness, outcome, type Person, startHarness, text } from './harness.ts';

let h: Harness;
let boss: Person;
let ada: Person;
let stranger: Person;
let key = { id: '', key: '' };
beforeAll(async () => {
  h = await startHarness();
  for (const id of ['acme', 'globex'])
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  boss = await h.person('acme', ['tenant-admin']);
  ada = await h.person('acme', ['developer']);
  stranger = await h.person('globex', ['developer']);
  const made = await h.api('POST', '/v1/iam/api-keys', {
    as: boss.token,
    body: { description: 'k', scopes: ['chat:write'], expires_in_days: 1 },
  });
  key = { id: text(made.json, 'id'), key: text(made.json, 'key') };
  await h.api('POST', '/v1/iam/policies', {
    as: boss.token,
    body: {
      name: 'office',
      effect: 'deny',
      actions: ['agents:*'],
      resources: ['*'],
      conditions: { ip_address: { not_in: ['10.0.0.0/8'] }, time: { not_between: ['08:00', '18:00'] } },
    },
  });
});
afterAll(async () => {
  await h.close();
});

const CHAT = { method: 'POST', path: '/v1/chat/completions', body: '{"model":"m"}' };
const explain = (body: object, as = boss.token) => h.api('POST', '/v1/iam/explain', { as, body: { ...CHAT, ...body } });
const decided = async (body: object, as = boss.token) => {
  const reply = await explain(body, as);
  return reply.status === 200 ? String(reply.json['code']) : outcome(reply);
};

describe('an explanation', () => {
  test('shows the decision with its steps, grants and policies', async () => {
    const reply = await explain({ subject: ada.id });
    expect(reply.json).toMatchObject({
      decision: 'allow',
      status: 200,
      code: 'allow',
      permission: 'chat:write',
      resources: ['models/m'],
      grants: expect.arrayContaining([expect.objectContaining({ kind: 'role', name: 'developer', outcome: 'covers' })]),
      policies: [expect.objectContaining({ name: 'office', effect: 'deny', matched: false })],
    });
    expect(reply.json['steps']).toBeInstanceOf(Array);
  });

  test.each([
    ['outside, at night', { client_ip: '203.0.113.1', time: '2026-11-18T22:00:00Z' }, 'denied_by_policy'],
    ['outside, by day', { client_ip: '203.0.113.1', time: '2026-11-18T12:00:00Z' }, 'allow'],
    ['in the office, at night', { client_ip: '10.1.2.3', time: '2026-11-18T22:00:00Z' }, 'allow'],
    ['from nowhere, at night', { client_ip: null, time: '2026-11-18T22:00:00Z' }, 'denied_by_policy'],
    ['in a zone of the instant', { client_ip: '203.0.113.1', time: '2026-11-18T22:00:00+12:00' }, 'allow'],
  ])('is for the time and the client address of the request: %s', async (_name, where, code) => {
    expect(await decided({ subject: ada.id, method: 'GET', path: '/v1/agents/a', body: '', ...where })).toBe(code);
  });

  test.each([
    ['no subject and no credential', {}, 'missing_credential'],
    ['a key by its text', { credential: 'KEY' }, 'allow'],
    ['a key by its id', { subject: 'KEY' }, 'allow'],
    ['a key without the scope', { subject: 'KEY', path: '/v1/embeddings' }, 'insufficient_permission'],
    ['a made-up credential', { credential: 'nonsense' }, 'invalid_credential'],
    ['two credentials', { credential: 'a, Bearer b' }, 'invalid_credential'],
    ['another tenant in the header', { subject: 'ADA', tenant_id: 'globex' }, 'tenant_mismatch'],
    ['a malformed header', { subject: 'ADA', tenant_id: 'NO' }, 'invalid_tenant'],
    ['no route', { subject: 'ADA', path: '/v2/chat' }, 'no_route'],
    ['a malformed path', { subject: 'ADA', path: '//v1' }, 'malformed_path'],
    ['a malformed body', { subject: 'ADA', body: '{' }, 'malformed_body'],
    ['another type of body', { subject: 'ADA', content_type: 'text/plain' }, 'malformed_body'],
    ['a public path', { subject: 'ADA', path: '/console' }, 'allow'],
    ['an unknown subject', { subject: 'usr_00000000000000000000000000' }, '404 not_found'],
    ['a subject that is no id', { subject: 'ada' }, '404 not_found'],
    ['a subject and a credential', { subject: 'ADA', credential: 'KEY' }, '422 invalid_field'],
    ['no such instant', { subject: 'ADA', time: '2026-12-31T23:59:60Z' }, '422 invalid_field'],
  ])('%s', async (_name, body: { subject?: string; credential?: string }, code) => {
    const subject = body.subject === 'ADA' ? ada.id : body.subject === 'KEY' ? key.id : body.subject;
    const credential = body.credential === 'KEY' ? key.key : body.credential;
    expect(
      await decided({
        ...body,
        ...(subject === undefined ? {} : { subject }),
        ...(credential === undefined ? {} : { credential }),
      }),
    ).toBe(code);
  });

  test.each([
    ['203.0.113', '422 invalid_field'],
    ['203.0.113.0/24', '422 invalid_field'],
    ['203.0.113.1, 10.1.2.3', '422 invalid_field'],
    ['', '422 invalid_field'],
    ['::ffff:10.1.2.3', 'allow'],
    ['fe80::1%eth0', 'denied_by_policy'],
  ])('rejects a client address that is none, so that a typo is not an unknown address: %j', async (address, code) => {
    const body = { subject: ada.id, method: 'GET', path: '/v1/agents/a', body: '', time: '2026-11-18T22:00:00Z' };
    expect(await decided({ ...body, client_ip: address })).toBe(code);
  });

  test.each(['0000-01-01T00:00:00Z', '1969-12-31T23:59:59.999-12:00', '9999-12-31T23:59:59Z'])(
    'accepts any instant: %s',
    async (time) => {
      const body = { subject: ada.id, method: 'GET', path: '/v1/agents/a', body: '', client_ip: '203.0.113.1', time };
      expect(['allow', 'denied_by_policy']).toContain(await decided(body));
    },
  );

  test('explains a revoked key as a credential that is not valid', async () => {
    const made = await h.api('POST', '/v1/iam/api-keys', {
      as: boss.token,
      body: { description: 'k', scopes: ['chat:write'], expires_in_days: 1 },
    });
    const id = text(made.json, 'id');
    const later = new Date(Date.now() + 2 * 86_400_000).toISOString();
    expect(await decided({ subject: id })).toBe('allow');
    expect(await decided({ subject: id, time: later })).toBe('invalid_credential');
    await h.api('DELETE', `/v1/iam/api-keys/${id}`, { as: boss.token });
    expect(await decided({ subject: id })).toBe('invalid_credential');
  });
});

describe('access to explanations', () => {
  test('without admin:policies covers only the caller itself', async () => {
    expect(await decided({ subject: ada.id }, ada.token)).toBe('allow');
    expect(await decided({ credential: ada.token }, ada.token)).toBe('allow');
    const later = new Date(Date.now() + 365 * 86_400_000).toISOString();
    expect(await decided({ credential: ada.token, time: later }, ada.token)).toBe('token_expired');
    expect(await decided({ credential: boss.token, time: later }, ada.token)).toBe('403 insufficient_permission');
    expect(await decided({ subject: boss.id }, ada.token)).toBe('403 insufficient_permission');
    expect(await decided({ subject: 'usr_00000000000000000000000000' }, ada.token)).toBe('403 insufficient_permission');
    expect(await decided({ credential: key.key }, ada.token)).toBe('403 insufficient_permission');
    expect(await decided({}, ada.token)).toBe('403 insufficient_permission');
    expect(await decided({ credential: key.key }, key.key)).toBe('403 insufficient_permission');
    expect(await decided({ subject: 3 }, key.key)).toBe('403 insufficient_permission');
  });

  test('a caller without admin:policies reads of its request the policies that decide it, and of no others that exist', async () => {
    const deny = { effect: 'deny', actions: ['finetuning:write'], resources: ['*'] };
    const policies = [
      ['/v1/iam/policies', h.root.token, { ...deny, name: 'global-deny', global: true }],
      [
        '/v1/iam/policies',
        h.root.token,
        { ...deny, name: 'global-for-auditors', global: true, attached_roles: ['auditor'] },
      ],
      [
        '/v1/iam/policies',
        boss.token,
        { ...deny, name: 'own-elsewhere', conditions: { ip_address: { in: ['203.0.113.0/24'] } } },
      ],
      ['/v1/iam/policies', boss.token, { ...deny, name: 'own-other-action', actions: ['audio:write'] }],
    ] as const;
    for (const [path, as, body] of policies) expect(outcome(await h.api('POST', path, { as, body }))).toBe('201');
    const request = { subject: ada.id, method: 'POST', path: '/v1/finetuning/jobs', body: '{"model":"m"}' };
    const policiesOf = async (body: object, as: string) => {
      const reply = await explain({ ...request, ...body }, as);
      const { policies: listed } = reply.json;
      return Array.isArray(listed)
        ? listed.map((policy: { readonly name: string }) => policy.name).toSorted()
        : reply.text;
    };
    expect(await policiesOf({}, ada.token)).toEqual(['global-deny']);
    expect(await policiesOf({ client_ip: '203.0.113.5' }, ada.token)).toEqual(['global-deny', 'own-elsewhere']);
    expect((await explain(request, ada.token)).json).toMatchObject({ code: 'denied_by_policy', policy: 'global-deny' });
    expect(await policiesOf({}, boss.token)).toEqual(expect.arrayContaining(policies.map(([, , { name }]) => name)));
    for (const [path, as, { name }] of policies) await h.api('DELETE', `${path}/${name}`, { as });
  });

  test('the access of a platform administrator in another tenant is shown to platform administrators only', async () => {
    const admin = await h.person('acme', ['admin']);
    const made = await h.api('POST', '/v1/iam/policies', {
      as: h.root.token,
      tenant: 'globex',
      body: { name: 'globex-secret', effect: 'deny', actions: ['rag:*'], resources: ['*'] },
    });
    expect(outcome(made)).toBe('201');
    for (const tenant_id of ['globex', 'no-such-tenant']) {
      const reply = await explain({ subject: admin.id, tenant_id });
      expect(outcome(reply)).toBe('403 tenant_mismatch');
      expect(reply.text).not.toContain('globex-secret');
      const simulated = await h.api('POST', '/v1/iam/explain/simulate', {
        as: boss.token,
        body: { ...CHAT, subject: admin.id, tenant_id },
      });
      expect(outcome(simulated)).toBe('403 tenant_mismatch');
      expect(await decided({ credential: admin.token, tenant_id })).toBe('403 tenant_mismatch');
    }
    expect(await decided({ subject: admin.id, tenant_id: 'acme' })).toBe('allow');
    expect(await decided({ subject: admin.id, tenant_id: 'NO' })).toBe('invalid_tenant');
    expect((await explain({ subject: admin.id, tenant_id: 'globex' }, h.root.token)).text).toContain('globex-secret');
    expect((await explain({ subject: admin.id, tenant_id: 'globex' }, admin.token)).text).toContain('globex-secret');
  });

  test('takes the email address of a user, and the shown prefix or the name of a key, as the subject', async () => {
    const make = async (body: object, as: string) =>
      (await h.api('POST', '/v1/iam/api-keys', { as, body: { description: 'k', expires_in_days: 1, ...body } })).json;
    const named = await make({ name: 'nightly job', scopes: ['chat:write'] }, boss.token);
    await h.api('PUT', `/v1/iam/users/${ada.id}`, { as: boss.token, body: { email: 'ada@mine.example' } });
    expect(await decided({ subject: 'ada@mine.example' })).toBe('allow');
    expect(await decided({ subject: 'Ada@Mine.example' })).toBe('allow');
    expect(await decided({ subject: text(named, 'prefix') })).toBe('allow');
    expect(await decided({ subject: 'nightly job' })).toBe('allow');
    expect(await decided({ subject: 'nightly job', path: '/v1/embeddings' })).toBe('insufficient_permission');
    const simulated = await h.api('POST', '/v1/iam/explain/simulate', {
      as: boss.token,
      body: { ...CHAT, subject: 'nightly job' },
    });
    expect(simulated.json['decision']).toBe('allow');

    await make({ name: 'nightly job', scopes: ['chat:write'] }, boss.token);
    const ambiguous = await explain({ subject: 'nightly job' });
    expect(outcome(ambiguous)).toBe('404 not_found');
    expect(ambiguous.json['detail']).toBe('Several keys have this prefix or name. Give the id of the key.');
  });

  test('does not reveal by an email address, a prefix or a name what other tenants have', async () => {
    const other = await h.person('globex', ['tenant-admin']);
    const body = { name: 'abroad', description: 'k', scopes: ['chat:write'], expires_in_days: 1 };
    const abroad = (await h.api('POST', '/v1/iam/api-keys', { as: other.token, body })).json;
    await h.api('PUT', `/v1/iam/users/${stranger.id}`, { as: other.token, body: { email: 'eve@there.example' } });
    const unknown = (await explain({ subject: 'unknown@there.example' })).json;
    for (const subject of ['eve@there.example', 'abroad', text(abroad, 'prefix')]) {
      const { status, code, detail } = (await explain({ subject })).json;
      expect([subject, status, code, detail]).toEqual([subject, 404, unknown['code'], unknown['detail']]);
      expect(await decided({ subject }, ada.token)).toBe('403 insufficient_permission');
    }
    expect(await decided({ subject: 'unknown@there.example' }, ada.token)).toBe('403 insufficient_permission');
    // A caller may name itself by its address.
    await h.api('PUT', `/v1/iam/users/${ada.id}`, { as: boss.token, body: { email: 'ada@mine.example' } });
    expect(await decided({ subject: 'ada@mine.example' }, ada.token)).toBe('allow');
    expect(await decided({ subject: 'eve@there.example' }, h.root.token)).toBe('allow');
    const inGlobex = { as: h.root.token, tenant: 'globex', body: { ...CHAT, subject: 'abroad' } };
    expect((await h.api('POST', '/v1/iam/explain', inGlobex)).json['decision']).toBe('allow');
  });

  test('finds a prefix or name of any tenant for a platform administrator, first in the tenant of its request', async () => {
    const there = await h.person('globex', ['tenant-admin']);
    const make = async (name: string, scopes: readonly string[], as: string) =>
      (await h.api('POST', '/v1/iam/api-keys', { as, body: { name, description: 'k', scopes, expires_in_days: 1 } }))
        .json;
    const far = await make('far away', ['chat:write'], there.token);
    expect(await decided({ subject: 'far away' }, h.root.token)).toBe('allow');
    expect(await decided({ subject: text(far, 'prefix') }, h.root.token)).toBe('allow');

    await make('far away', ['chat:read'], boss.token);
    expect(await decided({ subject: 'far away' }, h.root.token)).toBe('404 not_found');
    const inTenant = async (tenant: string) =>
      (await h.api('POST', '/v1/iam/explain', { as: h.root.token, tenant, body: { ...CHAT, subject: 'far away' } }))
        .json['code'];
    expect([await inTenant('acme'), await inTenant('globex')]).toEqual(['insufficient_permission', 'allow']);
    expect(await decided({ subject: 'far away' })).toBe('insufficient_permission');
  });

  test("another tenant's subject or credential is explained as unknown, except to platform administrators", async () => {
    expect(await decided({ subject: stranger.id })).toBe('404 not_found');
    expect(await decided({ credential: stranger.token })).toBe('invalid_credential');
    const later = new Date(Date.now() + 365 * 86_400_000).toISOString();
    expect(await decided({ credential: stranger.token, time: later })).toBe('invalid_credential');
    expect(await decided({ credential: ada.token, time: later })).toBe('token_expired');
    expect(await decided({ credential: stranger.token, time: later }, h.root.token)).toBe('token_expired');
    expect(await decided({ subject: stranger.id }, h.root.token)).toBe('allow');
    expect(await decided({ credential: stranger.token }, h.root.token)).toBe('allow');
  });
});
