import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RateWorld, WINDOW_MS } from './support/rate-world.ts';

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

/** A latency for each way, out of a list that begins anew. */
const latencies = fc.array(fc.integer({ min: 0, max: 120 }), { minLength: 1, maxLength: 8 }).map((values) => {
  let at = 0;
  return (): number => values[at++ % values.length] ?? 0;
});

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
        },
      ),
      { numRuns: 300 },
    );
  });

  test('every request is answered, and the store is told of everything that was admitted without it', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 60 }),
        latencies,
        fc.array(fc.oneof(...common.slice(0, 3), store), { maxLength: 100, size: 'max' }),
        async (limit, latency, steps) => {
          const world = new RateWorld(3, latency);
          await run(world, limit, steps);
          const asked = steps.reduce((sum, step) => sum + (step.kind === 'take' ? step.count : 0), 0);
          expect(world.admitted.length + world.refused).toBe(asked);
          expect(world.processes.every(({ leases }) => leases.stats.waiting === 0)).toBe(true);
        },
      ),
      { numRuns: 200 },
    );
  });

  test('while the store is away, each process goes on with its share and no more, in every window that began without it', async () => {
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
      { numRuns: 150 },
    );
  });

  test('that was exhausted refuses at once and without a statement, until it is raised or the window ends', async () => {
    const world = new RateWorld(1, () => 1);
    for (let i = 0; i < 5; i++) world.take(0, 'tenant:a', 3);
    await world.advance(20);
    expect([world.admitted.length, world.refused]).toEqual([3, 2]);
    const before = world.statements;
    const refused = world.processes[0]?.leases.take('tenant', 'a', 3);
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
