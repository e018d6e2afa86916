import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { compileConditions, conditionInputs, conditionsHold } from '../../src/decision/conditions.ts';
import { Fault } from '../../src/domain/errors.ts';
import { makeId, type TenantId } from '../../src/domain/ids.ts';
import { finish } from '../../src/domain/steps.ts';
import { PostgresCacheLoader, STATEMENTS } from '../../src/store/cache-loader.ts';
import type { Statement } from '../../src/store/pool.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { digestOf, seedKey, seedTenant, seedUser, tenantId } from './seed.ts';

let fresh: FreshDatabase;
let source: PostgresCacheLoader;

beforeAll(async () => {
  fresh = await freshDatabase();
  source = new PostgresCacheLoader(fresh.db);
  await seedTenant(fresh.db, 'acme', {
    settings: { rate_limit_rpm: 60, default_model: null },
    quotas: { monthly_tokens: 0 },
  });
});
afterAll(() => fresh.close());

async function position(): Promise<number> {
  const [row] = await fresh.db.query({ text: 'select feed_position() as position' });
  return Number(row?.['position']);
}

describe('a key', () => {
  test('is found by its digest, with everything that a decision needs', async () => {
    const owner = await seedUser(fresh.db, 'acme');
    const digest = digestOf('key one');
    const id = await seedKey(fresh.db, 'acme', digest, {
      user_id: owner,
      scopes: ['chat:write', 'rag:*'],
      resource_constraints: { models: ['gpt-*'], collections: null, agents: [] },
      rate_limit_rpm: 10,
      expires_at: new Date(1_900_000_000_123),
    });
    expect(await source.key(digest, true)).toEqual({
      asOf: await position(),
      value: {
        id,
        digest,
        tenantId: 'acme',
        userId: owner,
        scopes: ['chat:write', 'rag:*'],
        constraints: { models: ['gpt-*'], agents: [] },
        rateLimitRpm: 10,
        expiresAtMs: 1_900_000_000_123,
        graceUntilMs: undefined,
        revoked: false,
        disabled: false,
      },
    });
  });

  test('is found by the digest before its rotation, and says until when', async () => {
    const [current, previous] = [digestOf('new'), digestOf('old')];
    await seedKey(fresh.db, 'acme', current, {
      previous_digest: Buffer.from(previous, 'hex'),
      previous_until: new Date(1_800_000_000_000),
      revoked_at: new Date(),
    });
    expect((await source.key(previous, true)).value).toMatchObject({
      digest: previous,
      graceUntilMs: 1_800_000_000_000,
      revoked: true,
    });
    expect((await source.key(current, true)).value).toMatchObject({
      digest: current,
      graceUntilMs: undefined,
      expiresAtMs: undefined,
    });
  });

  test('that does not exist is undefined, as of a position', async () => {
    expect(await source.key(digestOf('nobody'), true)).toEqual({ value: undefined, asOf: await position() });
  });
});

test('keys that are requested together come in one statement, each with its own row or none, of one position', async () => {
  const digests = Array.from({ length: 120 }, (_none, n) => digestOf(`together ${n}`));
  const old = digestOf('rotated away');
  for (const [n, digest] of digests.entries()) {
    const rotated =
      n === 0 ? { previous_digest: Buffer.from(old, 'hex'), previous_until: new Date(1_800_000_000_000) } : {};
    if (n % 2 === 0) await seedKey(fresh.db, 'acme', digest, { scopes: [`chat:v${n}`], ...rotated });
  }
  const asked: string[] = [];
  const counting = {
    ...fresh.db,
    query: (statement: Statement) => {
      asked.push(statement.name ?? '');
      return fresh.db.query(statement);
    },
  };
  const together = new PostgresCacheLoader(counting);
  const found = await Promise.all([...digests, old].map((digest) => together.key(digest, false)));
  expect(asked).toEqual(['live_keys', 'live_keys']);
  expect(found.map(({ value }) => value?.scopes[0])).toEqual([
    ...digests.map((_digest, n) => (n % 2 === 0 ? `chat:v${n}` : undefined)),
    'chat:v0',
  ]);
  expect(found.at(-1)?.value).toMatchObject({ digest: old, graceUntilMs: 1_800_000_000_000 });
  expect(new Set(found.map(({ asOf }) => asOf))).toEqual(new Set([await position()]));
});

test('a user comes with its roles, given by hand and by the directory, sorted and once each', async () => {
  const id = await seedUser(fresh.db, 'acme', { status: 'deactivated' });
  await fresh.db.knex('user_roles').insert([
    { user_id: id, role_name: 'developer', source: 'directory' },
    { user_id: id, role_name: 'analyst' },
    { user_id: id, role_name: 'developer' },
  ]);
  expect((await source.user(id)).value).toEqual({
    id,
    tenantId: 'acme',
    status: 'deactivated',
    roles: ['analyst', 'developer'],
  });
  expect((await source.user(makeId('usr', 9, new Uint8Array(10)))).value).toBeUndefined();
});

test('a session comes with its user, its end and whether it was ended', async () => {
  const user = await seedUser(fresh.db, 'acme');
  const id = makeId('ses', 3, new Uint8Array(10));
  await fresh.db.knex('sessions').insert({ id, user_id: user, expires_at: new Date(1_800_000_000_000) });
  expect((await source.session(id)).value).toEqual({ id, userId: user, ended: false, expiresAtMs: 1_800_000_000_000 });
  await fresh.db.knex('sessions').where({ id }).update({ ended_at: new Date() });
  expect((await source.session(id)).value).toMatchObject({ ended: true });
});

describe('a tenant', () => {
  test('comes with its roles, policies and budgets and what they are attached to, and nothing of others', async () => {
    const conditions = {
      ip_address: { in: ['10.0.0.0/8'] },
      time: { not_between: ['22:00', '06:00'] },
      day_of_week: { not_in: ['Sat'] },
      weekly_hours: { in: ['Mon-Fri 08:00-18:00'] },
      timezone: 'Asia/Almaty',
    };
    await seedTenant(fresh.db, 'other');
    await fresh.db.knex('roles').insert([
      { tenant_id: 'acme', name: 'helper', permissions: ['chat:*'], resource_constraints: { models: ['a'] } },
      { tenant_id: 'other', name: 'stranger', permissions: ['*'] },
    ]);
    const policy = { effect: 'deny', actions: ['*'], resources: ['*'], applies_to: 'everyone' };
    const [mine] = await fresh.db
      .knex('policies')
      .insert({ ...policy, tenant_id: 'acme', name: 'office', conditions })
      .returning('id');
    await fresh.db.knex('policies').insert([
      { ...policy, tenant_id: 'other', name: 'theirs' },
      { ...policy, name: 'everywhere', enabled: false },
    ]);
    await fresh.db.knex('policy_roles').insert([
      { policy_id: mine.id, role_name: 'helper' },
      { policy_id: mine.id, role_name: 'analyst' },
    ]);
    const id = `bud_${'0'.repeat(26)}`;
    const budget = { unit: 'money', limit_amount: 5, period: 'month', models: ['gpt-*'] };
    await fresh.db.knex.raw(
      `insert into budgets (id, tenant_id, name, unit, limit_amount, period, applies_to, models, enabled)
       select * from jsonb_to_recordset(?) as r(id text, tenant_id text, name text, unit text, limit_amount bigint, period text,
         applies_to jsonb, models text[], enabled boolean)`,
      [
        JSON.stringify([
          { ...budget, id, tenant_id: 'acme', name: 'team', applies_to: { metadata: { team: 'a' } }, enabled: true },
          { ...budget, id: 'b2', tenant_id: 'acme', name: 'off', applies_to: { tenant: true }, enabled: false },
          { ...budget, id: 'b3', tenant_id: 'other', name: 'theirs', applies_to: { tenant: true }, enabled: true },
        ]),
      ],
    );
    const common = { effect: 'deny', actions: ['*'], resources: ['*'], appliesTo: 'everyone' };
    const tenant = await source.tenant(tenantId('acme'));
    expect({ ...tenant, value: tenant.value && finish(tenant.value) }).toEqual({
      asOf: await position(),
      value: {
        id: 'acme',
        status: 'active',
        settings: { rate_limit_rpm: 60 },
        quotas: { monthly_tokens: 0 },
        roles: [{ name: 'helper', permissions: ['chat:*'], constraints: { models: ['a'] } }],
        policies: [{ ...common, name: 'office', conditions, attachedRoles: ['analyst', 'helper'], enabled: true }],
        budgets: [
          {
            ...{ id, name: 'team', unit: 'money', limit: 5, period: 'month', timezone: undefined, epoch: 0 },
            ...{ appliesTo: { metadata: { team: 'a' } }, per: 'all', models: ['gpt-*'], action: 'block' },
          },
        ],
      },
    });
    const globals = await source.globalPolicies();
    expect({ ...globals, value: finish(globals.value) }).toEqual({
      asOf: await position(),
      value: [{ ...common, name: 'everywhere', conditions: {}, attachedRoles: [], enabled: false }],
    });
  });

  test('with large rules has them read in many steps, each a small part of the whole, and in the order of their names', async () => {
    await seedTenant(fresh.db, 'large');
    const names = Array.from({ length: 400 }, (_none, n) => `p${String((n * 7) % 400).padStart(3, '0')}`);
    const resources = Array.from({ length: 20 }, (_none, n) => `models/${n}`.padEnd(60, 'x'));
    await fresh.db.knex('policies').insert(
      names.map((name) => ({
        tenant_id: 'large',
        name,
        effect: 'deny',
        actions: ['*'],
        resources,
        applies_to: 'everyone',
      })),
    );
    const parse = vi.spyOn(JSON, 'parse');
    const { value } = await source.tenant(tenantId('large'));
    let steps = 0;
    for (let step = value?.next(); step !== undefined && step.done !== true; step = value?.next()) steps++;
    const parsed = parse.mock.calls.map(([text]) => text.length);
    parse.mockRestore();
    expect(steps).toBe(400);
    expect(parsed.filter((length) => length > 1000).length).toBeGreaterThan(10);
    expect(Math.max(...parsed)).toBeLessThan(64 * 1024);
    const again = await source.tenant(tenantId('large'));
    expect((again.value && finish(again.value))?.policies.map(({ name }) => name)).toEqual(
      names.toSorted((left, right) => (left < right ? -1 : 1)),
    );
  });

  test('that was deleted, or never was, is undefined', async () => {
    await seedTenant(fresh.db, 'gone', { deleted_at: new Date() });
    expect((await source.tenant(tenantId('gone'))).value).toBeUndefined();
    expect((await source.tenant(tenantId('never'))).value).toBeUndefined();
  });

  const oddRow = { name: 'odd', actions: ['*'], resources: ['*'] };

  test.each([
    { moon: { in: ['full'] } },
    { time: { before: '12:00' } },
    { time: { between: ['12:00'] } },
    { time: {} },
    { day_of_week: { in: ['Caturday'] } },
    { day_of_week: { in: [] } },
    { weekly_hours: { in: ['Holidays'] } },
    { weekly_hours: { in: [] } },
    { ip_address: 'all' },
    { ip_address: {} },
    { ip_address: null },
    { ip_address: { in: null } },
    { ip_address: { in: ['10.0.0.1'], near: ['office'] } },
    { timezone: {} },
  ])(
    'with a policy whose stored conditions cannot be read: the deny holds and the allow does not: %j',
    async (conditions) => {
      const id = await oddTenant(conditions);
      await fresh.db.knex('policies').insert([
        { ...oddRow, tenant_id: id, effect: 'deny', applies_to: 'everyone', conditions },
        { ...oddRow, tenant_id: id, name: 'odd-allow', effect: 'allow', applies_to: 'roles', conditions },
      ]);
      const { value } = await source.tenant(id);
      const policies = value === undefined ? [] : finish(value).policies;
      const now = conditionInputs(Date.parse('2026-11-18T12:00:00Z'), '10.0.0.1', undefined);
      expect(
        policies.map(({ effect, conditions: stored }) => [
          effect,
          conditionsHold(compileConditions(stored), effect, now),
        ]),
      ).toEqual([
        ['deny', true],
        ['allow', false],
      ]);
    },
  );

  test.each([
    { tools: ['hammer'] },
    { models: ['a'], tools: [] },
    { models: 'a' },
    { models: [1] },
    { models: {} },
    [],
    'none',
    null,
  ])(
    'with a role whose stored resource_constraints cannot be read is a fault, never a role without constraints: %j',
    async (odd) => {
      const id = await oddTenant({ odd });
      const stored = JSON.stringify(odd);
      await fresh.db
        .knex('roles')
        .insert({ tenant_id: id, name: 'odd', permissions: ['*'], resource_constraints: stored });
      const { value } = await source.tenant(id);
      expect(() => value && finish(value)).toThrow(Fault);
      const digest = digestOf(`key ${id}`);
      await seedKey(fresh.db, id, digest, { scopes: ['*'], resource_constraints: stored });
      await expect(source.key(digest, true)).rejects.toBeInstanceOf(Fault);
    },
  );

  function oddTenant(odd: unknown): Promise<TenantId> {
    return seedTenant(fresh.db, `odd-${createHash('sha256').update(JSON.stringify(odd)).digest('hex').slice(0, 8)}`);
  }
});

test('no lookup reads a whole table: not of a new database, whose plans stay when it grows', async () => {
  const empty = await freshDatabase();
  await expectLookupsByIndex(empty);
  await empty.close();
});

test('no lookup reads a whole table, for any number of rows', async () => {
  const patient = fresh.db.reopen({ poolMax: 1, queryTimeoutMs: 60_000 });
  await patient.knex.raw(`
    set session_replication_role = replica;
    insert into tenants (id, name) select 't' || n, 't' from generate_series(1, 2000) n;
    insert into users (id, tenant_id, name) select 'u' || n, 't' || (n % 2000 + 1), 'u' from generate_series(1, 5000) n;
    insert into user_roles (user_id, role_name, tenant_id, status)
      select 'u' || n, 'analyst', 't' || (n % 2000 + 1), 'active' from generate_series(1, 5000) n;
    insert into roles (tenant_id, name, permissions) select 't' || n, 'r', '{}' from generate_series(1, 2000) n;
    insert into policies (tenant_id, name, effect, actions, resources, applies_to)
      select 't' || (n % 2000 + 1), 'p' || n, 'deny', '{*}', '{*}', 'roles' from generate_series(1, 5000) n;
    insert into policy_roles select id, 'auditor' from policies;
    insert into budgets (id, tenant_id, name, unit, limit_amount, period, applies_to)
      select 'bud' || n, 't' || (n % 2000 + 1), 'bud' || n, 'tokens', 1, 'day', '{"tenant": true}' from generate_series(1, 5000) n;
    insert into api_keys (id, tenant_id, description, digest, prefix, last_four, scopes, created_by)
      select 'k' || n, 't1', '', sha256(n::text::bytea), '', '', '{}', '' from generate_series(1, 20000) n;
    insert into sessions (id, user_id, expires_at) select 's' || n, 'u' || n, now() from generate_series(1, 5000) n;
    insert into ended_issuer_sessions (issuer_id, which, begun_until) select 'i' || n, 'all', now() from generate_series(1, 2000) n;
    insert into issuers (id, tenant_id, name, kind, issuer, audiences, algorithms)
      select 'i' || n, 't' || n, 'i', 'oidc', 'https://i' || n, '{}', '{}' from generate_series(1, 2000) n;
    insert into issuer_keys (issuer_id) select 'i' || n from generate_series(1, 2000) n;
    insert into user_identities (issuer_id, subject, user_id)
      select 'i' || (n % 2000 + 1), 's' || n, 'u' || n from generate_series(1, 5000) n;
    insert into changes (seq, kind, key) select n + 1000000, 'key', '' from generate_series(1, 20000) n;
    set session_replication_role = origin;
    analyze;`);
  await patient.close();
  await expectLookupsByIndex(fresh);
});

/** Checks the plans that a connection makes once and keeps, whatever the parameters are. */
async function expectLookupsByIndex({ db }: FreshDatabase): Promise<void> {
  const literals = { key: `'\\x00'`, keys: `array['\\x00', '\\x01']::bytea[]` };
  for (const [kind, { name, text }] of Object.entries(STATEMENTS)) {
    const literal = new Map(Object.entries(literals)).get(kind) ?? "'a'";
    const values = [...new Set(text.match(/\$\d/g))].map(() => literal).join(', ');
    const lines = await db.knex.transaction(async (trx) => {
      await trx.raw('set local plan_cache_mode = force_generic_plan');
      await trx.raw(`prepare planned_${name} as ${text.replaceAll('?', '\\?')}`);
      const { rows } = await trx.raw(`explain execute planned_${name} ${values === '' ? '' : `(${values})`}`);
      await trx.raw(`deallocate planned_${name}`);
      return rows.map((row: Record<string, unknown>) => String(row['QUERY PLAN'])).join('\n');
    });
    // The state of the feed is a single row.
    expect(lines.replaceAll('Seq Scan on feed_state', ''), `${kind}:\n${lines}`).not.toContain('Seq Scan');
    expect(lines).toMatch(/Index|Bitmap/);
  }
}
