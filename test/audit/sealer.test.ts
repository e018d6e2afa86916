/** The sealer beside rows that commit out of order, other sealers, killed processes, and slow transactions. */

import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { insertAudit } from '../../src/store/audit-rows.ts';
import { outcome, startHarness, text } from '../http/harness.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { runs } from '../support/properties.ts';
import { entry, ids, sealerOf, verdict, verify, write } from './support.ts';

let fresh: FreshDatabase;
beforeEach(async () => {
  fresh = await freshDatabase();
});
afterEach(() => fresh?.close());

/** Resolves when `wanted` connections of this database wait for a lock. */
async function waitingForLocks(wanted: number): Promise<readonly number[]> {
  for (;;) {
    const rows = await fresh.db.query({
      text: `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    });
    if (rows.length >= wanted) return rows.map((row) => Number(row['pid']));
    await sleep(5);
  }
}

/** Keeps a sealer from finishing what it has begun, until the function that it gives is called. */
async function holdHead(db = fresh.db): Promise<() => Promise<void>> {
  const trx = await db.knex.transaction();
  await trx.raw('select from audit_chain for update');
  return async () => {
    await trx.rollback();
  };
}

test('seals in batches of bounded size, all that was written and nothing twice', async () => {
  const { db } = fresh;
  await db.query({
    text: `with written as (
      insert into audit_log (actor_type, action, result) select 'system', 'made.up', 'success' from generate_series(1, 1050) returning id
    ) insert into audit_unsealed select id from written`,
  });
  const sealer = sealerOf(db);
  expect(await sealer.seal()).toBe(1050);
  expect(await sealer.seal()).toBe(0);
  expect(await verify(db)).toMatchObject({ broken: undefined, rows: 1050, seals: 3, unsealed: 0 });
  await sealer.stop();
});

test('what is written while it seals waits for its next turn', async () => {
  const { db } = fresh;
  const sealer = sealerOf(db);
  await write(db, {});
  let sealing = true;
  const writers = Array.from({ length: 4 }, async () => {
    while (sealing) await write(db, {});
  });
  for (let turn = 1; turn <= 5; turn++) {
    await sealer.seal();
    expect((await verify(db)).seals).toBeLessThanOrEqual(turn);
  }
  sealing = false;
  await Promise.all(writers);
  await sealer.stop();
});

test('a few huge rows are sealed in small batches', async () => {
  const { db } = fresh;
  const after = { text: 'x'.repeat(400_000) };
  await write(db, { after }, { after }, { after }, {});
  const sealer = sealerOf(db);
  expect(await sealer.seal()).toBe(4);
  expect(await verify(db)).toMatchObject({ broken: undefined, rows: 4 });
  expect((await verify(db)).seals).toBeGreaterThan(1);
  await sealer.stop();
});

test('rows that commit in any order, late or never, are each sealed once', async () => {
  const { db } = fresh;
  const sealer = sealerOf(db);
  const ends = fc.shuffledSubarray([0, 1, 2, 3, 4], { minLength: 5 });
  const committed = fc.array(fc.boolean(), { minLength: 5, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(ends, committed, async (order, commits) => {
      const before = await verify(db);
      const open = [];
      for (let i = 0; i < 5; i++) {
        const trx = await db.knex.transaction();
        await insertAudit(trx, entry());
        open.push(trx);
      }
      let sealed = 0;
      for (const index of order) {
        await (commits[index] ? open[index]?.commit() : open[index]?.rollback());
        sealed += await sealer.seal();
      }
      expect(sealed).toBe(commits.filter(Boolean).length);
      expect(await verify(db)).toMatchObject({ broken: undefined, rows: before.rows + sealed, unsealed: 0 });
    }),
    { numRuns: runs(8) },
  );
  await sealer.stop();
});

test('several sealers and many writers at once make one chain', async () => {
  const { db } = fresh;
  const sealers = [sealerOf(db), sealerOf(db), sealerOf(db)];
  let writing = true;
  const turns = sealers.map(async (sealer) => {
    let sealed = 0;
    while (writing) sealed += await sealer.seal();
    return sealed;
  });
  await Promise.all(Array.from({ length: 6 }, () => write(db, ...Array.from({ length: 30 }, () => ({})))));
  writing = false;
  const sealed = (await Promise.all(turns)).reduce((sum, rows) => sum + rows, 0);
  const rest = await sealers[0]?.seal();
  expect(sealed + (rest ?? 0)).toBe(180);
  expect(await verify(db)).toMatchObject({ broken: undefined, rows: 180, unsealed: 0 });
  for (const sealer of sealers) await sealer.stop();
});

describe('a sealer that cannot go on', () => {
  test('keeps no other from trying, and when it dies the next one takes over', async () => {
    const { db } = fresh;
    const [first, second] = [sealerOf(db), sealerOf(db)];
    await write(db, {});
    await first.seal();
    const release = await holdHead();
    await write(db, {}, {});
    // Listened to from the start: it may fail before the statement that ends its connection has answered.
    const stuck = expect(first.seal()).rejects.toThrow(/cannot be used/);
    const [pid] = await waitingForLocks(1);
    expect(await second.seal()).toBe(0);
    // Until it is gone: it says that it ends before it lets go of its turn.
    await db.query({ text: 'select pg_terminate_backend($1, 1500)', values: [pid] });
    await stuck;
    await release();
    expect(await second.seal()).toBe(2);
    expect(await first.seal()).toBe(0);
    expect(await verify(db)).toMatchObject({ broken: undefined, rows: 3, unsealed: 0 });
    await first.stop();
    await second.stop();
  });

  test('is reported, tries again by itself, and seals the waiting rows when it is stopped', async () => {
    const { db } = fresh;
    await write(db, {});
    await db.query({ text: 'alter table audit_seals rename to audit_seals_away' });
    const told = Promise.withResolvers<Error>();
    const sealer = sealerOf(db, { intervalMs: 5, events: { onError: told.resolve } });
    sealer.start();
    expect((await told.promise).message).toMatch(/audit_seals/);
    await db.query({ text: 'alter table audit_seals_away rename to audit_seals' });
    while ((await verify(db)).unsealed > 0) await sleep(5);
    await write(db, {});
    await sealer.stop();
    expect(await verify(db)).toMatchObject({ broken: undefined, rows: 2, unsealed: 0 });
  });
});

test('a sealer that stops while the database does not answer does not wait for it', async () => {
  const { db } = fresh;
  await write(db, {});
  const sealer = sealerOf(db);
  await sealer.seal();
  const release = await holdHead();
  await write(db, {});
  const stopping = sealer.stop();
  await waitingForLocks(1);
  await stopping;
  await release();
  const next = sealerOf(db);
  while ((await verify(db)).unsealed > 0) await next.seal();
  expect(await verify(db)).toMatchObject({ broken: undefined, rows: 2 });
  await next.stop();
});

test('the sealer reports the newest seal at intervals and at its end', async () => {
  const { db } = fresh;
  const anchors: string[] = [];
  const sealer = sealerOf(db, { events: { onAnchor: (anchor) => anchors.push(anchor) } });
  await write(db, {});
  await sealer.seal();
  await sealer.stop();
  const { newest } = await verify(db);
  expect(anchors).toEqual([`${newest?.seq}:${newest?.hash}`]);
});

test('rows that were there before there was a chain are sealed too, and said to be late', async () => {
  const { db } = fresh;
  await write(db, {}, {});
  await db.query({ text: `update audit_log set time = time - interval '2 hours' where id = 2` });
  const sealer = sealerOf(db);
  await sealer.seal();
  expect(await verify(db)).toMatchObject({ broken: undefined, rows: 2, late: { rows: 1, first: 2 } });
  await sealer.stop();
});

test('a revocation waits neither for the sealer nor for a flood of failed logins', async () => {
  const h = await startHarness();
  const { db } = h;
  const key = await h.api('POST', '/v1/iam/api-keys', {
    as: h.root.token,
    body: { description: 'k', scopes: ['audit:read'], expires_in_days: 1 },
  });
  const sealer = sealerOf(db);
  await sealer.seal();
  const release = await holdHead(db);
  // Failed logins that have written their rows and not committed them, and more that have.
  const open = [];
  for (let i = 0; i < 5; i++) {
    const trx = await db.knex.transaction();
    await insertAudit(trx, entry({ action: 'auth.login', result: 'failure' }));
    open.push(trx);
  }
  await write(db, ...Array.from({ length: 300 }, () => ({ action: 'auth.login', result: 'failure' }) as const));
  const sealing = sealer.seal();
  for (let stuck = false; !stuck; ) {
    const rows = await db.query({
      text: `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    });
    stuck = rows.length > 0;
  }
  expect(outcome(await h.api('GET', '/v1/iam/audit', { as: text(key.json, 'key') }))).toBe('200');
  expect(outcome(await h.api('DELETE', `/v1/iam/api-keys/${text(key.json, 'id')}`, { as: h.root.token }))).toBe('204');
  expect(outcome(await h.api('GET', '/v1/iam/audit', { as: text(key.json, 'key') }))).toBe('401 invalid_credential');
  for (const trx of open) await trx.commit();
  await release();
  await sealing;
  await sealer.seal();
  expect(await verdict(db)).toBe('whole');
  expect((await ids(db)).length).toBe((await verify(db)).rows);
  await sealer.stop();
  await h.close();
});
