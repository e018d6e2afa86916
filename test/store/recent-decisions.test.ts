/** Recorded decisions on their way into the database, and the bounds of what is kept there. */

import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Fault } from '../../src/domain/errors.ts';
import { parseId } from '../../src/domain/ids.ts';
import { pruneUses } from '../../src/iam/api-keys/permission-use-queries.ts';
import {
  fairCap,
  findRecent,
  type GroupSize,
  listRecent,
  pruneExcessRecent,
  pruneOldRecent,
  RECENT_BOUNDS,
  RECENT_HOURS,
} from '../../src/iam/decisions/recent-queries.ts';
import type { Statement } from '../../src/store/pool.ts';
import { RecentDecisionWriter } from '../../src/store/recent-decisions.ts';
import type { RecentDecisionRow } from '../../src/telemetry/recent-decision.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { runs } from '../support/properties.ts';
import { decisionRow, storeDecisions } from '../support/recorded-decisions.ts';

const NOON = Date.UTC(2026, 5, 1, 12);
const EVERY = { kind: 'every' } as const;

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase();
});
beforeEach(async () => {
  await fresh.db.query({ text: 'truncate recent_decisions' });
});
afterAll(() => fresh.close());

async function storedIds(): Promise<readonly string[]> {
  const rows = await fresh.db.query({ text: 'select request_id from recent_decisions order by request_id desc' });
  return rows.map((row) => String(row['request_id']));
}

async function storedUses(): Promise<readonly (readonly unknown[])[]> {
  const rows = await fresh.db.query({
    text: 'select key_id, permission, last_used_on::text as day from key_permissions_used order by 1, 2',
  });
  return rows.map((row) => [row['key_id'], row['permission'], row['day']]);
}

describe('the writer', () => {
  function writing(
    rows: readonly (readonly RecentDecisionRow[])[],
    query: (statement: Statement) => Promise<readonly object[]>,
  ) {
    const batches = [...rows];
    const lost: RecentDecisionRow[] = [];
    const errors: Error[] = [];
    const writer = new RecentDecisionWriter({
      db: { query: async (statement) => (await query(statement)).map((row) => ({ ...row })) },
      source: { take: () => batches.shift() ?? [], lost: (dropped) => lost.push(...dropped) },
      flushIntervalMs: 3_600_000,
      onError: (error) => errors.push(error),
    });
    return { writer, lost, errors };
  }

  test('repeats a batch after an outage, also if it had been written, and stores each decision once', async () => {
    const state = { away: true, arrives: false };
    const [first, second] = [decisionRow(), decisionRow()];
    const { writer, lost, errors } = writing([[first], [second]], async (statement) => {
      if (state.arrives || !state.away) await fresh.db.query(statement);
      if (state.away) throw new Fault('away');
      return [];
    });
    await writer.flush();
    state.arrives = true;
    await writer.flush();
    state.away = false;
    await writer.flush();
    await writer.stop();
    expect(await storedIds()).toEqual(idsOf([first, second]));
    expect([lost, errors.length]).toEqual([[], 1]);
  });

  test('keeps the last day of each permission that a key used, and no use of a user or of a denied request', async () => {
    await fresh.db.query({ text: 'truncate key_permissions_used' });
    const day = 86_400_000;
    const spec = {
      outcome: 'allow',
      principal_type: 'api_key',
      principal_id: 'key_a',
      permission: 'chat:read',
    } as const;
    const first = [
      decisionRow({ ...spec, atMs: NOON }),
      decisionRow({ ...spec, atMs: NOON + 1 }),
      decisionRow({ ...spec, atMs: NOON - day }),
      decisionRow({ ...spec, atMs: NOON, permission: 'chat:write' }),
      decisionRow({ ...spec, atMs: NOON, principal_id: 'key_b' }),
      decisionRow({ ...spec, principal_type: 'user', principal_id: 'usr_a' }),
      decisionRow({ ...spec, outcome: 'deny', principal_id: 'key_c' }),
      decisionRow({ ...spec, permission: null, principal_id: 'key_c' }),
    ];
    await storeDecisions(fresh.db, first);
    await storeDecisions(fresh.db, [
      decisionRow({ ...spec, atMs: NOON - 2 * day }),
      decisionRow({ ...spec, atMs: NOON + day, principal_id: 'key_b' }),
    ]);
    expect(await storedUses()).toEqual([
      ['key_a', 'chat:read', '2026-06-01'],
      ['key_a', 'chat:write', '2026-06-01'],
      ['key_b', 'chat:read', '2026-06-02'],
    ]);
  });

  test('drops and counts a batch that the database rejects, and continues with the next', async () => {
    const bad = { ...decisionRow(), detail: 'not storable: \0' };
    const good = decisionRow();
    const { writer, lost, errors } = writing([[bad], [good]], (statement) => fresh.db.query(statement));
    await writer.flush();
    await writer.stop();
    expect(await storedIds()).toEqual([good.request_id]);
    expect([lost, errors.length]).toEqual([[bad], 1]);
  });
});

/** Ids are in the order of time, by code unit. */
const newest = (ids: readonly string[]) => ids.toSorted((left, right) => (left < right ? 1 : -1));
const idsOf = (rows: readonly RecentDecisionRow[]) => newest(rows.map((row) => row.request_id));

test('uses of permissions are removed in batches after 31 days', async () => {
  await fresh.db.query({ text: 'truncate key_permissions_used' });
  await fresh.db.query({
    text: `insert into key_permissions_used
      select 'key_' || days, 'chat:read', cast(now() at time zone 'UTC' as date) - days from unnest(array[0, 31, 33, 34, 90]) days`,
  });
  const removed: number[] = [];
  for (let run = 0; run < 3; run++) removed.push(await pruneUses(fresh.db.knex, 2));
  expect(removed).toEqual([2, 1, 0]);
  expect((await storedUses()).map(([key]) => key)).toEqual(['key_0', 'key_31']);
});

describe('what is kept', () => {
  const key = (row: RecentDecisionRow) => `${row.tenant_id} ${row.outcome}`;

  /** The rule in the simplest words: the largest number of each group that fits, newest first. */
  function naivelyKept(rows: readonly RecentDecisionRow[], perGroup: number, total: number): readonly string[] {
    const groups = Array.from(Map.groupBy(rows, key).values(), idsOf);
    for (let cap = perGroup; ; cap--) {
      const kept = groups.flatMap((group) => group.slice(0, cap));
      if (kept.length <= total) return newest(kept);
    }
  }

  test('is the newest of each tenant and outcome, and the largest groups shrink first when there are too many in all', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            tenant_id: fc.constantFrom('', 'acme', 'globex', 'initech'),
            outcome: fc.constantFrom('allow' as const, 'deny' as const),
            atMs: fc.integer({ min: NOON, max: NOON + 50 }),
          }),
          { maxLength: 80 },
        ),
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 0, max: 60 }),
        fc.constantFrom(1, 7, 100),
        async (specs, perGroup, total, batch) => {
          await fresh.db.query({ text: 'truncate recent_decisions' });
          const rows = specs.map((spec) => decisionRow(spec));
          const firsts = ['a', 'b'].map((name) => decisionRow({ outcome: 'allow', first_of: name }));
          await storeDecisions(fresh.db, [...rows, ...firsts]);
          const removed: number[] = [];
          do {
            removed.push(await pruneExcessRecent(fresh.db.knex, 'sampled', { perGroup, total }, batch));
          } while (removed.at(-1) !== 0);
          expect(Math.max(...removed)).toBeLessThanOrEqual(batch);
          const stored = await storedIds();
          for (const { request_id: id } of firsts) expect(stored).toContain(id);
          const kept = new Set(stored.filter((id) => !firsts.some((row) => row.request_id === id)));
          const fewest = naivelyKept(rows, perGroup, total);
          // A cap leaves a rest of the total unused; upkeep ends as soon as everything fits, so of small batches more
          // rows stay.
          if (batch >= rows.length) expect([...kept]).toEqual(fewest);
          for (const id of fewest) expect(kept).toContain(id);
          expect(kept.size).toBeLessThanOrEqual(total);
          for (const group of Map.groupBy(rows, key).values()) {
            const newestFirst = idsOf(group);
            const count = newestFirst.filter((id) => kept.has(id)).length;
            expect(count).toBeLessThanOrEqual(perGroup);
            expect(newestFirst.slice(0, count).every((id) => kept.has(id))).toBe(true);
          }
        },
      ),
      { numRuns: runs(40) },
    );
  });

  test('never exceeds the bounds, and a group within the cap loses nothing', () => {
    const sizes = fc.uniqueArray(
      fc.record({ rows: fc.integer({ min: 1, max: 5000 }), groups: fc.integer({ min: 1, max: 400 }) }),
      { maxLength: 30, selector: ({ rows }) => rows },
    );
    const keptBy = (cap: number, all: readonly GroupSize[]) =>
      all.reduce((sum, { rows, groups }) => sum + Math.min(rows, cap) * groups, 0);
    fc.assert(
      fc.property(sizes, (all) => {
        const { sampled: bounds } = RECENT_BOUNDS;
        const cap = fairCap(all, bounds);
        expect(cap).toBeLessThanOrEqual(bounds.perGroup);
        expect(keptBy(cap, all)).toBeLessThanOrEqual(bounds.total);
        if (cap < bounds.perGroup) expect(keptBy(cap + 1, all)).toBeGreaterThan(bounds.total);
      }),
    );
  });

  test('of first allows is one of each name in a tenant, and the newest of a tenant up to a bound of their own', async () => {
    const named = (tenant_id: string, first_of: string, atMs: number) =>
      decisionRow({ tenant_id, first_of, atMs, outcome: 'allow' });
    const rows = [1, 2, 3].map((n) => named('acme', `name-${n}`, NOON + n));
    const other = named('globex', 'name-1', NOON);
    await storeDecisions(fresh.db, [...rows, named('acme', 'name-2', NOON + 9), other]);
    expect(await storedIds()).toEqual(idsOf([...rows, other]));
    await storeDecisions(fresh.db, [decisionRow({ outcome: 'allow', atMs: NOON + 5 })]);
    expect(await pruneExcessRecent(fresh.db.knex, 'first_allows', { perGroup: 2, total: 100 }, 10)).toBe(1);
    expect(await storedIds()).toHaveLength(4);
    expect(await storedIds()).not.toContain(rows[0]?.request_id);
  });

  test('of decisions that a report-only policy would have changed has a bound of its own', async () => {
    const reports = [1, 2, 3].map((n) => decisionRow({ tenant_id: 'acme', would_allow: 'trial', atMs: NOON + n }));
    const others = [1, 2].map((n) => decisionRow({ tenant_id: 'acme', atMs: NOON + n }));
    await storeDecisions(fresh.db, [...reports, ...others]);
    expect(await pruneExcessRecent(fresh.db.knex, 'sampled', { perGroup: 2, total: 100 }, 10)).toBe(0);
    expect(await pruneExcessRecent(fresh.db.knex, 'reported', { perGroup: 2, total: 100 }, 10)).toBe(1);
    expect(await storedIds()).toHaveLength(4);
    expect(await storedIds()).not.toContain(reports[0]?.request_id);
  });

  test('is of the last 24 hours, both in what is read and in what upkeep leaves', async () => {
    const rows = [0, 1, RECENT_HOURS - 1, RECENT_HOURS + 1, 100].map((hours) =>
      decisionRow({ atMs: NOON - hours * 3_600_000 }),
    );
    await storeDecisions(fresh.db, rows);
    const young = rows.slice(0, 3).map((row) => row.request_id);
    const listed = await listRecent(fresh.db.knex, EVERY, { shadow: false }, { after: undefined, take: 100 }, NOON);
    expect(listed.map((row) => row.request_id)).toEqual(young);
    const oldId = parseId('req', rows[3]?.request_id ?? '');
    expect(oldId && (await findRecent(fresh.db.knex, EVERY, oldId, NOON))).toBeUndefined();
    expect([
      await pruneOldRecent(fresh.db.knex, NOON, 1),
      await pruneOldRecent(fresh.db.knex, NOON, 5),
      await pruneOldRecent(fresh.db.knex, NOON, 5),
    ]).toEqual([1, 1, 0]);
    expect(await storedIds()).toEqual(young);
  });
});
