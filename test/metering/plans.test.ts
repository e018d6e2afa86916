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

let database: FreshDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await freshDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await database.close();
});

/** Reads in the transaction that is open, by table, from end to end. */
async function scans(): Promise<Map<string, number>> {
  const { rows } = await client.query<{ relname: string; seq_scan: string }>(
    `select relname, seq_scan from pg_stat_xact_user_tables where seq_scan > 0`,
  );
  return new Map(rows.map(({ relname, seq_scan }) => [relname, Number(seq_scan)]));
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
            cost: 0,
            priceVersion: 0,
            price: undefined,
            cacheWrite: 0,
            charges: [],
            estimated: false,
          },
          ...{
            books: true,
            collections: n % 2 === 0 ? (1 as const) : (-1 as const),
            collection: n % 2 === 0 ? undefined : n,
          },
          response: undefined,
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
    const most = Math.max(0, ...(await scans()).values());
    await client.query('commit');
    expect(most).toBeLessThan(MOST_SCANS);
  },
);
