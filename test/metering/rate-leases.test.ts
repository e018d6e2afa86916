import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { StoreClock } from '../../src/domain/store-clock.ts';
import type { RateLeaseRequest } from '../../src/metering/ports.ts';
import { MAX_REQUESTS } from '../../src/metering/rate-batch.ts';
import { MAX_LOOKED_AHEAD, RateLeases } from '../../src/metering/rate-leases.ts';
import { RateSubject, RateSubjects } from '../../src/metering/rate-subjects.ts';
import { rateSliceOf } from '../../src/metering/slices.ts';
import { newCounts } from '../../src/telemetry/metering-counts.ts';
import { runs } from '../support/properties.ts';
import { RateWorld, REQUESTS, settle, WINDOW_MS } from './support/rate-world.ts';

const SUBJECTS = ['tenant:a', 'key:k'];

type Step =
  | { readonly kind: 'take'; readonly process: number; readonly subject: number; readonly count: number }
  | { readonly kind: 'tick'; readonly process: number }
  | { readonly kind: 'advance'; readonly ms: number }
  | { readonly kind: 'crash'; readonly process: number }
  | { readonly kind: 'store'; readonly up: boolean };

const process = fc.nat({ max: 2 });
const common: fc.WeightedArbitrary<Step>[] = [
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('take' as const),
      process,
      subject: fc.nat({ max: SUBJECTS.length - 1 }),
      count: fc.integer({ min: 1, max: 12 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('tick' as const), process }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 300 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('crash' as const), process }) },
];
const store: fc.WeightedArbitrary<Step> = {
  weight: 2,
  arbitrary: fc.record({ kind: fc.constant('store' as const), up: fc.boolean() }),
};

async function run(world: RateWorld, limit: number, steps: readonly Step[]): Promise<void> {
  for (const step of steps) {
    switch (step.kind) {
      case 'take':
        for (let i = 0; i < step.count; i++) world.take(step.process, SUBJECTS[step.subject] ?? '', limit);
        break;
      case 'tick':
        await world.tick(step.process);
        break;
      case 'advance':
        await world.advance(step.ms);
        break;
      case 'crash': {
        const crashed = world.processes[step.process];
        if (crashed !== undefined) crashed.alive = false;
        break;
      }
      case 'store':
        world.storeUp = step.up;
        break;
      default:
        step satisfies never;
    }
  }
  await world.advance(5000);
}

/** A latency for each way, from a list that repeats. */
const latencies = fc.array(fc.integer({ min: 0, max: 120 }), { minLength: 1, maxLength: 8 }).map((values) => {
  let at = 0;
  return (): number => values[at++ % values.length] ?? 0;
});

/** Expects that a process used, holds, or lost with ended windows all units that it leased. */
function expectLeasesAccountedFor(world: RateWorld): void {
  for (const { leases, counts, used, alive } of world.processes) {
    // Read first: it brings the counts up to now.
    const { held } = leases.stats;
    if (alive) expect(used + held + counts.rateStranded).toBe(counts.rateLeased + counts.rateUnleased);
  }
}

function leasesOf(world: RateWorld, process: number): RateLeases {
  const leases = world.processes[process]?.leases;
  if (leases === undefined) throw new Error('no process');
  return leases;
}

describe('a limit per window', () => {
  test('is never passed, in any order of requests, delays, crashes and borders', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 60 }),
        latencies,
        fc.array(fc.oneof(...common), { maxLength: 120, size: 'max' }),
        async (limit, latency, steps) => {
          const world = new RateWorld(3, latency);
          await run(world, limit, steps);
          for (const subject of SUBJECTS) {
            for (const count of world.admittedIn(subject).values()) expect(count).toBeLessThanOrEqual(limit);
          }
          expectLeasesAccountedFor(world);
        },
      ),
      { numRuns: runs(300) },
    );
  });

  test('every request is answered, and everything that was admitted without the store is reported to it', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 60 }),
        latencies,
        fc.array(fc.oneof(...common.slice(0, 3), store), { maxLength: 100, size: 'max' }),
        async (limit, latency, steps) => {
          const world = new RateWorld(3, latency);
          await run(world, limit, steps);
          const total = steps.reduce((sum, step) => sum + (step.kind === 'take' ? step.count : 0), 0);
          expect(world.admitted.length + world.refused).toBe(total);
          expect(world.processes.every(({ leases }) => leases.stats.waiting === 0)).toBe(true);
          expectLeasesAccountedFor(world);
        },
      ),
      { numRuns: runs(200) },
    );
  });

  test('while the store is unreachable, each process admits at most its fair share, in every window that began during the outage', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 3, max: 60 }),
        fc.array(fc.oneof(...common.slice(0, 3)), { maxLength: 60, size: 'max' }),
        async (limit, steps) => {
          const world = new RateWorld(3, () => 5);
          for (const [i] of world.processes.entries()) world.take(i, SUBJECTS[0] ?? '', limit);
          await world.advance(200);
          world.storeUp = false;
          for (const [i] of world.processes.entries()) await world.tick(i);
          const away = Math.floor(world.nowMs / WINDOW_MS);
          await run(world, limit, steps);
          for (const subject of SUBJECTS) {
            const share = Math.floor(limit / 3);
            for (const [window, count] of world.admittedIn(subject)) {
              if (window > away + 1) expect(count).toBeLessThanOrEqual(3 * share);
            }
          }
        },
      ),
      { numRuns: runs(150) },
    );
  });

  test('that was exhausted refuses at once and without a statement, until it is raised or the window ends', async () => {
    const world = new RateWorld(1, () => 1);
    for (let i = 0; i < 5; i++) world.take(0, 'tenant:a', 3);
    await world.advance(20);
    expect([world.admitted.length, world.refused]).toEqual([3, 2]);
    const before = world.statements;
    const refused = leasesOf(world, 0).consume([leasesOf(world, 0).subject('tenant', 'a', REQUESTS, 3, 0)], 1);
    expect(refused).toMatchObject({ kind: 'refused', state: { limit: 3, remaining: 0, resetSeconds: 1 } });
    expect(world.statements).toBe(before);
    world.take(0, 'tenant:a', 4);
    await world.advance(20);
    expect(world.admitted.length).toBe(4);
    await world.advance(WINDOW_MS);
    world.take(0, 'tenant:a', 3);
    await world.advance(20);
    expect(world.admitted.length).toBe(5);
  });

  test('is usable to 95 % and more under even load on three processes, with few statements', async () => {
    const world = new RateWorld(3, () => 2);
    const limit = 6000;
    // Three and a third times the limit, evenly, for four windows of a second.
    const perStep = 20_000 / 3 / 100;
    let owed = [0, 0, 0];
    const startMs = world.nowMs;
    while (world.nowMs < startMs + 4 * WINDOW_MS) {
      owed = owed.map((value, process) => {
        const due = value + perStep;
        for (let i = 0; i < Math.floor(due); i++) world.take(process, 'tenant:a', limit);
        return due - Math.floor(due);
      });
      await world.advance(10);
      if ((world.nowMs - startMs) % 100 === 0) for (const [i] of world.processes.entries()) await world.tick(i);
    }
    const full = [...world.admittedIn('tenant:a').values()].slice(1, 4);
    for (const count of full) {
      expect(count).toBeLessThanOrEqual(limit);
      expect(count).toBeGreaterThanOrEqual(0.95 * limit);
    }
  });
});

/** One process with very many subjects, over a store that answers at once. */
class Crowd {
  nowMs = 6_000_000;
  storeUp = true;
  readonly batches: (readonly RateLeaseRequest[])[] = [];
  readonly reported = new Map<string, number>();
  refused = 0;
  readonly leases: RateLeases;

  constructor(windowMs: number) {
    this.leases = new RateLeases({
      store: {
        lease: async (_holder, requests) => {
          this.batches.push(requests);
          if (!this.storeUp) throw new Error('away');
          const grants = requests.map(({ subject, window, requested, report }) => {
            const key = `${subject} ${window}`;
            if (report !== 0) this.reported.set(key, (this.reported.get(key) ?? 0) + report);
            return { granted: requested, total: requested };
          });
          return { grants, nowMs: this.nowMs, processes: 1 };
        },
      },
      processId: 'p',
      windowMs,
      clock: new StoreClock(),
      monotonicMs: () => this.nowMs,
      now: () => this.nowMs,
      maxSubjects: 200_000,
      counts: newCounts(),
    });
  }

  use(key: number): void {
    const taken = this.leases.consume([this.leases.subject('key', `${key}`, REQUESTS, 600, this.nowMs)], 1);
    if (!(taken instanceof Promise) && taken.kind === 'refused') this.refused += 1;
  }

  /** Returns the number of subjects that the tick examined. */
  async tick(): Promise<number> {
    const before = this.leases.stats.examined;
    this.nowMs += 100;
    await this.leases.tick();
    return this.leases.stats.examined - before;
  }

  get largestBatch(): number {
    return Math.max(0, ...this.batches.map((requests) => requests.length));
  }
}

describe('a slice', () => {
  test('is at least the smaller of 64 requests and 4 % of the limit, and at most 4 %, of all processes together', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100_000 }),
        fc.integer({ min: 1, max: 64 }),
        fc.array(fc.nat({ max: 2000 }), { maxLength: 5 }),
        (limit, processes, load) => {
          const subject = new RateSubject('key:k', REQUESTS, 0, () => undefined);
          subject.limit = limit;
          let now = 0;
          for (const requests of load) {
            subject.demand.record(requests);
            now += 500;
            subject.demand.expectedIn(1, now);
          }
          const slice = rateSliceOf(subject, processes, now);
          expect(slice * processes).toBeLessThanOrEqual(0.04 * limit);
          expect(slice).toBeGreaterThanOrEqual(Math.floor(Math.min(64, 0.04 * limit) / processes));
        },
      ),
    );
  });

  test('that a check waited for lasts: a key waits at most once in a window, at any rate of requests', async () => {
    const KEYS = 40;
    const crowd = new Crowd(60_000);
    const waits = new Map<string, number>();
    for (let tick = 0; tick < 1800; tick++) {
      const window = Math.floor(crowd.nowMs / 60_000);
      // From one request every 20 s to ten a second.
      for (let key = 0; key < KEYS; key++) {
        const everyTicks = Math.max(1, 200 - 5 * key);
        if ((tick + 7 * key) % everyTicks !== 0) continue;
        const before = crowd.leases.stats.waiting;
        crowd.use(key);
        if (crowd.leases.stats.waiting > before)
          waits.set(`${key} ${window}`, (waits.get(`${key} ${window}`) ?? 0) + 1);
      }
      // The store answers before time passes, so nothing is known yet of a new key's pace.
      await settle();
      await crowd.tick();
    }
    expect(waits.size).toBeGreaterThan(0);
    expect(Math.max(...waits.values())).toBe(1);
    expect(crowd.refused).toBe(0);
  });
});

describe('many limited subjects', () => {
  /** A border lies between: the windows of one subject are not divided. */
  const MOST_ASKS = MAX_REQUESTS + 2;

  test('that are each used once in a window cost work only when they are used, also at its border', async () => {
    const SUBJECTS = 30_000;
    const crowd = new Crowd(60_000);
    let most = 0;
    let all = 0;
    for (let tick = 0; tick < 1800; tick++) {
      for (let i = 0; i < SUBJECTS / 600; i++) crowd.use((tick % 600) * (SUBJECTS / 600) + i);
      const looked = await crowd.tick();
      most = Math.max(most, looked);
      all += looked;
    }
    expect([crowd.leases.stats.subjects, crowd.refused]).toEqual([SUBJECTS, 0]);
    // Those of a tick, and at a border those of the second or two before it.
    expect(most).toBeLessThanOrEqual(SUBJECTS / 20);
    expect(all).toBeLessThanOrEqual(3 * SUBJECTS * 1.5);
    expect(crowd.largestBatch).toBeLessThanOrEqual(MOST_ASKS);
  });

  test('that are all in use are examined in bounded steps, and each is requested once, before and after a border', async () => {
    const SUBJECTS = 9000;
    const crowd = new Crowd(60_000);
    for (let round = 0; round < 10; round++) {
      for (let key = 0; key < SUBJECTS; key++) {
        crowd.use(key);
        // Not more at once than may wait.
        if (key % 5000 === 0) await crowd.tick();
      }
      await crowd.tick();
    }
    expect([crowd.leases.stats.waiting, crowd.refused]).toEqual([0, 0]);
    let most = 0;
    while (crowd.nowMs % 60_000 !== 0 || crowd.nowMs < 6_060_000) {
      for (let key = 0; key < SUBJECTS; key += 40) crowd.use(key + ((crowd.nowMs / 100) % 40));
      most = Math.max(most, await crowd.tick());
    }
    expect(most).toBeLessThanOrEqual(MAX_LOOKED_AHEAD + 5 * MAX_REQUESTS);
    expect(crowd.largestBatch).toBeLessThanOrEqual(MOST_ASKS);
    // Some of them have a share of the window that begins now.
    const { waiting } = crowd.leases.stats;
    for (let key = 0; key < SUBJECTS; key++) crowd.use(key);
    expect(crowd.leases.stats.waiting - waiting).toBeLessThan(SUBJECTS);
    await expect.poll(() => crowd.leases.stats.waiting).toBe(0);
  });

  test('that were admitted while the store was away are reported in bounded statements, all of them and once', async () => {
    const SUBJECTS = 4500;
    const crowd = new Crowd(60_000);
    crowd.use(0);
    await crowd.tick();
    crowd.storeUp = false;
    crowd.use(SUBJECTS);
    await crowd.tick();
    for (let round = 0; round < 3; round++) {
      for (let key = 0; key < SUBJECTS; key++) crowd.use(key);
      expect(await crowd.tick()).toBeLessThanOrEqual(MOST_ASKS);
    }
    crowd.storeUp = true;
    for (let i = 0; i < 6; i++) expect(await crowd.tick()).toBeLessThanOrEqual(6 * MAX_REQUESTS);
    const window = Math.floor(crowd.nowMs / 60_000);
    for (let key = 1; key < SUBJECTS; key++) expect(crowd.reported.get(`key:${key} ${window}`)).toBe(3);
    const { length } = crowd.batches;
    await crowd.tick();
    expect(crowd.batches.slice(length)).toEqual([]);
  });

  test('beyond their bound are forgotten one for each new one, those first that are not in use', () => {
    const MAX = 1000;
    const forgotten: string[] = [];
    const subjects = new RateSubjects({
      max: MAX,
      onForgotten: ({ name }) => void forgotten.push(name),
      onStranded: () => undefined,
    });
    for (let i = 0; i < 5 * MAX; i++) {
      subjects.find('key', `${i}`, REQUESTS, 0).used = i === 17;
      subjects.find('key', '17', REQUESTS, 0).used = true;
    }
    expect(subjects.size).toBe(MAX);
    expect(forgotten).toHaveLength(4 * MAX);
    expect(forgotten).not.toContain('key:17');
    expect(new Set(forgotten).size).toBe(forgotten.length);
  });
});
