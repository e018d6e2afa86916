/**
 * The plans of metering's statements are kept by each connection, so they must be right for a table that was nearly
 * empty when they were made.
 */

import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { postgresMetering } from '../../src/store/metering/metering.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';

const HOLDER = 'h'.repeat(16);
const ROWS = 1000;
/** A connection plans a prepared statement in its first five executions, then keeps a plan. */
const UNTIL_PLANS_ARE_KEPT = 8;
/** Statements may read the whole small table of processes. A scan for each row of a batch would be far more. */
const MOST_SCANS = 50;
const MOST_READS = 20;

let database: FreshDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await freshDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query(
    `insert into tenants (id, name, quotas) select 'tenant-' || n, 'x', '{"monthly_tokens": 2}' from generate_series(0, $1) n`,
    [ROWS],
  );
  await client.query(
    `insert into budgets (id, tenant_id, name, unit, limit_amount, period, applies_to, alerts)
      select 'bud_' || n, 'tenant-' || n, 'b', 'tokens', 3, 'month', '{"tenant": true}', '[0.5, 1]' from generate_series(0, $1) n`,
    [ROWS],
  );
});
afterAll(async () => {
  await client.end();
  await database.close();
});

/** Reads in the transaction that is open, of the table with the most: from end to end, and of rows. */
async function reads(): Promise<{ readonly scans: number; readonly rows: number }> {
  const { rows } = await client.query<{ scans: number; rows: number }>(
    `select max(seq_scan)::integer as scans, max(seq_tup_read + coalesce(idx_tup_fetch, 0))::integer as rows from pg_stat_xact_user_tables`,
  );
  return rows[0] ?? expect.fail();
}

const store = () =>
  postgresMetering({
    query: async (statement) => {
      const { rows } = await client.query({ ...statement, values: [...(statement.values ?? [])] });
      return rows;
    },
  });

const numbered = <T>(from: number, count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(from + i));

let sequence = 0;

test.for<[string, (from: number, count: number) => Promise<unknown>]>([
  [
    'a lease of rates',
    (from, count) =>
      store().lease(
        HOLDER,
        numbered(from, count, (n) => ({ subject: `key:${n}`, window: 1, limit: 6000, requested: 64, report: 0 })),
      ),
  ],
  [
    'a hold of tokens',
    (from, count) =>
      store().hold({
        processId: HOLDER,
        sequence: ++sequence,
        requests: numbered(from, count, (n) => ({
          ...{ tenant: `tenant-${n}`, period: '2026-11', quota: 1e6, requested: 1000, changes: 0, confirmed: 0 },
        })),
        acked: [],
      }),
  ],
  [
    'a settlement',
    (from, count) =>
      store().settle(
        HOLDER,
        numbered(from, count, (n) => ({
          ...{
            processId: HOLDER,
            counter: 1024 * n,
            held: true,
            tenant: `tenant-${n}`,
            period: '2026-11',
            day: '2026-11-21',
          },
          ...{
            model: 'm',
            key: `key-${n}`,
            user: '',
            prompt: 1,
            completion: 1,
            cached: 0,
            total: 2,
            cost: 5,
            priceVersion: 1,
            price: undefined,
            cacheWrite: 0,
            charges: [
              { unit: 'tokens', period: `bud_${n} 2026-11#0` },
              { unit: 'money', period: `bud_${n}/key-${n} total#0` },
            ],
            estimated: false,
          },
          ...{
            books: true,
            collections: n % 2 === 0 ? (1 as const) : (-1 as const),
            collection: n % 2 === 0 ? undefined : n,
          },
          response: n % 3 === 0 ? `resp_${n}` : undefined,
        })),
      ),
  ],
  [
    'a renewal of reservations',
    (from, count) =>
      store().changeReservations(
        numbered(from, count, (n) => ({ kind: 'renew-collection', processId: HOLDER, counter: n })),
        30_000,
      ),
  ],
])(
  '%s reads no table once for each of its rows, though it was planned when the tables were nearly empty',
  async ([, run]) => {
    await store().lease(HOLDER, []);
    await run(0, 1);
    await client.query('vacuum analyze');
    for (let i = 0; i < UNTIL_PLANS_ARE_KEPT; i++) await run(0, 1);
    await client.query('begin');
    await run(1, ROWS);
    const { scans, rows } = await reads();
    await client.query('commit');
    expect(scans).toBeLessThan(MOST_SCANS);
    // Each row of the batch may read its own few.
    expect(rows).toBeLessThan(MOST_READS * ROWS);
  },
);

test('upkeep reads the rows that it removes, not the counters and holds that stay', async () => {
  const staying = 5000;
  const removed = 50;
  await client.query(
    `insert into token_budgets (tenant_id, period, spent, held)
      select 'tenant-1', 'bud_many/key_' || n || case when n <= $2 then ' 2020-11-26T14#0' else ' 2099-11#0' end, 1, 0 from generate_series(1, $1) n
      union all select 'tenant-1', 'bud_ended/key_' || n || ' total#3', 1, 0 from generate_series(1, $2) n
      union all select 'tenant-1', 'bud_held/key_' || n || ' 2099-11#0', 1, 1 from generate_series(1, $1) n`,
    [staying, removed],
  );
  await client.query(
    `insert into token_holds (tenant_id, period, holder, held, changes)
      select 'tenant-1', 'bud_held/key_' || n || ' 2099-11#0', case when n <= $2 then 'lost' else $3 end, 1, 0 from generate_series(1, $1) n`,
    [staying, removed, HOLDER],
  );
  await client.query(`insert into metering_holders (id, seen_at) values ('lost', now() - interval '1 hour')`);
  await client.query(
    `insert into ended_budgets (budget_id, epoch, ended_at) values ('bud_ended', 3, now() - interval '9 days')`,
  );
  await store().lease(HOLDER, []);
  await client.query('vacuum analyze');
  await client.query('begin');
  const { removed: rows, holds } = await store().tidy({
    ...{ windowMs: 60_000, holdTtlMs: 600_000, settlementKeepMs: 86_400_000, batch: 5000 },
  });
  const { rows: read } = await client.query<{ read: number }>(
    `select sum(seq_tup_read + idx_tup_fetch)::integer as read from pg_stat_xact_user_tables where relname in ('token_budgets', 'token_holds')`,
  );
  await client.query('commit');
  expect({ holds, rows }).toEqual({ holds: removed, rows: 3 * removed });
  expect(read[0]?.read).toBeLessThan(20 * removed);
});
