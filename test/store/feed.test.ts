import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Change, ChangeListener } from '../../src/credential-cache/ports.ts';
import { Fault } from '../../src/domain/errors.ts';
import { openDatabase } from '../../src/store/database.ts';
import { ChangeFeed, type FeedOptions, type FlushReason } from '../../src/store/feed.ts';
import { listenForChanges } from '../../src/store/feed-notifications.ts';
import { readPage } from '../../src/store/feed-read.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { seedTenant } from './seed.ts';

/** An hour: longer than any test waits. */
const NEVER_MS = 3_600_000;

class Recorder implements ChangeListener {
  readonly batches: Change[][] = [];
  readonly flushes: number[] = [];
  readonly reasons: FlushReason[] = [];
  readonly errors: Fault[] = [];
  readonly lagsMs: number[] = [];

  apply(batch: readonly Change[]): void {
    this.batches.push([...batch]);
  }

  flush(position: number): void {
    this.flushes.push(position);
  }

  get keys(): string[] {
    return this.batches.flat().map((change) => `${change.kind} ${change.key}`);
  }
}

let fresh: FreshDatabase;
let seen: Recorder;
let feeds: ChangeFeed[];

beforeAll(async () => {
  fresh = await freshDatabase();
});
afterAll(() => fresh.close());
beforeEach(async () => {
  await fresh.db.knex('tenants').delete();
  seen = new Recorder();
  feeds = [];
});
afterEach(async () => {
  await Promise.all(feeds.map((feed) => feed.stop()));
});

function makeFeed(options: Partial<FeedOptions> = {}): ChangeFeed {
  const feed = new ChangeFeed({
    db: fresh.db,
    listeners: [seen],
    notifications: false,
    pollIntervalMs: NEVER_MS,
    events: {
      onFlush: (reason) => seen.reasons.push(reason),
      onError: (error) => seen.errors.push(error),
      onPoll: (lagMs) => seen.lagsMs.push(lagMs),
    },
    ...options,
  });
  feeds.push(feed);
  return feed;
}

async function startFeed(options: Partial<FeedOptions> = {}): Promise<ChangeFeed> {
  const feed = makeFeed(options);
  await feed.start();
  return feed;
}

/** Resolves when a feed with notifications has its connection for them. */
async function listening(): Promise<void> {
  const text =
    "select 1 from pg_stat_activity where datname = current_database() and query like 'listen postern_changes;%'";
  await expect.poll(() => fresh.db.query({ text })).toHaveLength(1);
}

describe('committed changes reach the caches', () => {
  test('in commit order, in batches, each once, without changes from before the start', async () => {
    await seedTenant(fresh.db, 'before');
    const feed = await startFeed({ batchSize: 2 });
    for (const id of ['a', 'b', 'c', 'd', 'e']) {
      await seedTenant(fresh.db, id);
    }
    await feed.catchUp();
    await feed.catchUp();
    expect(seen.keys).toEqual(['tenant a', 'tenant b', 'tenant c', 'tenant d', 'tenant e']);
    expect(seen.batches.map((batch) => batch.length)).toEqual([2, 2, 1]);
    expect(seen.flushes).toEqual([]);
    expect(seen.lagsMs.every((lag) => lag >= 0)).toBe(true);
  });

  test('at once after a notification', async () => {
    await startFeed({ notifications: true });
    await listening();
    await seedTenant(fresh.db, 'a');
    await expect.poll(() => seen.keys).toEqual(['tenant a']);
  });

  test('without another read for a notification of a change that was already read', async () => {
    await seedTenant(fresh.db, 'before');
    await startFeed({ notifications: true });
    await listening();
    await expect.poll(() => seen.lagsMs.length).toBe(1);
    for (let i = 0; i < 10; i++) await fresh.db.query({ text: "select pg_notify('postern_changes', '1')" });
    await seedTenant(fresh.db, 'a');
    await expect.poll(() => seen.keys).toEqual(['tenant a']);
    expect(seen.lagsMs).toHaveLength(2);
  });

  test('with one read only for a notification of a change that is not visible', async () => {
    await startFeed({ notifications: true });
    await listening();
    await expect.poll(() => seen.lagsMs.length).toBe(1);
    await fresh.db.query({ text: "select pg_notify('postern_changes', '9007199254740000')" });
    await expect.poll(() => seen.lagsMs.length).toBe(2);
    await seedTenant(fresh.db, 'a');
    await expect.poll(() => seen.keys).toEqual(['tenant a']);
    expect(seen.lagsMs).toHaveLength(3);
  });

  test('by polling if notifications do not arrive', async () => {
    await startFeed({ pollIntervalMs: 20 });
    await seedTenant(fresh.db, 'a');
    await expect.poll(() => seen.keys).toEqual(['tenant a']);
  });

  test('after all connections were lost, including those for notifications', async () => {
    await startFeed({ notifications: true });
    await listening();
    await fresh.db.query({
      text: 'select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    });
    await expect.poll(() => seen.errors.length).toBeGreaterThan(0);
    await listening();
    await seedTenant(fresh.db, 'a');
    await expect.poll(() => seen.keys).toEqual(['tenant a']);
  });
});

describe('catchUp', () => {
  test('concurrent calls share a read that began after them', async () => {
    const feed = await startFeed();
    const waiting = [feed.catchUp(), feed.catchUp()];
    await seedTenant(fresh.db, 'a');
    waiting.push(...Array.from({ length: 20 }, () => feed.catchUp()));
    await Promise.all(waiting);
    expect(seen.keys).toEqual(['tenant a']);
    // One for the first two; one, or two if the first was still under way, for the rest.
    expect(seen.lagsMs.length).toBeLessThanOrEqual(3);
  });

  test('waits for a new read while one is running, because that one may have begun before the change', async () => {
    const feed = await startFeed();
    for (let i = 0; i < 20; i++) {
      const earlier = feed.catchUp();
      await seedTenant(fresh.db, `t${i}`);
      await feed.catchUp();
      expect(seen.keys).toContain(`tenant t${i}`);
      await earlier;
    }
  });

  test('rejects with a fault while the feed is unreadable, and works afterwards', async () => {
    const feed = await startFeed();
    const before = feed.polledAtMs;
    await fresh.db.knex.raw('alter table feed_state rename to gone');
    await expect(feed.catchUp()).rejects.toBeInstanceOf(Fault);
    expect(feed.polledAtMs).toBe(before);
    await fresh.db.knex.raw('alter table gone rename to feed_state');
    await feed.catchUp();
    expect(feed.polledAtMs).toBeGreaterThan(before);
  });

  test('rejects within its time limit if the database does not answer', async () => {
    const feed = await startFeed({ catchUpTimeoutMs: 100 });
    await fresh.db.knex.transaction(async (trx) => {
      await trx.raw('lock table changes in access exclusive mode');
      await expect(feed.catchUp()).rejects.toThrow('the change feed was not read within 100 ms');
    });
    await expect.poll(() => feed.catchUp().then(() => 'read')).toBe('read');
  });

  test('rejects before the start and after the end', async () => {
    const feed = makeFeed();
    await expect(feed.catchUp()).rejects.toBeInstanceOf(Fault);
    expect(feed.polledAtMs).toBe(Number.NEGATIVE_INFINITY);
    await feed.start();
    await feed.stop();
    await expect(feed.catchUp()).rejects.toBeInstanceOf(Fault);
  });
});

describe('the feed flushes all caches', () => {
  test('when the epoch changes', async () => {
    const feed = await startFeed();
    await seedTenant(fresh.db, 'a');
    await fresh.db.knex.raw('update feed_state set epoch = gen_random_uuid()');
    await feed.catchUp();
    expect(seen.reasons).toEqual(['epoch']);
    expect(seen.flushes).toEqual([feed.position]);
    await seedTenant(fresh.db, 'b');
    await feed.catchUp();
    expect(seen.keys).toEqual(['tenant b']);
  });

  test('when the server is behind the position, like a lagging standby', async () => {
    const feed = await startFeed();
    await seedTenant(fresh.db, 'a');
    await seedTenant(fresh.db, 'b');
    await feed.catchUp();
    await fresh.db.knex.raw('delete from changes where seq = (select max(seq) from changes)');
    await feed.catchUp();
    expect(seen.reasons).toEqual(['behind']);
    expect(seen.flushes).toEqual([feed.position]);
  });

  test('when unread changes were pruned', async () => {
    const feed = await startFeed();
    await seedTenant(fresh.db, 'a');
    await makeFeed({ keepMs: 0 }).prune();
    await feed.catchUp();
    expect(seen.reasons).toEqual(['pruned']);
    expect(seen.keys).toEqual([]);
    await seedTenant(fresh.db, 'b');
    await feed.catchUp();
    expect(seen.keys).toEqual(['tenant b']);
  });

  test('when one of them fails to apply a change', async () => {
    const flushed: number[] = [];
    const broken: ChangeListener = {
      apply() {
        throw new Error('a bug');
      },
      flush: (position) => flushed.push(position),
    };
    const feed = await startFeed({ listeners: [broken, seen] });
    await seedTenant(fresh.db, 'a');
    await feed.catchUp();
    expect(flushed).toEqual([feed.position]);
    expect(seen.keys).toEqual(['tenant a']);
  });
});

describe('a change of a kind that this program does not know', () => {
  const write = (kind: string) =>
    fresh.db.query({
      text: "insert into changes (seq, kind, key) values (nextval('change_seq'), $1, 'something')",
      values: [kind],
    });

  test('flushes every cache, the feed continues, and each kind is reported once', async () => {
    await fresh.db.query({ text: 'alter table changes drop constraint changes_kind_check' });
    const kinds: string[] = [];
    const feed = await startFeed({
      batchSize: 2,
      events: {
        onFlush: (reason) => seen.reasons.push(reason),
        onError: (error) => seen.errors.push(error),
        onUnknownKind: (kind) => kinds.push(kind),
      },
    });
    await seedTenant(fresh.db, 'a');
    await write('quota');
    await write('quota');
    await write('team');
    await feed.catchUp();
    expect(seen.flushes.at(-1)).toBe(feed.position);
    expect(kinds).toEqual(['quota', 'team']);

    await seedTenant(fresh.db, 'b');
    await feed.catchUp();
    expect(seen.keys.at(-1)).toBe('tenant b');
    await write('quota');
    await feed.catchUp();
    expect(seen.flushes.at(-1)).toBe(feed.position);
    expect(kinds).toEqual(['quota', 'team']);
    expect(new Set(seen.reasons)).toEqual(new Set(['unknown_kind']));
    expect(seen.errors).toEqual([]);
  });
});

/** Reports whether a statement waits for a lock. */
async function waitsForLock(): Promise<boolean> {
  const text = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  return (await fresh.db.query({ text })).length > 0;
}

describe('pruning', () => {
  test('keeps young changes, and does not change the position', async () => {
    const feed = await startFeed({ keepMs: NEVER_MS });
    await seedTenant(fresh.db, 'a');
    expect(await feed.prune()).toBe(0);
    await feed.catchUp();
    await makeFeed({ keepMs: 0 }).prune();
    await feed.catchUp();
    expect(seen.reasons).toEqual([]);
    const [row] = await fresh.db.query({
      text: 'select feed_position() as position, (select count(*) from changes) as left',
    });
    expect(row).toEqual({ position: feed.position, left: 0 });
  });

  test('does not delay a read', async () => {
    const feed = await startFeed({ keepMs: 0 });
    await seedTenant(fresh.db, 'old');
    await feed.catchUp();
    const pruning = await fresh.db.knex.transaction(async (trx) => {
      await trx.raw('select from feed_state for update');
      const late = feed.prune();
      await expect.poll(waitsForLock).toBe(true);
      await seedTenant(fresh.db, 'new');
      await feed.catchUp();
      expect(seen.keys).toEqual(['tenant old', 'tenant new']);
      return { late };
    });
    await pruning.late;
  });

  test('runs on one server at a time', async () => {
    const feed = makeFeed({ keepMs: 0 });
    await feed.prune();
    await seedTenant(fresh.db, 'a');
    await fresh.db.knex.transaction(async (trx) => {
      await trx.raw('select pg_advisory_xact_lock(726543483)');
      expect(await feed.prune()).toBe(0);
    });
    expect(await feed.prune()).toBe(1);
  });
});

test('start rejects with a fault if there is no schema, and stop still ends everything', async () => {
  const empty = await freshDatabase('');
  const feed = new ChangeFeed({ db: empty.db, listeners: [seen] });
  await expect(feed.start()).rejects.toBeInstanceOf(Fault);
  await feed.stop();
  await empty.close();
});

test('stop ends while the connection for notifications is still being made', async () => {
  // Ends each connection when the client does, and says nothing before.
  const mute = createServer((socket) => socket.resume()).listen(0, '127.0.0.1');
  onTestFinished(() => void mute.close());
  await once(mute, 'listening');
  const address = mute.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  const db = openDatabase({ url: `postgresql://x@127.0.0.1:${address.port}/x` });
  onTestFinished(() => db.close());
  const ignore = () => undefined;
  const accepted = once(mute, 'connection');
  const stop = listenForChanges(db, {
    onConnect: ignore,
    onChange: ignore,
    onReportRequest: ignore,
    onError: ignore,
  });
  await accepted;
  await stop();
});

test('reads of the feed the changes of the page alone, also by a connection that planned it for a feed that was nearly empty', async () => {
  const one = openDatabase({ url: fresh.url, poolMax: 1, queryTimeoutMs: 30_000 });
  onTestFinished(() => one.close());
  await one.query({ text: 'analyze changes' });
  const page = { after: 0, limit: 10, withTimeline: false };
  for (let i = 0; i < 10; i++) await readPage(one, page);
  await one.query({
    text: `insert into changes (seq, kind, key) select nextval('change_seq'), 'key', 'k' || n from generate_series(1, 5000) n`,
  });
  const read = async (): Promise<number> => {
    await one.query({ text: 'select pg_stat_force_next_flush()' });
    const [row] = await one.query({
      text: `select seq_tup_read + idx_tup_fetch as rows from pg_stat_user_tables where relname = 'changes'`,
    });
    return Number(row?.['rows']);
  };
  const before = await read();
  const { changes, position } = await readPage(one, page);
  expect(changes).toHaveLength(10);
  expect(await readPage(one, { ...page, after: position })).toMatchObject({ changes: [], position });
  expect((await read()) - before).toBeLessThan(50);
});
