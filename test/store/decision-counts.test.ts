/** Counts of decisions on their way into the database: from every server, and through one that is away for a while. */

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  joinOldMinutes,
  KEPT_DAYS,
  listDecisions,
  MINUTES_KEPT_DAYS,
  pruneDecisions,
} from '../../src/iam/decisions/count-queries.ts';
import { DecisionCounts, type DecisionCountsOptions } from '../../src/store/decision-counts.ts';
import type { Statement } from '../../src/store/pool.ts';
import { type DecisionCount, DecisionTally } from '../../src/telemetry/decision-tally.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';

const MINUTE = 60_000;
const NOON = Date.UTC(2026, 5, 1, 12);
const ALL = { from: new Date(0), to: new Date(NOON * 2) };
const MINUTES = { shadow: false, interval: 'minute', by: 'code_and_route' } as const;

let fresh: FreshDatabase;
const started: DecisionCounts[] = [];

beforeAll(async () => {
  fresh = await freshDatabase();
});
beforeEach(async () => {
  await fresh.db.query({ text: 'truncate decision_counts' });
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((counts) => counts.stop()));
});
afterAll(() => fresh.close());

/** Nothing is written unless the test says so. */
function server(options: Partial<DecisionCountsOptions> = {}) {
  const tally = new DecisionTally({ now: () => NOON });
  const counts = new DecisionCounts({ db: fresh.db, tally, flushIntervalMs: 3_600_000, ...options });
  started.push(counts);
  return { tally, counts };
}

const some = (tenant: string, decisions: number, minuteMs = NOON): DecisionCount => ({
  minuteMs,
  tenant,
  code: 'allow',
  route: 'POST /v1/chat/completions',
  decisions,
});

async function stored(): Promise<readonly (readonly [minute: string, code: string, count: number])[]> {
  const rows = await listDecisions(fresh.db.knex, { kind: 'every' }, ALL, MINUTES, { after: undefined, take: 1000 });
  return rows.map(({ minute, code, count }) => [minute.toISOString(), code, count]);
}

test('concurrent writes of several servers add up, in any order of their rows', async () => {
  const tenants = Array.from({ length: 40 }, (_, i) => `tenant-${i}`);
  const servers = Array.from({ length: 4 }, () => server());
  for (let round = 0; round < 5; round++) {
    for (const [i, { tally }] of servers.entries()) {
      tally.putBack((i % 2 === 0 ? tenants : tenants.toReversed()).map((tenant) => some(tenant, 1)));
    }
    await Promise.all(servers.map(({ counts }) => counts.flush()));
  }
  expect(await stored()).toEqual([['2026-06-01T12:00:00.000Z', 'allow', 800]]);
});

test('counts that could not be written are written in batches when the database is back, and the failure is reported once', async () => {
  const state = { shut: true, asked: 0 };
  const query = (statement: Statement) => {
    state.asked++;
    return state.shut ? Promise.reject(new Error('shut')) : fresh.db.query(statement);
  };
  const told: Error[] = [];
  const { tally, counts } = server({ db: { query }, batchSize: 2, onError: (error) => told.push(error) });
  tally.putBack([some('a', 1), some('b', 2), some('c', 3)]);
  await counts.flush();
  tally.putBack([some('a', 10, NOON + MINUTE)]);
  await counts.flush();
  expect([told.length, state.asked]).toEqual([1, 2]);
  state.shut = false;
  await counts.flush();
  expect(state.asked).toBe(4);
  expect(await stored()).toEqual([
    ['2026-06-01T12:00:00.000Z', 'allow', 6],
    ['2026-06-01T12:01:00.000Z', 'allow', 10],
  ]);
});

test('a stopping server writes its last counts', async () => {
  const { tally, counts } = server();
  tally.count({ code: 'public', decision: { kind: 'public' } });
  await counts.stop();
  expect(await stored()).toEqual([['2026-06-01T12:00:00.000Z', 'public', 1]]);
});

test('upkeep deletes only counts older than the retention, in batches', async () => {
  const { tally, counts } = server();
  const now = Date.now();
  const old = (minutes: number) => now - KEPT_DAYS * 86_400_000 - minutes * MINUTE;
  tally.putBack([some('a', 1, old(2)), some('b', 2, old(2)), some('c', 3, old(3)), some('d', 4, now)]);
  await counts.flush();
  expect([await pruneDecisions(fresh.db.knex, false, 2), await pruneDecisions(fresh.db.knex, false, 2)]).toEqual([
    2, 1,
  ]);
  expect((await stored()).map(([, , count]) => count)).toEqual([4]);
});

test('upkeep joins minutes older than three days into hours, in batches, without loss', async () => {
  const { tally, counts } = server();
  const hour = Math.floor((Date.now() - (MINUTES_KEPT_DAYS + 1) * 86_400_000) / 3_600_000) * 3_600_000;
  const now = Math.floor(Date.now() / MINUTE) * MINUTE;
  tally.putBack([0, 1, 2, 59, 60].map((minutes) => some('a', 1 + minutes, hour + minutes * MINUTE)));
  tally.putBack([some('b', 1, hour + 5 * MINUTE), some('a', 1000, now)]);
  await counts.flush();
  const joined: number[] = [];
  do {
    joined.push(await joinOldMinutes(fresh.db.knex, false, 3));
  } while (joined.at(-1) !== 0);
  expect(joined).toEqual([3, 1, 0]);
  expect(await stored()).toEqual([
    [new Date(hour).toISOString(), 'allow', 1 + 2 + 3 + 60 + 1],
    [new Date(hour + 3_600_000).toISOString(), 'allow', 61],
    [new Date(now).toISOString(), 'allow', 1000],
  ]);
});
