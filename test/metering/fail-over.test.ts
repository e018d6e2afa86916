/** A fail-over to a standby that lags: the store returns to an earlier state, and the processes keep their state. */

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LimitDecision } from '../../src/metering/admission.ts';
import { Limits } from '../../src/metering/limits.ts';
import { ReservationIds } from '../../src/metering/reservation-ids.ts';
import { openMetering, postgresMetering } from '../../src/store/metering/metering.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { runs } from '../support/properties.ts';
import { RateWorld } from './support/rate-world.ts';
import { askOf, TTL_MS, World } from './support/world.ts';

type StepOf<A> = A extends fc.Arbitrary<infer S> ? S : never;

const PROCESSES = 3;
const process = fc.nat({ max: PROCESSES - 1 });

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

const rateStep = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('take' as const), process, count: fc.integer({ min: 1, max: 12 }) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('tick' as const), process }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 200 }) }) },
);
const rateSteps = fc.array(rateStep, { maxLength: 40, size: 'max' });

describe('a rate limit, after a fail-over to a standby that lagged', () => {
  test('is passed in a window by at most what the store had granted of that window within the lag', async () => {
    const run = async (world: RateWorld, limit: number, steps: readonly StepOf<typeof rateStep>[]): Promise<void> => {
      for (const step of steps) {
        if (step.kind === 'take') for (let i = 0; i < step.count; i++) world.take(step.process, 'key:k', limit);
        else if (step.kind === 'tick') await world.tick(step.process);
        else await world.advance(step.ms);
      }
    };
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 400 }),
        rateSteps,
        rateSteps,
        rateSteps,
        async (limit, before, lag, after) => {
          const world = new RateWorld(PROCESSES, () => 5);
          await run(world, limit, before);
          const kept = new Map(world.granted);
          await run(world, limit, lag);
          const lost = new Map([...world.granted].map(([key, granted]) => [key, granted - (kept.get(key) ?? 0)]));
          world.granted.clear();
          for (const [key, granted] of kept) world.granted.set(key, granted);
          await run(world, limit, after);
          await world.advance(3000);
          for (const [window, count] of world.admittedIn('key:k')) {
            expect(count).toBeLessThanOrEqual(limit + (lost.get(`key:k ${window}`) ?? 0));
          }
        },
      ),
      { numRuns: runs(200) },
    );
  });
});

const tokenStep = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('admit' as const), process, amount: fc.integer({ min: 1, max: 40 }) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('end' as const),
      process,
      which: fc.nat({ max: 30 }),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('live' as const), ms: fc.constantFrom(100, 300, 700) }) },
);
const tokenSteps = fc.array(tokenStep, { maxLength: 40, size: 'max' });

describe('a monthly quota, after a fail-over to a standby that lagged', () => {
  test('is passed by at most the tokens that were granted or booked within the lag, and nothing stays held', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 1500 }),
        tokenSteps,
        tokenSteps,
        tokenSteps,
        async (quota, before, lag, after) => {
          const world = new World(PROCESSES, () => 5);
          let spent = 0;
          const run = async (steps: readonly StepOf<typeof tokenStep>[]): Promise<void> => {
            for (const step of steps) {
              if (step.kind === 'admit') {
                world.admit(step.process, { metered: true, monthlyTokens: quota, askedTokens: step.amount });
              } else if (step.kind === 'live') await world.live(step.ms);
              else {
                const [request] = world.running.splice(step.which % Math.max(1, world.running.length), 1);
                if (request === undefined) continue;
                const total = Math.floor((world.ids.read(request.reservation)?.answer ?? 0) * step.share);
                spent += total;
                world.end(step.process, request, { total });
              }
            }
          };
          const granted = (): number => sum(world.processes.map(({ limits }) => limits.stats.tokensLeased));
          const booked = (): number => world.store.usage.get('acme')?.tokens ?? 0;
          await world.live(400);
          await run(before);
          const atSnapshot = granted() + booked();
          const restore = world.store.snapshot();
          await run(lag);
          // Statements in flight arrive before the fail-over, so that the loss is known.
          await world.live(300);
          const lost = granted() + booked() - atSnapshot;
          restore();
          for (const { limits } of world.processes) limits.storeReplaced();
          await run(after);
          expect(spent + world.reserved).toBeLessThanOrEqual(quota + lost);
          world.running.length = 0;
          await world.live(TTL_MS + 10_000, 500);
          expect(world.processes.map(({ limits }) => limits.stats.budgets.reserved)).toEqual([0, 0, 0]);
          for (const { limits } of world.processes) await Promise.race([limits.stop(), world.live(3000)]);
          expect(
            sum([...world.store.budgets.values()].flatMap(({ holds }) => [...holds.values()].map(({ held }) => held))),
          ).toBe(0);
        },
      ),
      { numRuns: runs(60) },
    );
  });
});

test('a hold that was returned within the lag is returned again to a store that was replaced', async () => {
  const world = new World(1, () => 5);
  await world.live(300);
  world.admit(0, { metered: true, monthlyTokens: 1000, askedTokens: 100 });
  await world.live(300);
  const restore = world.store.snapshot();
  const [request] = world.running.splice(0, 1);
  if (request === undefined) throw new Error('nothing was admitted');
  world.end(0, request, { total: 0 });
  await world.live(15_000, 500);
  const held = (): number =>
    sum([...world.store.budgets.values()].flatMap(({ holds }) => [...holds.values()].map((hold) => hold.held)));
  expect(held()).toBe(0);
  restore();
  expect(held()).toBeGreaterThanOrEqual(100);
  world.processes[0]?.limits.storeReplaced();
  await world.live(2000);
  expect(held()).toBe(0);
});

describe('the end of a request, after a fail-over to a standby that lagged', () => {
  test('is booked although the store does not know the process that issued its reservation', async () => {
    const world = new World(2, () => 5);
    await world.live(200);
    const restore = world.store.snapshot();
    world.crash(1);
    await world.live(300);
    world.admit(1, { metered: true, monthlyTokens: 1000, askedTokens: 10 });
    await world.live(300);
    restore();
    const [request] = world.running.splice(0, 1);
    if (request === undefined) throw new Error('nothing was admitted');
    // Reported to the other process, before the issuer's next statement.
    world.end(0, request, { total: 7 });
    await world.live(8000);
    expect(world.store.usage.get('acme')).toEqual({ requests: 1, tokens: 7, estimated: 0 });
    expect(world.processes.map(({ limits }) => limits.stats.settlementsWaiting)).toEqual([0, 0]);
  });

  test('of a reservation that no process of the installation issued is given up, and counted as unknown', async () => {
    const world = new World(1, () => 5);
    await world.live(200);
    const { id } = new ReservationIds(Buffer.alloc(16, 7), 'f'.repeat(16)).issue(
      Math.floor(world.nowMs / 60_000),
      'usage',
      0,
      {
        prompt: 0,
        answer: 10,
      },
    );
    world.end(
      0,
      {
        reservation: id,
        tenant: 'acme',
        process: undefined,
        admittedMs: 0,
        sinceMs: 0,
        request: askOf({}),
        charges: undefined,
      },
      { total: 7 },
    );
    await world.live(13_000);
    const { unknown, settlementsWaiting, settled } = world.processes[0]?.limits.stats ?? {};
    expect([unknown, settlementsWaiting, settled]).toEqual([1, 0, 0]);
  });
});

describe('the end of a request, while the installation changes its secret-key', () => {
  test('is booked by a process of the other secret-key while both accept both keys', async () => {
    const keys = [Buffer.alloc(16, 1), Buffer.alloc(16, 2)] as const;
    for (const issuer of [0, 1]) {
      const world = new World(
        2,
        () => 5,
        [],
        (i) => ({
          reservationKey: keys[i === 0 ? 0 : 1],
          otherReservationKey: keys[i === 0 ? 1 : 0],
        }),
      );
      await world.live(200);
      world.admit(issuer, { metered: true, monthlyTokens: 1000, askedTokens: 10 });
      await world.live(300);
      const [request] = world.running.splice(0, 1);
      if (request === undefined) throw new Error('nothing was admitted');
      world.end(1 - issuer, request, { total: 7 });
      await world.live(8000);
      expect(world.store.usage.get('acme')).toEqual({ requests: 1, tokens: 7, estimated: 0 });
    }
  });
});

describe('in PostgreSQL', () => {
  let database: FreshDatabase;
  beforeAll(async () => {
    database = await freshDatabase();
  });
  afterAll(() => database.close());

  const TABLES = [
    'metering_holders',
    'rate_windows',
    'token_budgets',
    'token_holds',
    'settlements',
    'usage_daily',
    'usage_by_model',
  ];

  test('a rate and a quota are passed by at most what was granted or booked within the lag', async () => {
    const { db } = database;
    const processes = ['a', 'b'].map((name) => {
      const pool = openMetering(db);
      const limits = new Limits({
        store: postgresMetering(pool),
        processId: name.repeat(16),
        reservationKey: Buffer.alloc(16, 7),
        // No test sees a window end.
        windowMs: 365 * 86_400_000,
        tokenEstimate: 10,
        fileEstimate: 1000,
        reservationTtlMs: 60_000,
        now: Date.now,
        monotonicMs: () => performance.now(),
      });
      return { pool, limits };
    });
    const [limit, quota] = [4000, 20_000];
    let admitted = 0;
    let spent = 0;
    const running: string[] = [];
    const request = askOf({ tenantRpm: limit, metered: true, monthlyTokens: quota, askedTokens: 10 });
    const use = async (rounds: number): Promise<void> => {
      for (let round = 0; round < rounds; round++) {
        const answers: (LimitDecision | Promise<LimitDecision>)[] = [];
        for (let i = 0; i < 40; i++) for (const { limits } of processes) answers.push(limits.admit(request));
        for (const answer of await Promise.all(answers)) {
          if (answer.kind === 'refused') {
            if (answer.code === 'insufficient_quota') admitted += 1;
            continue;
          }
          admitted += 1;
          running.push(answer.reservation ?? '');
        }
        // Half of the running requests end, and are reported to the process that did not admit them.
        for (const reservation of running.splice(0, running.length / 2)) {
          spent += 8;
          const usage = { prompt: 0, completion: 8, cached: 0, total: 8, model: 'm' };
          const end = {
            reservation,
            tenant: 'acme',
            user: 'u',
            key: undefined,
            model: 'm',
            usage,
            status: 200,
            responseBytes: 0,
            textBytes: 0,
            upstream: 'answered',
          } as const;
          processes[round % 2]?.limits.settle(end);
        }
        for (const { limits } of processes) await limits.tick();
      }
    };
    const stand = async () => {
      const [row] = await db.query({
        text: `select (select coalesce(sum(granted), 0)::float8 from rate_windows) as granted,
          (select coalesce(sum(spent + held), 0)::float8 from token_budgets) as used`,
      });
      const leased = sum(processes.map(({ limits }) => limits.stats.tokensLeased));
      const [budget] = await db.query({ text: 'select coalesce(sum(spent), 0)::float8 as spent from token_budgets' });
      return { granted: Number(row?.['granted']), tokens: leased + Number(budget?.['spent']) };
    };
    for (const { limits } of processes) await limits.tick();
    await use(10);
    const snapshot = await stand();
    for (const table of TABLES) await db.query({ text: `create table kept_${table} as table ${table}` });
    await use(10);
    const failed = await stand();
    for (const table of TABLES) {
      await db.query({ text: `truncate ${table}` });
      await db.query({ text: `insert into ${table} select * from kept_${table}` });
    }
    for (const { limits } of processes) limits.storeReplaced();
    await use(60);
    expect(failed.granted).toBeGreaterThan(snapshot.granted);
    expect(admitted).toBeLessThanOrEqual(limit + failed.granted - snapshot.granted);
    expect(spent + 10 * running.length).toBeLessThanOrEqual(quota + failed.tokens - snapshot.tokens);
    // And what is left can be used: neither limit is stuck below.
    expect(admitted).toBeGreaterThanOrEqual(0.95 * limit);
    for (const { limits, pool } of processes) {
      await limits.stop();
      await pool.close();
    }
  });
});
