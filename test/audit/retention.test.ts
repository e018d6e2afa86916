/** Rows that are older than they have to be kept go, and the chain says so itself. */

import { afterEach, beforeEach, expect, test } from 'vitest';
import { headMac, hex, sealHash } from '../../src/store/audit-chain.ts';
import { insertSeal, putChainHead, sealsAfter } from '../../src/store/audit-seal-queries.ts';
import type { Database } from '../../src/store/database.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { ids, mac, sealerOf, verdict, verify, write } from './support.ts';

const DAY_MS = 86_400_000;

let fresh: FreshDatabase;
let db: Database;
beforeEach(async () => {
  fresh = await freshDatabase();
  db = fresh.db;
});
afterEach(() => fresh?.close());

/** Seals the whole chain again, as if its rows had been sealed some days ago. */
async function age(days: number): Promise<void> {
  const seals = await sealsAfter(db.knex, 0, 1000);
  await db.query({ text: 'delete from audit_seals' });
  let previousHash = seals[0]?.previousHash ?? new Uint8Array(32);
  for (const { hash: _hash, ...seal } of seals) {
    const [seconds = '', fraction = ''] = seal.sealedAt.split('.');
    const older = { ...seal, previousHash, sealedAt: `${Number(seconds) - (days * DAY_MS) / 1000}.${fraction}` };
    const hash = sealHash(mac, older);
    await insertSeal(db.knex, { ...older, hash });
    await putChainHead(db.knex, { seq: seal.seq, hash, mac: headMac(mac, seal.seq, hash) });
    previousHash = hash;
  }
}

async function sealed(...rows: Parameters<typeof write>[1][]): Promise<void> {
  const sealer = sealerOf(db);
  for (const row of rows) {
    await write(db, row);
    await sealer.seal();
  }
  await sealer.stop();
}

test('for ever is the default', async () => {
  await sealed({}, {});
  await age(4000);
  const sealer = sealerOf(db);
  expect(await sealer.removeExpired()).toBe(0);
  await sealer.stop();
  expect(await ids(db)).toEqual([1, 2]);
});

test('retention removes older rows only, the chain stays valid and counts the removed rows, and a row of the log reports the removal', async () => {
  await sealed({}, {}, {});
  await age(40);
  await sealed({ action: 'young.one' }, {});
  const removed: number[] = [];
  const sealer = sealerOf(db, { keepMs: 30 * DAY_MS, events: { onRemoved: (rows) => removed.push(rows) } });
  expect(await sealer.removeExpired()).toBe(3);
  expect(await sealer.removeExpired()).toBe(0);
  expect(removed).toEqual([3]);
  expect(await verify(db)).toMatchObject({ broken: undefined, rows: 2, removed: 3, unsealed: 1 });
  const rows = await db.query({
    text: `select actor_type, tenant_id, after from audit_log where action = 'audit.remove'`,
  });
  expect(rows).toEqual([
    { actor_type: 'system', tenant_id: null, after: { rows: 3, through_seal: 3, kept_seconds: 2_592_000 } },
  ]);
  await sealer.seal();
  await sealed({});
  expect(await verify(db)).toMatchObject({ broken: undefined, rows: 4, removed: 3, unsealed: 0 });
  await sealer.stop();
});

test('again and again: a removal may remove the trace of the one before', async () => {
  for (let round = 0; round < 4; round++) {
    await sealed({}, {});
    await age(20);
    const sealer = sealerOf(db, { keepMs: 30 * DAY_MS });
    await sealer.removeExpired();
    await sealer.seal();
    await sealer.stop();
    expect(await verdict(db)).toBe('whole');
  }
  expect((await ids(db)).length).toBeLessThan(8);
});

test('nothing is left of an old log but the trace, and that is enough', async () => {
  await sealed({}, {}, {});
  await age(40);
  const sealer = sealerOf(db, { keepMs: 30 * DAY_MS });
  expect(await sealer.removeExpired()).toBe(3);
  await sealer.stop();
  expect(await verify(db)).toMatchObject({ broken: undefined, rows: 1, removed: 3, seals: 2 });
});

test('removes in bounded steps', async () => {
  for (let i = 0; i < 6; i++) {
    await db.query({
      text: `with written as (
        insert into audit_log (actor_type, action, result) select 'system', 'made.up', 'success' from generate_series(1, 1200) returning id
      ) insert into audit_unsealed select id from written`,
    });
  }
  const sealer = sealerOf(db, { keepMs: 30 * DAY_MS });
  expect(await sealer.seal()).toBe(7200);
  await age(40);
  expect(await sealer.removeExpired()).toBe(7200);
  const removals = await db.query({
    text: `select after -> 'rows' as rows from audit_log where action = 'audit.remove' order by id`,
  });
  expect(removals.map((row) => row['rows'])).toEqual([2000, 2000, 2000, 1200]);
  expect(await verify(db)).toMatchObject({ broken: undefined, removed: 7200 });
  await sealer.stop();
});

test('more than what it says cannot go unseen', async () => {
  await sealed({}, {}, {});
  await age(40);
  await sealed({}, {});
  const sealer = sealerOf(db, { keepMs: 30 * DAY_MS });
  await sealer.removeExpired();
  await sealer.seal();
  await sealer.stop();
  expect(await verdict(db)).toBe('whole');
  await db.query({ text: 'delete from audit_log where id = 4' });
  await db.query({ text: 'delete from audit_seals where seq = 4' });
  expect(await verdict(db)).toBe('5: before seal 5, which names it, seal 4 is missing');
});

test('a seal noted before is still met when it was the last one removed', async () => {
  await sealed({});
  await age(40);
  const [seal] = await sealsAfter(db.knex, 0, 1);
  await sealed({});
  const sealer = sealerOf(db, { keepMs: 30 * DAY_MS });
  await sealer.removeExpired();
  await sealer.stop();
  const anchor = { seq: 1, hash: hex(seal?.hash ?? new Uint8Array()) };
  expect((await verify(db, anchor)).broken).toBeUndefined();
});
