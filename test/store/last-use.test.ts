import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type KeyId, makeId } from '../../src/domain/ids.ts';
import { KeyUses, type KeyUsesOptions } from '../../src/store/last-use.ts';
import type { Statement } from '../../src/store/pool.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { digestOf, seedKey, seedTenant } from './seed.ts';

/** An instant long past the start of every key. */
const NOON = Date.UTC(2026, 5, 1, 12);
const SECOND = 1000;
const MINUTE = 60 * SECOND;

let fresh: FreshDatabase;
let keys = 0;
const started: KeyUses[] = [];

beforeAll(async () => {
  fresh = await freshDatabase();
  await seedTenant(fresh.db, 'acme');
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((uses) => uses.stop()));
});
afterAll(() => fresh.close());

/** One replica's notes; nothing is written unless the test says so. */
function replica(options: Partial<KeyUsesOptions> = {}): KeyUses {
  const uses = new KeyUses({ db: fresh.db, flushIntervalMs: 3_600_000, ...options });
  started.push(uses);
  return uses;
}

function makeKey(): Promise<KeyId> {
  keys++;
  return seedKey(fresh.db, 'acme', digestOf(`key ${keys}`));
}

async function stored(key: KeyId): Promise<{ readonly usedAt: number | undefined; readonly version: unknown }> {
  const [row] = await fresh.db.query({
    text: `select floor(extract(epoch from last_used_at) * 1000)::float8 as used_at, ctid::text as version from api_keys where id = $1`,
    values: [key],
  });
  const usedAt = row?.['used_at'];
  return { usedAt: typeof usedAt === 'number' ? usedAt : undefined, version: row?.['version'] };
}

/** The real database, with a door that can be shut. */
function door() {
  const state = { shut: false, asked: 0 };
  const query = (statement: Statement) => {
    state.asked++;
    return state.shut ? Promise.reject(new Error('shut')) : fresh.db.query(statement);
  };
  return { state, db: { query } };
}

test('an unused key has no last use, and a used key has the time of its use', async () => {
  const [used, unused] = [await makeKey(), await makeKey()];
  const uses = replica();
  uses.note(used, NOON + 123);
  await uses.flush();
  expect((await stored(used)).usedAt).toBe(NOON + 123);
  expect((await stored(unused)).usedAt).toBeUndefined();
});

test('a key in constant use at several replicas is written at most once a minute, and is never a minute late', async () => {
  const key = await makeKey();
  const replicas = [replica(), replica(), replica()];
  const versions = new Set<unknown>();
  const seconds = 600;
  for (let second = 0; second < seconds; second++) {
    const now = NOON + second * SECOND;
    for (const uses of replicas) uses.note(key, now);
    if (second % 7 === 0) {
      for (const uses of replicas) {
        await uses.flush();
        const { usedAt = 0, version } = await stored(key);
        versions.add(version);
        expect(usedAt).toBeLessThanOrEqual(now);
        expect(usedAt).toBeGreaterThan(now - MINUTE - 7 * SECOND);
      }
    }
  }
  expect(versions.size).toBeLessThanOrEqual(seconds / 60);
});

test('a replica that writes an earlier use late does not replace the later one', async () => {
  const key = await makeKey();
  const [late, early] = [replica(), replica()];
  late.note(key, NOON);
  early.note(key, NOON + 10 * MINUTE);
  await early.flush();
  await late.flush();
  expect((await stored(key)).usedAt).toBe(NOON + 10 * MINUTE);
});

test('replicas that write the same keys at once do not block each other, and the latest use is stored', async () => {
  const ids = await Promise.all(Array.from({ length: 50 }, makeKey));
  const replicas = [replica({ batchSize: 17 }), replica({ batchSize: 23 }), replica({ batchSize: 50 })];
  for (const [i, uses] of replicas.entries()) {
    for (const key of i === 1 ? ids.toReversed() : ids) uses.note(key, NOON + i * 5 * MINUTE);
  }
  // A replica that found a key locked writes it in the next round. In each round, one of the replicas completes each
  // key.
  for (const _ of replicas) await Promise.all(replicas.map((uses) => uses.flush()));
  expect(replicas.map((uses) => uses.waiting)).toEqual(replicas.map(() => 0));
  for (const key of ids) expect((await stored(key)).usedAt).toBe(NOON + 10 * MINUTE);
});

test('a last use adds nothing to the change feed and is no change of the key', async () => {
  const key = await makeKey();
  const look = () =>
    fresh.db.query({
      text: 'select feed_position() as position, updated_at from api_keys where id = $1',
      values: [key],
    });
  const before = await look();
  const uses = replica();
  uses.note(key, NOON);
  await uses.flush();
  expect((await stored(key)).usedAt).toBe(NOON);
  expect(await look()).toEqual(before);
});

test('recording a use sends nothing to the database', async () => {
  const { db, state } = door();
  const uses = replica({ db });
  const key = await makeKey();
  for (let i = 0; i < 1000; i++) uses.note(key, NOON + i);
  expect(state.asked).toBe(0);
  await uses.flush();
  expect(state.asked).toBe(1);
  await uses.flush();
  expect(state.asked).toBe(1);
});

test('uses that could not be written are written when the database is back, and the failure is reported once', async () => {
  const { db, state } = door();
  const errors: Error[] = [];
  const uses = replica({ db, onError: (error) => errors.push(error) });
  const key = await makeKey();
  state.shut = true;
  uses.note(key, NOON);
  await uses.flush();
  uses.note(key, NOON + 2 * MINUTE);
  await uses.flush();
  expect(errors).toHaveLength(1);
  expect((await stored(key)).usedAt).toBeUndefined();
  state.shut = false;
  await uses.flush();
  expect((await stored(key)).usedAt).toBe(NOON + 2 * MINUTE);
});

test('memory is bounded while the database is unreachable: further uses are dropped and counted', async () => {
  const { db, state } = door();
  const uses = replica({ db, maxKeys: 3 });
  state.shut = true;
  const ids = await Promise.all(Array.from({ length: 5 }, makeKey));
  for (const key of ids) uses.note(key, NOON);
  await uses.flush();
  for (const key of ids) uses.note(key, NOON + 5 * MINUTE);
  expect([uses.waiting, uses.dropped]).toEqual([3, 4]);
  state.shut = false;
  await uses.flush();
  expect(await Promise.all(ids.map(async (key) => (await stored(key)).usedAt))).toEqual([
    ...Array.from({ length: 3 }, () => NOON + 5 * MINUTE),
    undefined,
    undefined,
  ]);
  // With room again they are noted.
  for (const key of ids) uses.note(key, NOON + 10 * MINUTE);
  await uses.flush();
});

test('the writer does not wait for a locked key, and writes it afterwards', async () => {
  const [held, free] = [await makeKey(), await makeKey()];
  const uses = replica();
  await fresh.db.knex.transaction(async (trx) => {
    await trx.raw('select from api_keys where id = ? for update', [held]);
    uses.note(held, NOON);
    uses.note(free, NOON);
    await uses.flush();
    expect((await stored(free)).usedAt).toBe(NOON);
  });
  expect((await stored(held)).usedAt).toBeUndefined();
  await uses.flush();
  expect((await stored(held)).usedAt).toBe(NOON);
});

test('a use of a deleted key is dropped', async () => {
  const uses = replica();
  uses.note(makeId('key', NOON, new Uint8Array(10)), NOON);
  await uses.flush();
  expect(uses.waiting).toBe(0);
});

test('stop writes the recorded uses', async () => {
  const key = await makeKey();
  const uses = replica();
  uses.note(key, NOON);
  await uses.stop();
  expect((await stored(key)).usedAt).toBe(NOON);
});
