/** The other gate's denials on their way into the database, and the bounds of decisions in shadow mode there. */

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  listRecent,
  pruneExcessRecent,
  pruneOtherDenials,
  RECENT_BOUNDS,
} from '../../src/iam/decisions/recent-queries.ts';
import { DecisionCounts } from '../../src/store/decision-counts.ts';
import { readMeta } from '../../src/store/meta.ts';
import { OTHER_GATE_REPORTED_AT, OtherGateDenials } from '../../src/store/other-gate.ts';
import type { Statement } from '../../src/store/pool.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { decisionRow, storeDecisions } from '../support/recorded-decisions.ts';

const NEVER_MS = 3_600_000;
const EVERY = { kind: 'every' } as const;

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase();
});
beforeEach(async () => {
  await fresh.db.query({
    text: 'truncate recent_decisions, other_gate_denials, decision_counts, shadow_decision_counts',
  });
});
afterAll(() => fresh.close());

async function count(text: string): Promise<number> {
  const [row] = await fresh.db.query({ text: `select count(*)::int as count from ${text}` });
  return Number(row?.['count']);
}

test('each denial is stored once, in batches, after an outage too, and those beyond the memory are counted', async () => {
  const state = { shut: true };
  const db = {
    knex: fresh.db.knex,
    query: (statement: Statement) => (state.shut ? Promise.reject(new Error('shut')) : fresh.db.query(statement)),
  };
  const faults: Error[] = [];
  const options = { db, now: Date.now, flushIntervalMs: NEVER_MS, onError: (error: Error) => faults.push(error) };
  const [denials, others] = [new OtherGateDenials(options), new OtherGateDenials(options)];
  for (let i = 0; i < 20_003; i++) denials.denied(`id-${i}`);
  others.denied('id-1');
  await denials.flush();
  expect([faults.length, denials.dropped, await count('other_gate_denials')]).toEqual([1, 3, 0]);
  state.shut = false;
  await Promise.all([denials.flush(), others.flush()]);
  expect(await count('other_gate_denials')).toBe(1000);
  for (let i = 0; i < 19; i++) await denials.flush();
  await denials.stop();
  await others.stop();
  expect(await count('other_gate_denials')).toBe(20_000);
});

test('the time of the last report is kept to the minute', async () => {
  let nowMs = Date.UTC(2026, 10, 21, 9, 0, 59);
  const denials = new OtherGateDenials({ db: fresh.db, now: () => nowMs, flushIntervalMs: NEVER_MS });
  await denials.flush();
  expect(await readMeta(fresh.db.knex, OTHER_GATE_REPORTED_AT)).toBeUndefined();
  denials.reported();
  await denials.flush();
  expect(await readMeta(fresh.db.knex, OTHER_GATE_REPORTED_AT)).toBe('2026-11-21T09:00:00.000Z');
  nowMs += 60_000;
  denials.reported();
  await denials.stop();
  expect(await readMeta(fresh.db.knex, OTHER_GATE_REPORTED_AT)).toBe('2026-11-21T09:01:00.000Z');
});

test('upkeep removes denials of more than 24 hours ago, in batches', async () => {
  await fresh.db.query({
    text: `insert into other_gate_denials (client_request_id, time)
      select 'id-' || hours, clock_timestamp() - make_interval(hours => hours) from unnest(array[0, 23, 25, 26, 100]) hours`,
  });
  const { knex } = fresh.db;
  expect([
    await pruneOtherDenials(knex, 2),
    await pruneOtherDenials(knex, 2),
    await pruneOtherDenials(knex, 2),
  ]).toEqual([2, 1, 0]);
  expect(await count('other_gate_denials')).toBe(2);
});

test('a flood of denied requests takes no outcome of the other gate from a recorded decision of another tenant', async () => {
  const now = Date.now();
  const recorded = { shadow: true, atMs: now - 3_600_000, tenant_id: 'quiet', client_request_id: 'recorded' };
  await storeDecisions(fresh.db, [decisionRow(recorded)]);
  await fresh.db.query({
    text: `insert into other_gate_denials (client_request_id, time) values ('recorded', clock_timestamp() - interval '1 hour')`,
  });
  await fresh.db.query({
    text: `insert into other_gate_denials (client_request_id, time)
      select 'flood-' || n, clock_timestamp() - make_interval(secs => n) from generate_series(1, 9) n`,
  });
  const { knex } = fresh.db;
  expect([await pruneOtherDenials(knex, 3, 4), await pruneOtherDenials(knex, 3, 4)]).toEqual([3, 1]);
  expect(await count('other_gate_denials')).toBe(6);
  expect(await listRecent(knex, EVERY, { shadow: true }, { after: undefined, take: 9 }, now)).toMatchObject([
    { client_request_id: 'recorded', other: 'deny' },
  ]);
});

test('decisions in shadow mode have a bound of their own, take no place from enforced ones, and are no use of a permission', async () => {
  const now = Date.now();
  const rows = (shadow: boolean, many: number) =>
    Array.from({ length: many }, (_, i) =>
      decisionRow({
        ...{ shadow, atMs: now - i, outcome: 'allow', code: 'allow', permission: 'chat:read' },
        ...{ principal_type: 'api_key', principal_id: shadow ? 'key_shadow' : 'key_enforced' },
      }),
    );
  await storeDecisions(fresh.db, [...rows(false, 3), ...rows(true, 9)]);
  const { knex } = fresh.db;
  expect(await pruneExcessRecent(knex, 'sampled', { perGroup: 3, total: 100 }, 100)).toBe(0);
  expect(await pruneExcessRecent(knex, 'shadow', { perGroup: 5, total: 100 }, 100)).toBe(4);
  expect([await count('recent_decisions where shadow'), await count('recent_decisions where not shadow')]).toEqual([
    5, 3,
  ]);
  for (const [shadow, many] of [
    [true, 5],
    [false, 3],
  ] as const)
    expect(await listRecent(knex, EVERY, { shadow }, { after: undefined, take: 100 }, now)).toHaveLength(many);
  expect(await count(`key_permissions_used where key_id = 'key_enforced'`)).toBe(1);
  expect(await count(`key_permissions_used where key_id = 'key_shadow'`)).toBe(0);
  expect(RECENT_BOUNDS.shadow.perGroup).toBeGreaterThanOrEqual(10_000);
});

test('counts of decisions in shadow mode go to a table of their own', async () => {
  const counted = {
    minuteMs: Date.UTC(2026, 5, 1, 12),
    tenant: 'acme',
    code: 'allow',
    route: '',
    decisions: 2,
  } as const;
  const tally = { take: () => [counted, counted], putBack: () => undefined };
  const counts = new DecisionCounts({
    db: fresh.db,
    tally,
    table: 'shadow_decision_counts',
    flushIntervalMs: NEVER_MS,
  });
  await counts.flush();
  await counts.stop();
  const [row] = await fresh.db.query({ text: 'select decisions::int as decisions from shadow_decision_counts' });
  expect(row).toEqual({ decisions: 8 });
  expect(await count('decision_counts')).toBe(0);
});
