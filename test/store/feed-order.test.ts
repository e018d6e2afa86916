import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Database } from '../../src/store/database.ts';
import { transaction } from '../../src/store/transaction.ts';
import { freshDatabase } from '../support/database.ts';
import { seedTenant } from './seed.ts';

/** Each transaction changes a few tenants, and sometimes dawdles or changes its mind. */
async function writer(db: Database, transactions: number): Promise<void> {
  for (let i = 0; i < transactions; i++) {
    await transaction(db, async (trx) => {
      // In one order, so that the writers wait for each other but never in a circle.
      for (const n of [0, 1, 2, 3, 4, 5].filter(() => randomInt(3) === 0)) {
        await trx.raw('update tenants set name = ? where id = ?', [`${i}`, `t${n}`]);
        await sleep(randomInt(3));
      }
      if (randomInt(5) === 0) {
        throw new Error('changed my mind');
      }
    }).catch((error: unknown) => {
      if (!(error instanceof Error && error.message === 'changed my mind')) {
        throw error;
      }
    });
  }
}

test('a reader that continues after the last sequence number misses no change, for any overlap of transactions', async () => {
  const fresh = await freshDatabase();
  try {
    for (let i = 0; i < 6; i++) {
      await seedTenant(fresh.db, `t${i}`);
    }
    // Time between taking a number and committing, in which others would overtake if they could.
    await fresh.db.knex.raw(`
      create function dawdle() returns trigger language plpgsql as 'begin perform pg_sleep(random() * 0.01); return null; end';
      create constraint trigger tenants_slow after update on tenants deferrable initially deferred for each row execute function dawdle();`);
    const start = await fresh.db.query({ text: 'select feed_position() as position' });
    const seen: number[] = [];
    const writing = new AbortController();
    const read = async (): Promise<void> => {
      let last = Number(start[0]?.['position']);
      for (;;) {
        const { aborted } = writing.signal;
        const rows = await fresh.db.query({
          text: 'select seq from changes where seq > $1 order by seq',
          values: [last],
        });
        seen.push(...rows.map((row) => Number(row['seq'])));
        last = seen.at(-1) ?? last;
        if (aborted) {
          return;
        }
      }
    };
    const reading = read();
    await Promise.all(Array.from({ length: 6 }, () => writer(fresh.db, 15))).finally(() => writing.abort());
    await reading;
    const all = await fresh.db.query({
      text: 'select seq from changes where seq > $1 order by seq',
      values: [start[0]?.['position']],
    });
    expect(all.length).toBeGreaterThan(50);
    expect(seen).toEqual(all.map((row) => row['seq']));
  } finally {
    await fresh.close();
  }
});

test('the transaction that commits first has the lower sequence number, also if it began last', async () => {
  const fresh = await freshDatabase();
  try {
    await seedTenant(fresh.db, 'slow');
    await seedTenant(fresh.db, 'fast');
    await transaction(fresh.db, async (slow) => {
      await slow.raw(`update tenants set name = 'x' where id = 'slow'`);
      await transaction(fresh.db, async (fast) => {
        await fast.raw(`update tenants set name = 'x' where id = 'fast'`);
      });
    });
    const rows = await fresh.db.query({ text: 'select key from changes order by seq desc limit 2' });
    expect(rows.map((row) => row['key'])).toEqual(['slow', 'fast']);
  } finally {
    await fresh.close();
  }
});
