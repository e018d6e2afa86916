/**
 * Resources of another tenant answer exactly like missing ones, for every endpoint, every method and every place of a
 * request that can have a name. The caller is an administrator of a tenant.
 */

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeId } from '../../src/domain/ids.ts';
import type { Endpoint } from '../../src/http/endpoint.ts';
import { makeApiKey } from '../../src/identity/api-keys.ts';
import { storeDecision } from '../support/recorded-decisions.ts';
import { type Call, column, type Json, outcome, type Person, type Reply, rows, startHarness, text } from './harness.ts';
import {
  type Cast,
  type Kind,
  type Pair,
  type Probe,
  probesOf,
  queryOf,
  strayProbes,
  titleOf,
  usageEvent,
} from './isolation-probes.ts';
import { storeIssuer } from './stored-issuers.ts';

const h = await startHarness();
afterAll(async () => {
  await h.close();
});

/** Endpoints that require an authenticated caller. Public ones use only the credential of the request. */
const guarded = h.routes.filter((route) => route.access !== 'public');

const made = new Map<Kind, readonly Pair[]>();
const owned = new Map<Kind, string>();
const cursors = new Map<string, string>();
let boss: Person;
let bossKey = '';

const TENANTS = ['acme', 'globex'];
const inTenant = (tenant: string) => (path: string, body: object) =>
  done('POST', path, { as: h.root.token, tenant, body });

async function done(method: string, path: string, call: Call): Promise<Reply> {
  const reply = await h.api(method, path, call);
  if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.status} ${reply.text}`);
  return reply;
}

/** Creates the same resources in every tenant, each with the tenant's name in its own. */
async function furnish(tenant: string) {
  const post = inTenant(tenant);
  const admin = await h.person(tenant, ['tenant-admin']);
  const email = `person@${tenant}.example`;
  const user = text((await post('/v1/iam/users', { email, name: `Person of ${tenant}` })).json, 'id');
  const key = await post('/v1/iam/api-keys', {
    description: 'k',
    scopes: ['chat:read', 'models:read'],
    expires_in_days: 1,
    user_id: user,
  });
  await post('/v1/iam/roles', { name: `role-of-${tenant}`, permissions: ['chat:read'] });
  await post('/v1/iam/roles', { name: `spare-role-of-${tenant}`, permissions: ['chat:read'] });
  const policy = { effect: 'deny', actions: ['rag:*'], resources: ['*'], attached_roles: [`role-of-${tenant}`] };
  const written = await post('/v1/iam/policies', { ...policy, name: `policy-of-${tenant}` });
  await post('/v1/iam/policies', { ...policy, name: `spare-policy-of-${tenant}` });
  const events = ['llama-3', 'llama-4'].map((model) => ({ ...usageEvent(), model, user_id: user }));
  await post('/v1/iam/usage/events', { events: [...events, { ...usageEvent(), id: `event-of-${tenant}` }] });
  await h.db.query({
    text: `insert into decision_counts (tenant_id, minute, code, route, decisions)
      select $1, date_trunc('minute', now()), code, 'GET /v1/models', 1 from unnest(array['allow', 'denied_by_policy']) code`,
    values: [tenant],
  });
  const denied = { tenant_id: tenant, principal_type: 'user', principal_id: user } as const;
  const issuer = await storeIssuer(h.db, tenant, `issuer-of-${tenant}`, {});
  await storeIssuer(h.db, tenant, `spare-issuer-of-${tenant}`, {});
  const hooks: string[] = [];
  for (const n of [1, 2]) {
    const made = await post('/v1/iam/webhooks', { url: `https://hooks.example/${n}`, events: ['login.locked'] });
    hooks.push(text(made.json, 'id'));
  }
  const deliveries = [1, 2].map(() => makeId('dlv', Date.now(), randomBytes(10)));
  await h.db.query({
    text: `insert into webhook_deliveries (id, webhook_id, type, body, state, next_attempt_at)
      select id, $2, 'login.locked', '{}', 'delivered', null from unnest($1::text[]) id`,
    values: [deliveries, hooks[0]],
  });
  const budget = { unit: 'tokens', limit: 5, period: 'day', applies_to: { keys: [text(key.json, 'id')] } };
  const budgets = [];
  for (const name of ['budget', 'spare-budget'])
    budgets.push(text((await post('/v1/iam/budgets', { ...budget, name: `${name}-of-${tenant}` })).json, 'id'));
  const decisions = [await storeDecision(h.db, denied), await storeDecision(h.db, denied)];
  for (const _ of [1, 2]) {
    const session = {
      id: makeId('ses', Date.now(), randomBytes(10)),
      user_id: user,
      expires_at: new Date(Date.now() + 3_600_000),
    };
    await h.db.knex('sessions').insert(session);
  }
  const { rows: sessions } = await h.db.knex.raw<{ rows: { id: string }[] }>(
    'select id from sessions where user_id = ?',
    [admin.id],
  );
  const strong = await post('/v1/iam/api-keys', {
    description: 'k',
    scopes: ['admin:*', '*:read'],
    expires_in_days: 1,
    user_id: admin.id,
  });
  return {
    admin,
    user,
    email,
    key: text(key.json, 'id'),
    keyText: text(key.json, 'key'),
    strongKey: text(strong.json, 'key'),
    session: sessions[0]?.id ?? '',
    issuer: issuer.id,
    webhook: hooks[0] ?? '',
    delivery: deliveries[0] ?? '',
    budget: budgets[0] ?? '',
    request: String(written.headers['x-request-id']),
    decision: decisions[0] ?? '',
  };
}

const nobodys = (prefix: 'usr' | 'key' | 'ses' | 'req' | 'iss' | 'whk' | 'dlv' | 'bud') =>
  makeId(prefix, Date.now(), randomBytes(10));
/** Returns an unknown name of the same length. */
const scrambled = (name: string) => name.replace(/globex/, 'nobody');

beforeAll(async () => {
  for (const id of TENANTS) await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  const ours = await furnish('acme');
  const theirs = await furnish('globex');
  boss = ours.admin;
  bossKey = ours.strongKey;
  const pair = (name: string, nobody = scrambled(name)): Pair => ({ theirs: name, nobodys: nobody });
  const user = pair(theirs.user, nobodys('usr'));
  const key = pair(theirs.key, nobodys('key'));
  const role = pair('role-of-globex');
  const policy = pair('policy-of-globex');
  const pairs: Readonly<Record<Exclude<Kind, 'cursor'>, readonly Pair[]>> = {
    user: [user],
    key: [key],
    role: [role],
    policy: [policy],
    tenant: [pair('globex')],
    session: [pair(theirs.session, nobodys('ses'))],
    subject: [user, key],
    credential: [pair(theirs.keyText, makeApiKey().text), pair(theirs.admin.token, forged(theirs.admin.token))],
    email: [pair(theirs.email)],
    person: [pair('of globex'), pair(theirs.user, nobodys('usr'))],
    target: [user, key, role, policy, ...[user, key].map(withType('user')), ...[role].map(withType('role'))],
    issuer: [pair(theirs.issuer, nobodys('iss'))],
    issuer_name: [pair('issuer-of-globex')],
    webhook: [pair(theirs.webhook, nobodys('whk'))],
    delivery: [pair(theirs.delivery, nobodys('dlv'))],
    budget: [pair(theirs.budget, nobodys('bud'))],
    request: [pair(theirs.request, nobodys('req'))],
    decision: [pair(theirs.decision, nobodys('req'))],
    event: [pair('event-of-globex')],
    new_role: [pair('spare-role-of-globex')],
    new_policy: [pair('spare-policy-of-globex')],
  };
  for (const [kind, list] of Object.entries(pairs)) made.set(kind as Kind, list);
  owned
    .set('user', ours.user)
    .set('key', ours.key)
    .set('role', 'role-of-acme')
    .set('policy', 'policy-of-acme')
    .set('tenant', 'acme')
    .set('session', ours.session)
    .set('issuer', ours.issuer)
    .set('webhook', ours.webhook)
    .set('delivery', ours.delivery)
    .set('budget', ours.budget)
    .set('decision', ours.decision);
  for (const route of guarded.filter(isList)) await turnPages(route, theirs);
});

/** The same token with another signature of the same length. */
function forged(token: string): string {
  const [header, payload] = token.split('.');
  return `${header}.${payload}.${randomBytes(64).toString('base64url')}`;
}

function withType(type: string) {
  return ({ theirs, nobodys: nobody }: Pair): Pair => ({ theirs: `${type}/${theirs}`, nobodys: `${type}/${nobody}` });
}

function isList(route: Endpoint): boolean {
  return 'properties' in route.querySchema && 'cursor' in Object(route.querySchema.properties);
}

/** Their administrator's cursor of a list, where its second page begins. */
async function turnPages(
  route: Endpoint,
  { admin, user, key, webhook }: Awaited<ReturnType<typeof furnish>>,
): Promise<void> {
  const path = route.path
    .replace(':name', 'role-of-globex')
    .replace('users/:id', `users/${user}`)
    .replace('api-keys/:id', `api-keys/${key}`)
    .replace('webhooks/:id', `webhooks/${webhook}`)
    .replace(':id', 'globex');
  const body = route.method === 'POST' ? { body: { permission: 'chat:read' } } : {};
  const reply = await h.api(route.method, `${path}?${queryOf(route)}limit=1`, { as: admin.token, ...body });
  const cursor = reply.json['next_cursor'];
  if (typeof cursor === 'string') cursors.set(titleOf(route), cursor);
}

const cast: Cast = {
  pairs: (kind, route) => {
    if (kind !== 'cursor') return made.get(kind) ?? [];
    const cursor = cursors.get(titleOf(route));
    return cursor === undefined
      ? []
      : [{ theirs: cursor, nobodys: randomBytes(cursor.length).toString('base64url').slice(0, cursor.length) }];
  },
  own: (kind) => owned.get(kind) ?? '',
};

/** Returns the whole answer, without the parts that differ with every request and with the requested name masked. */
function told(reply: Reply, name: string): unknown {
  const { 'x-request-id': _id, date: _date, etag, ...headers } = reply.headers;
  const own = reply.status < 300 && /_at"/.test(reply.text) ? { etag: 'of something just made' } : { etag };
  const plain = reply.text.replace(/"request_id":"req_[0-9a-z]{26}"/, '"request_id":""');
  const blotted = JSON.stringify({ status: reply.status, headers: { ...headers, ...own }, body: plain });
  return blotted
    .replaceAll(name, '@')
    .replaceAll(encodeURIComponent(name), '@')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'instant');
}

/** Reports whether the request reached the lookup of its name and the answer is that it does not exist. */
function isAnswerToTheName({ place }: Probe, reply: Reply): boolean {
  const [where, member = ''] = place.split(' ');
  const code = outcome(reply);
  // The endpoint is for platform administrators, requires an access token, or the old password is wrong.
  if (['403 insufficient_permission', '405 method_not_allowed'].includes(code)) return true;
  if (where === 'header' || member.endsWith('tenant_id')) return reply.json['code'] === 'tenant_mismatch';
  if (where === 'path') return code === '404 not_found';
  if (code === '422 invalid_field') return firstPath(reply).startsWith(member);
  if (member === 'cursor') return code === '400 invalid_parameter';
  if (where === 'query') return code === '200' && rows(reply).length === 0;
  return ['404 not_found', '200', '201'].includes(code);
}

function firstPath(reply: Reply): string {
  const [first] = Array.isArray(reply.json['errors']) ? reply.json['errors'] : [];
  return text(first, 'path');
}

async function ask(
  method: string,
  probe: Probe,
  name: string,
  as: string,
  headers: Call['headers'] = {},
): Promise<Reply> {
  const { path, ...call } = probe.request(name);
  const reply = await h.api(method, path, { ...call, as, headers });
  // Deletes the resource that a probe created, so that the next probe finds the same tenant.
  const { location } = reply.headers;
  if (reply.status === 201 && typeof location === 'string') await done('DELETE', location, { as: boss.token });
  return reply;
}

/** Returns the rows of one request in the audit log of the caller's tenant, masked like `told`. */
async function audited(reply: Reply, name: string): Promise<string> {
  const { rows: written } = await h.db.knex.raw<{ rows: Json[] }>(
    `select tenant_id, actor_id, action, target_type, target_id, result, before, after from audit_log
     where tenant_id = 'acme' and request_id = ? order by id`,
    [String(reply.headers['x-request-id'])],
  );
  return JSON.stringify(written)
    .replaceAll(name, '@')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'instant');
}

async function expectAlike(
  method: string,
  route: Pick<Endpoint, 'path'>,
  probe: Probe,
  headers: Call['headers'] = {},
): Promise<void> {
  for (const as of [boss.token, bossKey]) {
    const theirs = await ask(method, probe, probe.pair.theirs, as, headers);
    const nobody = await ask(method, probe, probe.pair.nobodys, as, headers);
    const about = `${method} ${route.path}, ${probe.place}: `;
    expect(about + told(theirs, probe.pair.theirs)).toBe(about + told(nobody, probe.pair.nobodys));
    expect(about + (await audited(theirs, probe.pair.theirs))).toBe(
      about + (await audited(nobody, probe.pair.nobodys)),
    );
    expect([about, theirs.text, isAnswerToTheName(probe, theirs)]).toEqual([about, theirs.text, true]);
  }
}

/** Everything that a tenant has. */
async function belongings(tenant: string): Promise<unknown> {
  const of = async (query: string) => (await h.db.knex.raw<{ rows: Json[] }>(query, { tenant })).rows;
  return {
    users: await of('select * from users where tenant_id = :tenant order by id'),
    given: await of(
      'select r.* from user_roles r join users u on u.id = r.user_id where u.tenant_id = :tenant order by 1, 2',
    ),
    sessions: await of(
      'select s.* from sessions s join users u on u.id = s.user_id where u.tenant_id = :tenant order by s.id',
    ),
    setups: await of(
      'select t.* from one_time_tokens t join users u on u.id = t.user_id where u.tenant_id = :tenant order by 1',
    ),
    roles: await of('select * from roles where tenant_id = :tenant order by name'),
    policies: await of('select * from policies where tenant_id = :tenant order by name'),
    attached: await of(
      'select r.* from policy_roles r join policies p on p.id = r.policy_id where p.tenant_id = :tenant order by 1, 2',
    ),
    identities: await of(
      'select l.* from user_identities l join users u on u.id = l.user_id where u.tenant_id = :tenant order by 1, 2',
    ),
    issuers: await of('select * from issuers where tenant_id = :tenant order by id'),
    webhooks: await of('select * from webhooks where tenant_id = :tenant order by id'),
    deliveries: await of(
      'select d.* from webhook_deliveries d join webhooks w on w.id = d.webhook_id where w.tenant_id = :tenant order by d.id',
    ),
    issuerKeys: await of(
      'select k.* from issuer_keys k join issuers i on i.id = k.issuer_id where i.tenant_id = :tenant order by 1',
    ),
    budgets: await of('select * from budgets where tenant_id = :tenant order by id'),
    keys: await of('select * from api_keys where tenant_id = :tenant order by id'),
    tenant: await of('select * from tenants where id = :tenant'),
    usage: await of('select * from usage_daily where tenant_id = :tenant order by 1, 2, 3, 4, 5'),
    events: await of('select * from usage_events where tenant_id = :tenant order by id'),
    counters: await of('select * from token_budgets where tenant_id = :tenant order by period'),
    audit: await of('select * from audit_log where tenant_id = :tenant order by id'),
  };
}

describe("another tenant's name is answered like an unknown name", () => {
  test.each(guarded.map((route) => [titleOf(route), route] as const))('%s', async (_title, route) => {
    const before = await belongings('globex');
    for (const probe of probesOf(route, cast)) {
      await expectAlike(route.method, route, probe);
      if (probe.place.startsWith('path')) await expectAlike(route.method, route, probe, { 'if-match': '*' });
    }
    expect(await belongings('globex')).toEqual(before);
  });

  const templates = [
    ...new Map(guarded.filter(({ path }) => path.includes(':')).map((route) => [route.path, route])).values(),
  ];
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

  test.each(templates.map((route) => [route.path, route] as const))(
    '%s, by every other method',
    async (template, route) => {
      const before = await belongings('globex');
      for (const method of methods) {
        if (guarded.some((one) => one.path === template && one.method === method)) continue;
        for (const probe of strayProbes(template, cast, route)) {
          for (const as of [boss.token, bossKey]) {
            const theirs = await ask(method, probe, probe.pair.theirs, as);
            const nobody = await ask(method, probe, probe.pair.nobodys, as);
            expect(`${method} ${told(theirs, probe.pair.theirs)}`).toBe(
              `${method} ${told(nobody, probe.pair.nobodys)}`,
            );
            expect(theirs.status).toBeGreaterThanOrEqual(400);
          }
        }
      }
      expect(await belongings('globex')).toEqual(before);
    },
  );

  test('in both places of a path', async () => {
    for (const method of ['PUT', 'DELETE']) {
      const theirs = await h.api(method, '/v1/iam/roles/role-of-globex/policies/policy-of-globex', { as: boss.token });
      const nobody = await h.api(method, '/v1/iam/roles/role-of-nobody/policies/policy-of-nobody', { as: boss.token });
      expect(told(theirs, 'globex')).toBe(told(nobody, 'nobody'));
      expect(outcome(theirs)).toBe('404 not_found');
    }
  });

  test('as an Idempotency-Key', async () => {
    const theirs = { 'idempotency-key': 'a key that globex has used' };
    const body = { name: 'made-once', permissions: ['chat:read'] };
    await done('POST', '/v1/iam/roles', { as: h.root.token, tenant: 'globex', body, headers: theirs });
    const other = { name: 'made-once', permissions: ['rag:read'] };
    const ours = await h.api('POST', '/v1/iam/roles', { as: boss.token, body: other, headers: theirs });
    expect(outcome(ours)).toBe('201');
    expect(ours.json).toMatchObject({ tenant_id: 'acme', permissions: ['rag:read'] });
  });
});

test('every list is probed with a cursor of another tenant, except lists of which no tenant has two rows', () => {
  const lists = guarded.filter(isList).map(titleOf);
  const oneRow = ['GET /v1/iam/tenants', 'GET /v1/auth/sessions'];
  expect(lists.filter((title) => !cursors.has(title))).toEqual(lists.filter((title) => oneRow.includes(title)));
});

test.each([
  ['/v1/iam/users', 'id', 'user'],
  ['/v1/iam/api-keys', 'id', 'key'],
  ['/v1/iam/roles', 'name', 'role'],
  ['/v1/iam/policies', 'name', 'policy'],
  ['/v1/iam/issuers', 'id', 'issuer'],
  ['/v1/iam/webhooks', 'id', 'webhook'],
  ['/v1/iam/budgets', 'id', 'budget'],
] as const)('%s lists nothing of another tenant', async (path, member, kind) => {
  const foreign = made.get(kind)?.[0]?.theirs;
  expect(column(await h.api('GET', `${path}?limit=200`, { as: boss.token }), member)).not.toContain(foreign);
  expect(column(await h.api('GET', `${path}?limit=200&tenant_id=globex`, { as: h.root.token }), member)).toContain(
    foreign,
  );
});

describe('a platform administrator', () => {
  const theirs = (kind: 'user' | 'key' | 'issuer' | 'budget'): string => made.get(kind)?.[0]?.theirs ?? '';

  test.each([
    ['user', '/v1/iam/users'],
    ['key', '/v1/iam/api-keys'],
    ['issuer', '/v1/iam/issuers'],
    ['budget', '/v1/iam/budgets'],
  ] as const)('reaches a %s of any tenant by its id alone, to read and to change', async (kind, list) => {
    const path = `${list}/${theirs(kind)}`;
    const read = await h.api('GET', path, { as: h.root.token });
    expect([outcome(read), read.json['tenant_id']]).toEqual(['200', 'globex']);
    const changes = {
      user: { department: 'reached' },
      key: { description: 'reached' },
      issuer: { leeway_seconds: 7 },
      budget: { limit: 7 },
    };
    const change = changes[kind];
    expect(outcome(await h.api('PATCH', path, { as: h.root.token, body: change }))).toBe('200');
    expect((await h.api('GET', path, { as: h.root.token, tenant: 'globex' })).json).toMatchObject(change);
    const audit = await h.api('GET', `/v1/iam/audit?target=${theirs(kind)}&tenant_id=globex&limit=1`, {
      as: h.root.token,
    });
    expect(rows(audit)).toMatchObject([{ tenant_id: 'globex', actor: { id: h.root.id } }]);
  });

  test("reaches a user's sessions by the ids only", async () => {
    const person = await h.person('globex', []);
    const listed = await h.api('GET', `/v1/iam/users/${person.id}/sessions`, { as: h.root.token });
    const [session] = rows(listed);
    const path = `/v1/iam/users/${person.id}/sessions/${String(session?.['id'])}`;
    expect(outcome(await h.api('DELETE', path, { as: h.root.token }))).toBe('204');
  });

  test('that names a tenant finds only the resources of that tenant', async () => {
    for (const path of [`/v1/iam/users/${theirs('user')}`, `/v1/iam/api-keys/${theirs('key')}`]) {
      expect(outcome(await h.api('GET', path, { as: h.root.token, tenant: 'default' }))).toBe('404 not_found');
    }
  });
});

test("a tenant's administrator reaches no id of another tenant", async () => {
  for (const path of [
    `/v1/iam/users/${made.get('user')?.[0]?.theirs}`,
    `/v1/iam/api-keys/${made.get('key')?.[0]?.theirs}`,
  ]) {
    expect(outcome(await h.api('GET', path, { as: boss.token }))).toBe('404 not_found');
  }
});
