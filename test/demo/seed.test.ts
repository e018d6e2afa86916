/** The seed of `npm start`: the data after the first start, and the data that later starts do not change. */

import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { seedDemo } from '../../src/cli/demo-seed.ts';
import { ACME, TRIAL, TRIAL_LIMITS } from '../../src/cli/demo-setup.ts';
import { seedTraffic } from '../../src/cli/demo-traffic.ts';
import { CLIENTS, SLOT_MS, slotOf } from '../../src/demo/traffic.ts';
import { DEFAULT_TENANT, parseId } from '../../src/domain/ids.ts';
import { markRevoked } from '../../src/iam/api-keys/queries.ts';
import type { AdminParts } from '../../src/iam/caller/caller.ts';
import { findTenant, insertTenant } from '../../src/iam/tenants/queries.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';

/** A Friday. */
const NOON = Date.UTC(2026, 10, 20, 12);
const DAY = 86_400_000;

let fresh: FreshDatabase;
beforeEach(async () => {
  fresh = await freshDatabase();
  await insertTenant(fresh.db.knex, { id: DEFAULT_TENANT, name: 'Platform', settings: {}, quotas: {}, metadata: {} });
});
afterEach(() => fresh.close());

/** As the demo does, at that time. */
function partsAt(nowMs: number): AdminParts {
  return {
    db: fresh.db,
    feed: { catchUp: async () => undefined },
    flush: () => undefined,
    now: () => nowMs,
    random: (size) => randomBytes(size),
    passwords: { hash: async () => '' },
  };
}

async function read(text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return fresh.db.query({ text });
}

const COUNTERS = [
  'select tenant_id, minute, code, route, decisions from decision_counts order by 1, 2, 3, 4',
  'select * from usage_daily order by tenant_id, day, model, key_id',
  'select * from usage_by_model order by tenant_id, day, model',
  'select * from token_budgets order by tenant_id, period',
  `select count(*) from usage_events`,
];

async function counters(): Promise<unknown> {
  return Promise.all(COUNTERS.map((text) => read(text)));
}

describe('the seed of the demo', () => {
  it('makes two tenants with a week of allowed and denied requests, and what they spent since the month began', async () => {
    await seedDemo(partsAt(NOON));
    const decided = await read(
      `select tenant_id, count(distinct date_trunc('day', minute, 'UTC'))::int as days,
         count(distinct code)::int as codes, min(minute) >= to_timestamp(${(NOON - 7 * DAY) / 1000}) as fresh,
         max(minute) < to_timestamp(${NOON / 1000}) as past from decision_counts group by 1 order by 1`,
    );
    expect(decided).toEqual([
      { tenant_id: 'acme', days: 8, codes: 6, fresh: true, past: true },
      { tenant_id: 'trial', days: 8, codes: 2, fresh: true, past: true },
    ]);
    const [acme, trial] = await read(
      `select tenant_id, period, spent from token_budgets where period = '2026-11' order by 1`,
    );
    expect([acme?.['tenant_id'], trial?.['tenant_id']]).toEqual(['acme', 'trial']);
    const days = await read(
      `select count(distinct day)::int as days, min(day)::text as first from usage_daily where tenant_id = 'acme'`,
    );
    expect(days).toEqual([{ days: 20, first: '2026-11-01' }]);
  });

  it('spends what the clients of the month spend, in sum over models, keys and the quota alike', async () => {
    await seedDemo(partsAt(NOON));
    const sums = await read(
      `select (select sum(total_tokens) from usage_daily where tenant_id = 'acme' and day >= '2026-11-01')::float8 as daily,
         (select sum(total_tokens) from usage_by_model where tenant_id = 'acme' and day >= '2026-11-01')::float8 as by_model,
         (select spent from token_budgets where tenant_id = 'acme' and period = '2026-11')::float8 as spent`,
    );
    // The month of Berlin began an hour before that of UTC.
    const monthMs = Date.UTC(2026, 9, 31, 23);
    let expected = 0;
    for (let startMs = monthMs; startMs < NOON; startMs += SLOT_MS) {
      for (const client of CLIENTS.filter(({ tenant }) => tenant === 'acme')) {
        expected += slotOf(client, startMs, 60).allowed * (client.prompt + client.completion);
      }
    }
    expect(sums).toEqual([{ daily: expected, by_model: expected, spent: expected }]);
  });

  it('counts the usage in the budgets of the tenant, each in its own period and unit', async () => {
    await seedDemo(partsAt(NOON));
    const counted = await read(
      `select b.name, count(*)::int as counters, sum(c.spent)::float8 as spent from budgets b
       join token_budgets c on c.tenant_id = b.tenant_id and starts_with(c.period, b.id)
       where case b.period when 'month' then c.period like '%2026-11%' when 'day' then c.period like '%2026-11-19%' else true end
       group by b.name order by b.name`,
    );
    const [expected] = await read(
      `select sum(cost)::float8 as acme, sum(requests) filter (where day = '2026-11-19')::float8 as each_key,
         sum(total_tokens) filter (where k.name = 'support-desk')::float8 as support
       from usage_daily u join api_keys k on k.id = u.key_id where u.tenant_id = 'acme' and day >= '2026-11-01'`,
    );
    expect(counted).toEqual([
      { name: 'acme', counters: 1, spent: expected?.['acme'] },
      { name: 'each-key', counters: 5, spent: expected?.['each_key'] },
      { name: 'support', counters: 4, spent: expected?.['support'] },
    ]);
  });

  it('leaves the counters as they are at a second start in the same ten minutes', async () => {
    await seedDemo(partsAt(NOON));
    const before = await counters();
    await seedDemo(partsAt(NOON + 60_000));
    expect(await counters()).toEqual(before);
  });

  it('adds at a later start the traffic since the last start, and nothing twice', async () => {
    await seedDemo(partsAt(NOON));
    const total = `select sum(decisions)::int as all, max(minute) as last from decision_counts where tenant_id = 'acme'`;
    const [noon] = await read(total);
    await Promise.all([seedTraffic(partsAt(NOON + DAY / 2)), seedTraffic(partsAt(NOON + DAY / 2))]);
    const [later] = await read(total);
    let passed = 0;
    for (let startMs = NOON; startMs < NOON + DAY / 2; startMs += SLOT_MS) {
      for (const client of CLIENTS.filter(({ tenant }) => tenant === 'acme')) {
        const { allowed, denied } = slotOf(client, startMs, 60);
        passed += allowed + denied.reduce((sum, { count }) => sum + count, 0);
      }
    }
    expect(Number(later?.['all']) - Number(noon?.['all'])).toBe(passed);
  });

  it('makes no key a second time and renews only those that it prints', async () => {
    const first = await seedDemo(partsAt(NOON));
    const digests = `select id, name, encode(digest, 'hex') as digest from api_keys order by id`;
    const before = await read(digests);
    const second = await seedDemo(partsAt(NOON + DAY));
    expect([first.made.size, second.made.size]).toEqual([8, 0]);
    const changed = (await read(digests)).filter((row, i) => row['digest'] !== before[i]?.['digest']);
    expect(changed.map((row) => row['name'])).toEqual(['demo', 'demo']);
    expect(second.key).not.toBe(first.key);
  });

  it('creates the owner of the printed key again if it was deleted, and changes no other user', async () => {
    await seedDemo(partsAt(NOON));
    const users = `select email, name, status, department from users where tenant_id = 'acme' order by email`;
    await fresh.db.query({ text: `update users set name = 'Priya R.' where email = 'priya.raman@acme.example'` });
    const before = await read(users);
    await fresh.db.query({ text: `delete from users where email = 'developer@acme.example'` });
    const { key } = await seedDemo(partsAt(NOON));
    expect(await read(users)).toEqual(
      before.map((row) => (row['email'] === 'developer@acme.example' ? { ...row, department: null } : row)),
    );
    const [printed] = await read(
      `select u.email from api_keys k join users u on u.id = k.user_id where k.name = 'demo' and k.last_four = '${key.slice(-4)}'`,
    );
    expect(printed).toEqual({ email: 'developer@acme.example' });
  });

  it('audits each key that it creates, renews and revokes, with the resource and without the secret', async () => {
    await seedDemo(partsAt(NOON));
    await seedDemo(partsAt(NOON));
    const actions = await read(
      `select action, count(*)::int as rows, bool_and(after ->> 'id' = target_id) as complete from audit_log
       where action like 'api_key.%' and tenant_id in ('acme', 'trial') and actor_type = 'system' group by 1 order by 1`,
    );
    expect(actions).toEqual([
      { action: 'api_key.create', rows: 10, complete: true },
      { action: 'api_key.revoke', rows: 1, complete: true },
      { action: 'api_key.rotate', rows: 2, complete: true },
    ]);
  });

  it('brings nothing back that an operator changed, revoked or deleted', async () => {
    await seedDemo(partsAt(NOON));
    await fresh.db.query({ text: `update tenants set settings = '{"rate_limit_rpm": 7}' where id = 'acme'` });
    await fresh.db.query({ text: `delete from policies where name = 'allow-batch'` });
    const [key] = await read(`select id from api_keys where name = 'support-desk'`);
    const id = parseId('key', String(key?.['id']));
    if (id === undefined) throw new Error('the demo has no key of this name');
    await markRevoked(fresh.db.knex, { id, tenant_id: ACME });
    await seedDemo(partsAt(NOON));
    expect((await findTenant(fresh.db.knex, ACME))?.settings).toEqual({ rate_limit_rpm: 7 });
    expect(await read(`select name from policies where name = 'allow-batch'`)).toEqual([]);
    expect(await read(`select revoked from api_keys where name = 'support-desk'`)).toEqual([{ revoked: true }]);
  });

  it('says so in a sentence if its tenant was deleted', async () => {
    await seedDemo(partsAt(NOON));
    await fresh.db.query({ text: `update tenants set deleted_at = now() where id = 'acme'` });
    await expect(seedDemo(partsAt(NOON))).rejects.toMatchObject({
      code: 'already_exists',
      message: expect.stringMatching(
        /^The demo's tenants cannot be created: .*Start the demo with another data-dir\.$/,
      ),
    });
  });

  it('never spends the quota of a month up, and gives the trial tenant the limits that are printed', async () => {
    await seedDemo(partsAt(Date.UTC(2026, 11, 31, 22, 50)));
    const budgets = await read(
      `select b.tenant_id, (b.spent < 0.9 * (t.quotas ->> 'monthly_tokens')::float8) as left from token_budgets b
       join tenants t on t.id = b.tenant_id where b.period = '2026-12' order by 1`,
    );
    expect(budgets).toEqual([
      { tenant_id: 'acme', left: true },
      { tenant_id: 'trial', left: true },
    ]);
    const trial = await findTenant(fresh.db.knex, TRIAL);
    expect([trial?.settings.rate_limit_rpm, trial?.quotas.monthly_tokens]).toEqual([
      TRIAL_LIMITS.requestsPerMinute,
      TRIAL_LIMITS.monthlyTokens,
    ]);
  });

  it('gives each client of the traffic a key of its tenant', async () => {
    const { made } = await seedDemo(partsAt(NOON));
    expect(CLIENTS.map(({ key }) => key).filter((key) => !made.has(key))).toEqual([]);
  });
});
