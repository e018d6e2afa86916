/** Replicas that report how far they have applied the change feed, and writers that wait for them. */

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { appliedEverywhere } from '../../src/server/applied.ts';
import { Prices } from '../../src/server/prices.ts';
import type { Database } from '../../src/store/database.ts';
import { ChangeFeed } from '../../src/store/feed.ts';
import { addPrices } from '../../src/store/price-lists.ts';
import { type AppliedFeed, Replica, ReplicaWaits, removeReplica } from '../../src/store/replicas.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';

const LONG_MS = 60_000;

let fresh: FreshDatabase;
let db: Database;

beforeEach(async () => {
  fresh = await freshDatabase();
  db = fresh.db;
});
afterEach(() => fresh.close());

/** A feed that has applied what its process has been given. */
function feedAt(applied: number, session?: number): AppliedFeed & { applied: number } {
  const none = async () => undefined;
  return { applied, session, catchUp: none, settled: none, onReportRequest: () => undefined };
}

async function replicaOf(server: string, feed: AppliedFeed, maxStalenessMs = LONG_MS): Promise<Replica> {
  const replica = new Replica({ db, feed, id: `${server}/1`, server, maxStalenessMs, heartbeatMs: LONG_MS });
  await replica.start();
  return replica;
}

it('a wait ends as soon as the last replica reports the position', async () => {
  const [ahead, behind] = [feedAt(7), feedAt(3)];
  await replicaOf('a', ahead);
  const late = await replicaOf('b', behind);
  const waiting = new ReplicaWaits(db).wait(7, LONG_MS);
  behind.applied = 8;
  late.report();
  expect(await waiting).toEqual({ kind: 'applied' });
});

it('a replica whose heartbeat is far away reports when a writer waits', async () => {
  const feed = new ChangeFeed({ db, listeners: [], pollIntervalMs: LONG_MS });
  await feed.start();
  const replica = await replicaOf('a', feed);
  await db.query({ text: "insert into tenants (id, name) values ('news', 'News')" });
  await feed.catchUp();
  expect(await new ReplicaWaits(db).wait(feed.position ?? 0, LONG_MS)).toEqual({ kind: 'applied' });
  await replica.stop();
  await feed.stop();
}, 20_000);

it('a replica reports a change of prices after it has read them', async () => {
  const faults: unknown[] = [];
  const prices = new Prices({ db, onFault: (error) => faults.push(error) });
  const feed = new ChangeFeed({ db, listeners: [prices], pollIntervalMs: LONG_MS });
  await feed.start();
  const replica = await replicaOf('a', feed);
  const list = [{ models: 'gpt-*', input: 1, output: 2, cachedInput: undefined, cacheWrite: undefined }];
  const waits = new ReplicaWaits(db);
  const adding = await db.knex.transaction();
  await addPrices(adding, { version: 0, prices: [] }, list);
  // The lock is asked for before the change is committed, so that the prices cannot be read in between.
  const holder = await db.knex.transaction();
  const held = holder.raw('lock table price_lists in access exclusive mode').then();
  const waiting = {
    text: "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  };
  await expect.poll(() => db.query(waiting)).toHaveLength(1);
  await adding.commit();
  await held;
  await feed.catchUp();
  expect(await waits.wait(feed.position ?? 0, 1)).toEqual({ kind: 'partial', replicas: 1 });
  expect([prices.isCurrent, feed.applied === feed.position]).toEqual([false, false]);
  expect(prices.table.of('gpt-5')).toBeUndefined();
  await holder.commit();
  expect(await waits.wait(feed.position ?? 0, LONG_MS)).toEqual({ kind: 'applied' });
  expect(prices.table.of('gpt-5')).toBeDefined();
  expect(faults).toEqual([]);
  prices.close();
  await replica.stop();
  await feed.stop();
}, 20_000);

it('a replica whose connection for notifications is lost while a writer waits reports when it has another one', async () => {
  const feed = new ChangeFeed({ db, listeners: [], pollIntervalMs: LONG_MS });
  await feed.start();
  const replica = await replicaOf('a', feed);
  const listening = `from pg_stat_activity where query like 'listen %' and datname = current_database()`;
  await expect.poll(() => db.query({ text: `select pid ${listening}` })).toHaveLength(1);
  await db.query({ text: "insert into tenants (id, name) values ('news', 'News')" });
  await db.query({ text: `select pg_terminate_backend(pid) ${listening}` });
  const [{ seq } = {}] = await db.query({ text: 'select max(seq)::int as seq from changes' });
  expect(await new ReplicaWaits(db).wait(Number(seq), LONG_MS)).toEqual({ kind: 'applied' });
  await replica.stop();
  await feed.stop();
}, 20_000);

it('a wait that times out returns the number of servers that have not reported, each once', async () => {
  await replicaOf('a', feedAt(7));
  await replicaOf('b', feedAt(3));
  const second = new Replica({ db, feed: feedAt(2), id: 'b/2', server: 'b', maxStalenessMs: LONG_MS });
  await second.start();
  expect(await new ReplicaWaits(db).wait(7, 1)).toEqual({ kind: 'partial', replicas: 1 });
  await second.stop();
});

it('a replica that stopped, that its supervisor removed, or that can no longer trust its cache is not waited for', async () => {
  const stopped = await replicaOf('a', feedAt(1));
  await stopped.stop();
  await replicaOf('b', feedAt(1));
  await removeReplica(db, 'b/1');
  await replicaOf('c', feedAt(1), 0);
  expect(await new ReplicaWaits(db).wait(7, LONG_MS)).toEqual({ kind: 'applied' });
});

it('a replica whose process has died is not waited for 15 s after its last report, and one that is only silent is', async () => {
  const died = db.newClient();
  await died.connect();
  const [session = 0] = (await died.query('select pg_backend_pid() as pid')).rows.map(({ pid }) => Number(pid));
  await replicaOf('a', feedAt(1, session));
  const pending = () => new ReplicaWaits(db).wait(7, 1);
  const silence = (seconds: number) =>
    db.query({
      text: 'update replicas set reported_at = clock_timestamp() - make_interval(secs => $1)',
      values: [seconds],
    });
  await silence(60);
  expect(await pending()).toEqual({ kind: 'partial', replicas: 1 });
  await died.end();
  await expect
    .poll(() => db.query({ text: 'select from pg_stat_activity where pid = $1', values: [session] }))
    .toHaveLength(0);
  await silence(10);
  expect(await pending()).toEqual({ kind: 'partial', replicas: 1 });
  await silence(16);
  expect(await pending()).toEqual({ kind: 'applied' });
});

it('many waits share their statements', async () => {
  await replicaOf('a', feedAt(500));
  let statements = 0;
  const counted: Pick<Database, 'query'> = {
    query: (statement) => {
      statements++;
      return db.query(statement);
    },
  };
  const waits = new ReplicaWaits(counted);
  const outcomes = await Promise.all(Array.from({ length: 500 }, (_, through) => waits.wait(through, LONG_MS)));
  expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['applied']));
  expect(statements).toBeLessThanOrEqual(4);
});

it('a wait returns an unknown number if the database is unreachable, and does not fail the write', async () => {
  const gone: Pick<Database, 'query'> = { query: () => Promise.reject(new Error('gone')) };
  expect(await new ReplicaWaits(gone).wait(1, LONG_MS)).toEqual({ kind: 'partial', replicas: undefined });
});

describe('the wait of a write', () => {
  const addTenant = (id: string) => db.query({ text: 'insert into tenants (id, name) values ($1, $1)', values: [id] });

  it('is not over while another replica is behind the write, also if this process had not read the write itself', async () => {
    const here = new ChangeFeed({ db, listeners: [], notifications: false, pollIntervalMs: LONG_MS });
    await here.start();
    const behind = feedAt(here.position ?? 0);
    const late = await replicaOf('there', behind);
    await addTenant('written-elsewhere');
    let polls = 0;
    const query: Database['query'] = (statement) => {
      if (statement.name === 'least_applied' && ++polls === 2) {
        behind.applied = here.position ?? 0;
        late.report();
      }
      return db.query(statement);
    };
    expect(await appliedEverywhere({ db: { query } }, here)()).toEqual({ kind: 'applied' });
    expect(polls).toBeGreaterThanOrEqual(2);
    await late.stop();
    await here.stop();
  });

  it('is reported as partial if this process could not read the feed', async () => {
    const feed = new ChangeFeed({ db, listeners: [], notifications: false, pollIntervalMs: LONG_MS });
    await feed.start();
    const replica = await replicaOf('a', feed);
    await feed.stop();
    await addTenant('written-blindly');
    expect(await appliedEverywhere({ db }, feed)()).toEqual({ kind: 'partial', replicas: undefined });
    await replica.stop();
  });
});
