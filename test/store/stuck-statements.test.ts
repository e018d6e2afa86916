/** Statements that cannot end, because a lock is held or because they take too long. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { Fault } from '../../src/domain/errors.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { tenantTransaction, transaction } from '../../src/store/transaction.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { seedTenant, tenantId } from './seed.ts';

const CALLERS = 50;
const ATTEMPTS_EACH = 3;
const POOL = { poolMax: 10, queryTimeoutMs: 600 };

let fresh: FreshDatabase;
let db: Database;
beforeAll(async () => {
  fresh = await freshDatabase();
  await seedTenant(fresh.db, 'locked');
  await seedTenant(fresh.db, 'other');
  db = openDatabase({ url: fresh.url, ...POOL });
});
afterAll(async () => {
  await db?.close();
  await fresh?.close();
});

const LOCKED = tenantId('locked');
const OTHER = tenantId('other');
const UPDATE = (tenant: string) => `update tenants set name = name || '.' where id = '${tenant}'`;

/** The sessions of the pool under test: all of this database, except those that the test itself has opened. */
async function sessions(): Promise<number> {
  const [row] = await fresh.db.query({
    text: 'select count(*)::int as count from pg_stat_activity where datname = current_database() and pid <> all($1)',
    values: [own],
  });
  return Number(row?.['count']);
}
let own: readonly number[] = [];

test('callers that wait for one lock use at most the connections of the pool, and other work continues', async () => {
  const holder = fresh.db.newClient();
  await holder.connect();
  await holder.query('begin');
  await holder.query(UPDATE('locked'));
  await fresh.db.query({ text: 'select 1' });
  const { rows } = await holder.query('select pid from pg_stat_activity where datname = current_database()');
  own = rows.map(({ pid }) => Number(pid));

  let running = CALLERS;
  const outcomes: unknown[] = [];
  const callers = Array.from({ length: CALLERS }, async () => {
    for (let attempt = 0; attempt < ATTEMPTS_EACH; attempt++) {
      outcomes.push(await transaction(db, async (trx) => trx.raw(UPDATE('locked'))).catch((error: unknown) => error));
    }
    running--;
  });
  let most = 0;
  const innocents: unknown[] = [];
  while (running > 0) {
    most = Math.max(most, await sessions());
    innocents.push(await transaction(db, async (trx) => trx.raw(UPDATE('other'))).then(() => 'done', String));
  }
  await Promise.all(callers);
  expect(outcomes.every((outcome) => outcome instanceof Fault)).toBe(true);
  expect(most).toBeLessThanOrEqual(POOL.poolMax);
  expect(new Set(innocents)).toEqual(new Set(['done']));

  await holder.query('rollback');
  await holder.end();
  await transaction(db, async (trx) => trx.raw(UPDATE('locked')));
});

test('a change of another tenant does not wait behind those that wait for a lock', async () => {
  const holder = fresh.db.newClient();
  await holder.connect();
  await holder.query('begin');
  await holder.query(UPDATE('locked'));
  let ended = 0;
  const callers = Array.from({ length: CALLERS }, () =>
    tenantTransaction(db, LOCKED, async (trx) => trx.raw(UPDATE('locked')))
      .catch(() => undefined)
      .finally(() => ended++),
  );
  await tenantTransaction(db, OTHER, async (trx) => trx.raw(UPDATE('other')));
  expect(ended).toBeLessThan(CALLERS / 2);
  await holder.query('rollback');
  await holder.end();
  await Promise.all(callers);
});

test('a statement that exceeds its time ends at the server, and its connection serves the next one', async () => {
  const pid = async () => (await db.query({ text: 'select pg_backend_pid() as pid' }))[0]?.['pid'];
  const before = await pid();
  await expect(db.query({ text: 'select pg_sleep(60)' })).rejects.toBeInstanceOf(Fault);
  expect(await pid()).toBe(before);
  const sleeping =
    "select from pg_stat_activity where datname = current_database() and query like 'select pg_sleep%' and state = 'active'";
  expect(await fresh.db.query({ text: sleeping })).toEqual([]);
});

test('the pool cancels a statement that PostgreSQL does not limit when it exceeds its time', async () => {
  const unlimited = "set statement_timeout = 0; select 'unlimited', pg_sleep(60)";
  await expect(db.query({ text: unlimited })).rejects.toBeInstanceOf(Fault);
  const running =
    "select from pg_stat_activity where datname = current_database() and query like 'set statement_timeout%unlimited%' and state = 'active'";
  await expect.poll(() => fresh.db.query({ text: running })).toEqual([]);
});
