/** The principals that have a permission in a tenant, compared with the decision for each. */

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MANAGEMENT_PERMISSIONS } from '../../src/decision/management.ts';
import { PATIENT } from '../support/database.ts';
import { runs } from '../support/properties.ts';
import { storeKeys, storeWorld } from '../support/stored-world.ts';
import { loadCases } from '../support/world.ts';
import { type Harness, type Json, outcome, type Person, type Reply, startHarness, text } from './harness.ts';

const { world } = loadCases();
const LATER = new Date(Date.now() + 30 * 86_400_000);

let h: Harness;
let boss: Person;
/** Ids by label. */
const ids = new Map<string, string>();
beforeAll(async () => {
  h = await startHarness();
  const stored = await storeWorld(h.db.knex, { ...world, api_keys: [] }, LATER);
  const users = new Map([...stored.users].map(([label, { userId }]) => [label, userId]));
  const keys = world.api_keys.map(({ expires_at, ...key }) =>
    expires_at === undefined ? key : { ...key, expires_at: new Date(Date.now() - 1000).toISOString() },
  );
  await storeKeys(h.db.knex, { ...world, api_keys: keys }, users, LATER);
  for (const [label, id] of users) ids.set(label, id);
  const { rows } = await h.db.knex.raw<{ rows: { id: string; description: string }[] }>(
    'select id, description from api_keys',
  );
  for (const { id, description } of rows) ids.set(description, id);
  boss = await h.person('acme', ['tenant-admin']);
});
afterAll(async () => {
  await h.close();
});

const ask = (body: object, as = boss.token, query = '') =>
  h.api('POST', `/v1/iam/explain/who-can${query}`, { as, body });

interface Listed {
  readonly id: string;
  readonly name?: string;
  readonly permissions: readonly string[];
  readonly tenant_id?: string;
  readonly verdict: string;
  readonly conditions: readonly string[];
  readonly why: readonly Json[];
}

function listed(reply: Reply, member: 'users' | 'keys' | 'roles'): readonly Listed[] {
  const list = reply.json[member];
  if (!Array.isArray(list)) throw new Error(`${reply.status} ${reply.text}`);
  return list;
}

const inTenant = (tenant: string, reply: Reply) =>
  listed(reply, 'users').flatMap(({ id, tenant_id }) => (tenant_id === tenant ? [id] : []));
const everybody = (reply: Reply) => [...listed(reply, 'users'), ...listed(reply, 'keys')];
const one = (reply: Reply, label: string) => everybody(reply).find(({ id }) => id === ids.get(label));

describe('who can', () => {
  const chat = (model: string) => ({ method: 'POST', path: '/v1/chat/completions', body: JSON.stringify({ model }) });
  const read = (path: string) => ({ method: 'GET', path });
  /** A later day, so that expired keys are expired at that time too. */
  const next = (weekday: number, time: string): string => {
    const day = new Date(Date.now() + 86_400_000);
    while (day.getUTCDay() !== weekday) day.setUTCDate(day.getUTCDate() + 1);
    return `${day.toISOString().slice(0, 10)}T${time}:00Z`;
  };
  const circumstances = [
    { time: next(3, '11:00'), client_ip: '10.1.1.1' },
    { time: next(3, '11:00'), client_ip: '192.0.2.1' },
    { time: next(3, '11:00'), client_ip: '198.51.100.1' },
    { time: next(3, '11:00'), client_ip: null },
    { time: next(3, '23:30'), client_ip: '10.1.1.1' },
    { time: next(6, '11:00'), client_ip: '10.1.1.1' },
  ];

  test.each([
    ['chat:write', 'models/phi-3', chat('phi-3')],
    ['chat:write', 'models/gpt', chat('gpt')],
    ['models:read', undefined, read('/v1/models')],
    ['agents:run', 'agents/a', { method: 'POST', path: '/v1/agents/a/runs' }],
    ['finetuning:read', undefined, read('/v1/finetuning/jobs')],
    ['rag:read', 'collections/hr', read('/v1/rag/collections/hr/documents')],
    ['rag:read', 'collections/secret-x', read('/v1/rag/collections/secret-x/documents')],
    ['embeddings:write', 'models/', { method: 'POST', path: '/v1/embeddings', body: '{}' }],
  ])(
    '%s on %s equals the decision for every user and key of the tenant, at any time and address',
    async (permission, resource, request) => {
      // Without a default model a request without a model names none.
      await h.api('PUT', '/v1/iam/tenants/acme', { as: h.root.token, body: { settings: { default_model: null } } });
      const asked = resource === undefined ? { permission } : { permission, resource };
      const reply = await ask(asked);
      expect(outcome(reply)).toBe('200');
      const inAcme = [...world.users, ...world.api_keys].filter((subject) => subject.tenant_id === 'acme');
      for (const { id: label } of inAcme) {
        const replies = circumstances.map((where) =>
          h.api('POST', '/v1/iam/explain', { as: boss.token, body: { subject: ids.get(label), ...request, ...where } }),
        );
        const decisions = new Set((await Promise.all(replies)).map(({ json }) => json['decision']));
        // A principal with the permission lacks it in the banned networks, so each verdict is conditional or missing.
        expect([label, one(reply, label)?.verdict]).toEqual([label, decisions.size === 2 ? 'conditional' : undefined]);
        if (decisions.size === 1) expect([label, ...decisions]).toEqual([label, 'deny']);
      }
    },
  );

  /** One request for each permission whose routes name a resource of the kind. */
  const REQUESTS: Readonly<Record<string, (name: string) => Readonly<Record<string, object>>>> = {
    models: (name) => {
      const post = (path: string) => ({ method: 'POST', path, body: JSON.stringify({ model: name }) });
      return {
        'chat:write': chat(name),
        'chat:read': post('/v1/messages/count_tokens'),
        'embeddings:write': post('/v1/embeddings'),
        'models:read': read(`/v1/models/${name}`),
        'models:write': { method: 'DELETE', path: `/v1/models/${name}` },
        'finetuning:write': post('/v1/finetuning/jobs'),
        'images:write': post('/v1/images/generations'),
        'audio:write': post('/v1/audio/speech'),
        'moderations:write': post('/v1/moderations'),
        'rerank:write': post('/v1/rerank'),
      };
    },
    collections: (name) => ({
      'rag:read': read(`/v1/rag/collections/${name}/documents`),
      'rag:query': { method: 'POST', path: `/v1/rag/collections/${name}/query` },
      'rag:write': { method: 'DELETE', path: `/v1/rag/collections/${name}` },
    }),
    agents: (name) => ({
      'agents:read': read(`/v1/agents/${name}/x`),
      'agents:run': { method: 'POST', path: `/v1/agents/${name}/runs/x` },
      'agents:write': { method: 'DELETE', path: `/v1/agents/${name}/x` },
    }),
  };

  test('asked by a resource alone, lists exactly the principals of which explain allows a request that names it', async () => {
    const subjects = [...world.users, ...world.api_keys].filter(({ tenant_id }) => tenant_id === 'acme');
    const listedFor = new Map<string, Promise<Reply>>();
    const whoCan = (resource: string): Promise<Reply> => {
      const known = listedFor.get(resource);
      if (known !== undefined) return known;
      const asked = h.api('GET', `/v1/iam/explain/who-can?limit=200&resource=${resource}`, { as: boss.token });
      listedFor.set(resource, asked);
      return asked;
    };
    const resources = ['models/phi-3', 'models/gpt', 'collections/hr', 'collections/secret-x', 'agents/a'];
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...resources),
        fc.constantFrom(...subjects),
        fc.nat(),
        async (resource, { id: label }, pick) => {
          const [kind = '', name = ''] = resource.split('/');
          const requests = Object.entries(REQUESTS[kind]?.(name) ?? {});
          const [permission = '', request = {}] = requests[pick % requests.length] ?? [];
          const decided = await Promise.all(
            circumstances.map((where) =>
              h.api('POST', '/v1/iam/explain', {
                as: boss.token,
                body: { subject: ids.get(label), ...request, ...where },
              }),
            ),
          );
          const isAllowed = decided.some(({ json }) => json['decision'] === 'allow');
          const row = one(await whoCan(resource), label);
          expect([label, permission, row?.permissions.includes(permission) ?? false]).toEqual([
            label,
            permission,
            isAllowed,
          ]);
        },
      ),
      { numRuns: runs(300) },
    );
  });

  test('asked by a resource alone, names the rule that gives the access, for users, keys and roles', async () => {
    const reply = await h.api('GET', '/v1/iam/explain/who-can?resource=models/phi-3&limit=200', { as: boss.token });
    expect(reply.json).toMatchObject({ permission: null, resource: 'models/phi-3', has_more: false });
    expect(one(reply, 'sma')).toMatchObject({ by: 'small-models', permissions: ['chat:write', 'chat:read'] });
    expect(one(reply, 'gus')).toMatchObject({ by: 'guests-may-try-phi', permissions: ['chat:write', 'models:read'] });
    expect(one(reply, 'k-ada')).toMatchObject({ by: 'developer' });
    expect(one(reply, 'k-chat')).toMatchObject({ by: 'scopes', permissions: ['chat:write'] });
    const roles = listed(reply, 'roles');
    expect(roles.find(({ name }) => name === 'small-models')).toMatchObject({ by: 'small-models', builtin: false });
    expect(roles.find(({ name }) => name === 'nothing')).toBeUndefined();
    expect(roles.find(({ name }) => name === 'developer')).toMatchObject({ by: 'developer', builtin: true });
  });

  test('exports the rows of all pages as NDJSON and as CSV, and continues an export from a cursor', async () => {
    const path = '/v1/iam/explain/who-can?resource=models/phi-3';
    const whole = await h.api('GET', `${path}&limit=200`, { as: boss.token });
    const shown = [...listed(whole, 'roles'), ...everybody(whole)];
    const get = (accept: string, query = '') =>
      fetch(`${h.url}${path}${query}`, { headers: { authorization: `Bearer ${boss.token}`, accept } });
    const lines = (await (await get('application/x-ndjson')).text()).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual(shown);
    const csv = await get('text/csv');
    expect(csv.headers.get('content-disposition')).toBe('attachment; filename="who-can.csv"');
    const [head, ...rows] = (await csv.text()).trimEnd().split('\r\n');
    expect(head).toBe('type,id,name,email,tenant_id,user_id,roles,by,permissions,verdict,conditions,expires_at');
    expect(rows).toHaveLength(shown.length);
    const first = await h.api('GET', `${path}&limit=3`, { as: boss.token });
    const rest = await get('application/x-ndjson', `&cursor=${text(first.json, 'next_cursor')}`);
    expect((await rest.text()).trimEnd().split('\n')).toEqual(lines.slice(3));
    expect((await get('text/csv', '&limit=3')).status).toBe(400);
  });

  test('asked by GET, names a permission, a resource or both, of a tenant in which the caller may act', async () => {
    const get = (query: string, as = boss.token) => h.api('GET', `/v1/iam/explain/who-can${query}`, { as });
    expect(outcome(await get('?permission=chat:write'))).toBe('200');
    expect(outcome(await get('?permission=chat:write&resource=models/gpt'))).toBe('200');
    for (const query of ['', '?permission=chat:*', '?resource=models/*', '?resource=llama', '?resource=models']) {
      expect([query, outcome(await get(query))]).toEqual([query, '400 invalid_parameter']);
    }
    expect(outcome(await get('?resource=models/gpt&tenant_id=globex'))).toBe('403 tenant_mismatch');
    expect(outcome(await get('?resource=models/gpt&tenant_id=*', h.root.token))).toBe('400 invalid_tenant');
    const developer = await h.person('acme', ['developer']);
    expect(outcome(await get('?resource=models/gpt', developer.token))).toBe('403 insufficient_permission');
    const globex = await get('?resource=models/gpt&tenant_id=globex&limit=200', h.root.token);
    expect(one(globex, 'glo')).toMatchObject({ by: 'developer' });
    expect(one(globex, 'ada')).toBeUndefined();
  });

  test('gives the reason: the role, the scopes within the owner, the policy, and the conditions that it depends on', async () => {
    const models = await ask({ permission: 'models:read' });
    expect(one(models, 'gus')).toMatchObject({
      verdict: 'conditional',
      why: [{ kind: 'policy', name: 'guests-may-list-models', conditional: true, constrained: false }],
      conditions: ['no-banned-nets', 'guests-may-list-models'],
    });
    const chats = await ask({ permission: 'chat:write', resource: 'models/phi-3' });
    expect(one(chats, 'sma')).toMatchObject({
      email: 'sma@example.com',
      roles: ['small-models'],
      platform_admin: false,
      why: [{ kind: 'role', name: 'small-models', constrained: true, conditional: false }],
      conditions: ['no-banned-nets'],
    });
    expect(one(chats, 'k-ada')).toMatchObject({
      description: 'k-ada',
      user_id: ids.get('ada'),
      why: [
        { kind: 'scopes', name: null },
        { kind: 'owner_role', name: 'developer' },
      ],
    });
    expect(chats.json['policies']).toEqual(
      expect.arrayContaining([
        {
          name: 'no-banned-nets',
          effect: 'deny',
          global: true,
          conditions: { ip_address: { in: ['198.51.100.0/24', '2001:db8:bad::/48'] } },
        },
        { name: 'guests-may-try-phi', effect: 'allow', global: false, conditions: {} },
      ]),
    );
  });

  test('lists neither a user whom a directory suspends nor the keys of that user', async () => {
    const suspended = { source: 'ldap', directory: 'corp', directory_id: 'x:ada', directory_suspension: 'removed' };
    const active = { source: 'local', directory: null, directory_id: null, directory_suspension: null };
    const shown = async () => {
      const reply = await ask({ permission: 'chat:write', resource: 'models/phi-3' });
      return ['ada', 'k-ada'].map((label) => one(reply, label)?.verdict);
    };
    const set = (to: object, since: Date | null) =>
      h.db
        .knex('users')
        .where('id', String(ids.get('ada')))
        .update({ ...to, directory_suspended_at: since });
    expect(await shown()).toEqual(['conditional', 'conditional']);
    await set(suspended, new Date());
    expect(await shown()).toEqual([undefined, undefined]);
    await set(active, null);
    expect(await shown()).toEqual(['conditional', 'conditional']);
  });

  test('has no conditions if there are none', async () => {
    const as = h.root.token;
    await h.api('PUT', '/v1/iam/policies/no-banned-nets', { as, body: { enabled: false } });
    const reply = await ask({ permission: 'chat:write', resource: 'models/phi-3' });
    expect(one(reply, 'sma')).toMatchObject({ verdict: 'allow', conditions: [] });
    expect(reply.json).toMatchObject({ platform_administrators: 'allow', tenant_id: 'acme' });
    await h.api('PUT', '/v1/iam/policies/no-banned-nets', { as, body: { enabled: true } });
  });

  test('lists no key that is revoked or expired, or whose owner is deactivated', async () => {
    const reply = await ask({ permission: 'chat:write' });
    for (const label of ['k-revoked', 'k-expired', 'k-off', 'off'])
      expect([label, one(reply, label)]).toEqual([label, undefined]);
    expect(one(reply, 'k-chat')).toMatchObject({ why: [{ kind: 'scopes' }], user_id: null });
  });
});

test('keys of the same scopes are listed only for owners with the permission', async () => {
  const made = async (owner: string) => {
    const body = { description: 'k', scopes: ['chat:write'], expires_in_days: 1, user_id: ids.get(owner) };
    return text((await h.api('POST', '/v1/iam/api-keys', { as: boss.token, body })).json, 'id');
  };
  const keys = [await made('ada'), await made('gus'), await made('aud')];
  const reply = await ask({ permission: 'chat:write', resource: 'models/gpt' });
  const found = listed(reply, 'keys').map(({ id }) => id);
  expect(keys.filter((id) => found.includes(id))).toEqual(keys.slice(0, 1));
});

describe('platform administrators', () => {
  test('are listed as such, those of other tenants for platform administrators only', async () => {
    const asked = { permission: 'chat:write' };
    const theirs = await ask({ ...asked, tenant_id: 'acme' }, h.root.token);
    const found = listed(theirs, 'users').find(({ id }) => id === h.root.id);
    expect(found).toMatchObject({ platform_admin: true, tenant_id: 'default', why: [{ kind: 'role', name: 'admin' }] });
    const ours = await ask(asked);
    expect(ours.json).toMatchObject({ platform_administrators: 'conditional' });
    expect(ours.text).not.toContain(h.root.id);
    const tenants = new Set((ours.json['users'] as { tenant_id: string }[]).map((user) => user.tenant_id));
    expect([...tenants]).toEqual(['acme']);
  });

  test('manage even a suspended tenant, in which no other principal has a permission', async () => {
    for (const permission of MANAGEMENT_PERMISSIONS) {
      const managing = await ask({ permission, tenant_id: 'frozen' }, h.root.token);
      expect(
        listed(managing, 'users').map(({ id }) => id),
        permission,
      ).toContain(h.root.id);
      expect(one(managing, 'fro'), permission).toBeUndefined();
    }
    const chatting = await ask({ permission: 'chat:write', tenant_id: 'frozen' }, h.root.token);
    expect(everybody(chatting)).toEqual([]);
    expect(chatting.json).toMatchObject({ platform_administrators: 'deny' });
  });

  test('are the only ones that manage tenants, also if another role has every admin permission', async () => {
    const reply = await ask({ permission: 'admin:tenants' });
    expect(everybody(reply)).toEqual([]);
    // A global policy has conditions.
    expect(reply.json).toMatchObject({ platform_administrators: 'conditional' });
  });
});

describe('a request', () => {
  test.each([
    [{ permission: '*' }, '/permission'],
    [{ permission: 'chat:*' }, '/permission'],
    [{ permission: '*:read' }, '/permission'],
    [{ permission: 'chat' }, '/permission'],
    [{ permission: 'chat:write', resource: 'models/*' }, '/resource'],
    [{ permission: 'chat:write', resource: 'llama' }, '/resource'],
    [{ permission: 'chat:write', resource: 'models1' }, '/resource'],
    [{ permission: 'chat:write', resource: 'datasets/x' }, '/resource'],
    [{ permission: 'chat:write', resources: [] }, '/resources'],
    [{}, '/permission'],
  ])('with %j is 422 at %s', async (body, path) => {
    const reply = await ask(body);
    expect(outcome(reply)).toBe('422 invalid_field');
    expect(reply.json['errors']).toMatchObject([{ path }]);
  });

  test('needs admin:policies and a tenant in which the caller may act', async () => {
    const developer = await h.person('acme', ['developer']);
    const asked = { permission: 'chat:write' };
    expect(outcome(await ask(asked, developer.token))).toBe('403 insufficient_permission');
    expect(outcome(await ask({ ...asked, tenant_id: 'globex' }))).toBe('403 tenant_mismatch');
    expect(outcome(await ask({ ...asked, tenant_id: 'NO' }))).toBe('400 invalid_tenant');
    const made = await h.api('POST', '/v1/iam/api-keys', {
      as: boss.token,
      body: { description: 'k', scopes: ['admin:policies'], expires_in_days: 1 },
    });
    expect(outcome(await ask(asked, text(made.json, 'key')))).toBe('200');
  });
});

describe('pages', () => {
  test('one by one show the same as all at once, in the same order', async () => {
    const asked = { permission: 'chat:read', tenant_id: 'acme' };
    const whole = await ask(asked, h.root.token, '?limit=200');
    expect(whole.json).toMatchObject({ has_more: false, next_cursor: null });
    const seen: Listed[] = [];
    let query = '?limit=1';
    for (let page = 0; query !== '' && page < 100; page++) {
      const reply = await ask(asked, h.root.token, query);
      expect(everybody(reply)).toHaveLength(1);
      seen.push(...everybody(reply));
      query = reply.json['has_more'] === true ? `?limit=1&cursor=${text(reply.json, 'next_cursor')}` : '';
    }
    expect(seen).toEqual(everybody(whole));
    expect(seen.length).toBeGreaterThan(5);
  });

  test('belong to their request', async () => {
    const first = await ask({ permission: 'chat:read' }, boss.token, '?limit=1');
    const cursor = `?cursor=${text(first.json, 'next_cursor')}`;
    expect(outcome(await ask({ permission: 'chat:read' }, boss.token, cursor))).toBe('200');
    expect(outcome(await ask({ permission: 'rag:read' }, boss.token, cursor))).toBe('400 invalid_parameter');
    expect(outcome(await ask({ permission: 'chat:read', resource: 'models/x' }, boss.token, cursor))).toBe(
      '400 invalid_parameter',
    );
    expect(outcome(await ask({ permission: 'chat:read' }, boss.token, '?cursor=x'))).toBe('400 invalid_parameter');
    expect(outcome(await ask({ permission: 'chat:read' }, boss.token, '?limit=0'))).toBe('400 invalid_parameter');
  });

  test('of a large tenant find the few holders in the first one, by their roles', async () => {
    await fill('large', 5_000);
    const [one, other] = [await h.person('large', ['developer']), await h.person('large', ['developer', 'auditor'])];
    const reply = await ask({ permission: 'chat:write', tenant_id: 'large' }, h.root.token);
    expect(reply.json).toMatchObject({ has_more: false });
    expect(inTenant('large', reply)).toEqual([one.id, other.id]);
  });

  test('find them also if they may hold any of a hundred roles, or need none', async () => {
    await fill('many', 2_500);
    for (let i = 0; i < 100; i++) {
      const role = { tenant_id: 'many', name: `role-${i}`, permissions: ['chat:write'] };
      await h.db.knex('roles').insert(role);
    }
    const last = await h.person('many', ['role-99']);
    const asked = { permission: 'chat:write', tenant_id: 'many' };
    expect(inTenant('many', await ask(asked, h.root.token))).toEqual([last.id]);
    const everyone = {
      name: 'everyone',
      effect: 'allow',
      actions: ['chat:*'],
      resources: ['*'],
      applies_to: 'everyone',
    };
    await h.api('POST', '/v1/iam/policies', { as: h.root.token, tenant: 'many', body: everyone });
    const page = await ask(asked, h.root.token, '?limit=200');
    expect(page.json).toMatchObject({ has_more: true });
    expect(listed(page, 'users')).toHaveLength(200);
    expect(listed(page, 'users').find(({ id }) => id !== last.id)?.why).toMatchObject([
      { kind: 'policy', name: 'everyone' },
    ]);
  });

  test('scan a bounded number of keys each, and lose none', async () => {
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'keys', name: 'Keys' } });
    await inBatches('api_keys', 25_000, (from, to) => [
      `insert into api_keys (id, tenant_id, description, digest, prefix, last_four, scopes, created_by)
       select 'key_001' || lpad(cast(n as text), 23, '0'), 'keys', 'k', sha256(convert_to('k' || n, 'UTF8')), 'psk_', 'xxxx', array['rag:read'], 't'
       from generate_series(cast(? as int), ?) n`,
      from,
      to,
    ]);
    const made = await h.api('POST', '/v1/iam/api-keys', {
      as: h.root.token,
      tenant: 'keys',
      body: { description: 'k', scopes: ['chat:*'], expires_in_days: 1 },
    });
    const pages: (readonly string[])[] = [];
    for (let query = '', page = 0; page < 10; page++) {
      const reply = await ask({ permission: 'chat:write', tenant_id: 'keys' }, h.root.token, query);
      pages.push(listed(reply, 'keys').map(({ id }) => id));
      if (reply.json['has_more'] !== true) break;
      query = `?cursor=${text(reply.json, 'next_cursor')}`;
    }
    expect(pages).toEqual([[], [], [text(made.json, 'id')]]);
  });

  /** Creates a tenant with a number of users without roles. */
  async function fill(tenant: string, people: number): Promise<void> {
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: tenant, name: tenant } });
    await inBatches('users', people, (from, to) => [
      `insert into users (id, tenant_id, name)
       select 'usr_' || left(md5('${tenant}'), 10) || lpad(cast(n as text), 16, '0'), '${tenant}', 'P' from generate_series(cast(? as int), ?) n`,
      from,
      to,
    ]);
  }

  /** Inserts rows in batches, without the change feed, because no cache has them yet. */
  async function inBatches(
    table: string,
    rows: number,
    batch: (from: number, to: number) => readonly [string, number, number],
  ): Promise<void> {
    const size = 2_500;
    // The server's own statements end after 2 s.
    const patient = h.db.reopen({ ...PATIENT, poolMax: 1 });
    await patient.knex.raw(`alter table ${table} disable trigger user`);
    for (let from = 0; from < rows; from += size) {
      const [query, ...bounds] = batch(from, from + size - 1);
      await patient.knex.raw(query, bounds);
    }
    await patient.knex.raw(`alter table ${table} enable trigger user`);
    await patient.close();
  }
});
