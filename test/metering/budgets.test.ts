import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../support/properties.ts';
import { usedOf } from './support/memory-store.ts';
import { type Process, type Running, reservedBy, TTL_MS, World } from './support/world.ts';

const TENANT = 'acme';
const PERIOD = '2026-11';
const PROCESSES = 3;
/**
 * The time limit of a property, in milliseconds. A failure shows the smallest example found within it, because
 * shrinking may need thousands of runs.
 */
const BOUNDED = { interruptAfterTimeLimit: 8000 };
/** The longest interval between two contacts of a process with the store. */
const BEAT_MS = 6000;

type Step =
  | {
      readonly kind: 'admit';
      readonly process: number;
      readonly prompt: number;
      readonly amount: number;
      readonly count: number;
    }
  | { readonly kind: 'end'; readonly told: readonly number[]; readonly which: number; readonly share: number }
  | { readonly kind: 'renew'; readonly process: number; readonly which: number }
  | { readonly kind: 'cancel'; readonly which: number }
  | { readonly kind: 'lost'; readonly which: number }
  | { readonly kind: 'tick'; readonly process: number }
  | { readonly kind: 'advance'; readonly ms: number }
  | { readonly kind: 'crash'; readonly process: number }
  | { readonly kind: 'sleep'; readonly process: number; readonly ms: number }
  | { readonly kind: 'tidy'; readonly process: number }
  | { readonly kind: 'store'; readonly up: boolean; readonly losesAnswers: boolean };

const process = fc.nat({ max: PROCESSES - 1 });
const which = fc.nat({ max: 30 });
const sound: fc.WeightedArbitrary<Step>[] = [
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('admit' as const),
      process,
      prompt: fc.integer({ min: 0, max: 10 }),
      amount: fc.integer({ min: 1, max: 40 }),
      count: fc.integer({ min: 1, max: 6 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('end' as const),
      told: fc.array(process, { minLength: 1, maxLength: 3 }),
      which,
      share: fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('renew' as const), process, which }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cancel' as const), which }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('lost' as const), which }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('tick' as const), process }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 700 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('tidy' as const), process }) },
];
/** Longer than a reservation lasts, so that its holds are taken away. */
const sleep: fc.WeightedArbitrary<Step> = {
  weight: 1,
  arbitrary: fc.record({ kind: fc.constant('sleep' as const), process, ms: fc.integer({ min: 1000, max: 30_000 }) }),
};
const crash: fc.WeightedArbitrary<Step> = {
  weight: 1,
  arbitrary: fc.record({ kind: fc.constant('crash' as const), process }),
};
const faults: fc.WeightedArbitrary<Step> = {
  weight: 3,
  arbitrary: fc.record({ kind: fc.constant('store' as const), up: fc.boolean(), losesAnswers: fc.boolean() }),
};
const latencies = fc.array(fc.integer({ min: 0, max: 200 }), { minLength: 1, maxLength: 8 }).map((values) => {
  let at = 0;
  return (): number => values[at++ % values.length] ?? 0;
});

/** The reports of ended requests. */
interface Told {
  /** Tokens of each. */
  readonly spent: Map<Running, number>;
  /**
   * Requests that were reported in time to a process that did not crash later, and admitted by a process that did not
   * crash either. The ends of all others may come after another process has booked the prompt's estimate.
   */
  readonly certain: Set<Running>;
}

function tokensOf(world: World, { reservation }: Running): number {
  return reservedBy(world.ids.read(reservation));
}

/** The tokens that are booked for a request of a process that died. */
function promptOf(world: World, { reservation }: Running): number {
  return world.ids.read(reservation)?.prompt ?? 0;
}

/** Its reservation may have expired. */
function isStale(world: World, { sinceMs }: Running): boolean {
  return world.nowMs - sinceMs >= TTL_MS - BEAT_MS;
}

function bookedTokens(world: World, { reservation }: Running): number | undefined {
  const { processId = '', counter = 0 } = world.ids.read(reservation) ?? {};
  return world.store.bookedTokens(processId, counter);
}

/**
 * Returns the tokens that are spent, and that requests with a valid reservation may still spend.
 * @param lastsMs how long a reservation surely is
 */
function committed(world: World, told: Told, lastsMs: number): number {
  const young = ({ sinceMs }: Running): boolean => world.nowMs - sinceMs < lastsMs;
  let sum = 0;
  // A process may crash after it receives the report of an end, and before it books it. The reservation then lasts as
  // long as that of a request without an end, and another process books the prompt's estimate instead of the tokens
  // that the request spent.
  for (const [request, tokens] of told.spent) sum += bookedTokens(world, request) ?? (young(request) ? tokens : 0);
  for (const request of world.running) if (young(request)) sum += tokensOf(world, request);
  return sum;
}

async function run(
  world: World,
  quota: number,
  steps: readonly Step[],
  late: boolean,
  check: (told: Told) => void,
): Promise<Told> {
  const told: Told = { spent: new Map(), certain: new Set() };
  const by = new Map<Running, readonly Process[]>();
  // Each knows of the others before anything happens.
  await world.live(400);
  for (const step of steps) {
    switch (step.kind) {
      case 'admit':
        for (let i = 0; i < step.count; i++) {
          world.admit(step.process, {
            metered: true,
            monthlyTokens: quota,
            promptTokens: step.prompt,
            askedTokens: step.amount,
          });
        }
        break;
      case 'end': {
        const request = world.running[step.which % Math.max(1, world.running.length)];
        if (request === undefined) break;
        if (isStale(world, request) && !late) break;
        const total = Math.floor(tokensOf(world, request) * step.share);
        for (const i of step.told) world.end(i, request, { total });
        told.spent.set(request, total);
        if (!isStale(world, request)) {
          by.set(
            request,
            step.told.flatMap((i) => world.processes[i] ?? []),
          );
        }
        world.running.splice(world.running.indexOf(request), 1);
        break;
      }
      case 'renew': {
        const request = world.running[step.which % Math.max(1, world.running.length)];
        if (request === undefined) break;
        world.renew(step.process, request);
        // Another process's word of it may be lost on the way, and comes too late once it has expired.
        const own = world.processes[step.process] === request.process;
        if (own && !isStale(world, request)) request.sinceMs = world.nowMs;
        break;
      }
      case 'cancel': {
        const [request] = world.running.splice(step.which % Math.max(1, world.running.length), 1);
        if (request?.process?.alive === true) request.process.limits.release(request.reservation);
        break;
      }
      case 'lost':
        if (late && world.running.length > 0) world.running.splice(step.which % world.running.length, 1);
        break;
      case 'tick':
        void world.processes[step.process]?.limits.tick();
        break;
      case 'advance':
        await world.live(step.ms);
        break;
      case 'crash':
        world.crash(step.process);
        break;
      case 'sleep': {
        const sleeper = world.processes[step.process];
        if (sleeper === undefined) break;
        // The process books its reports before it sleeps; otherwise it would book them late.
        await world.live(1500);
        sleeper.asleepUntilMs = world.nowMs + step.ms;
        await world.live(step.ms, 1000);
        void world.processes[(step.process + 1) % PROCESSES]?.limits.tidy();
        break;
      }
      case 'tidy':
        void world.processes[step.process]?.limits.tidy();
        break;
      case 'store':
        world.storeUp = step.up;
        world.losesAnswers = step.losesAnswers;
        break;
      default:
        step satisfies never;
    }
    await world.advance(0);
    check(told);
  }
  for (const [request, tellers] of by) {
    if (request.process?.alive === true && tellers.some(({ alive }) => alive)) told.certain.add(request);
  }
  return told;
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

describe('a monthly quota', () => {
  test('is never exceeded by the sum of spent and reserved tokens, for any order of requests, ends, delays and crashes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 150 }),
        latencies,
        fc.array(fc.oneof(...sound, crash, sleep), { maxLength: 120, size: 'max' }),
        async (quota, latency, steps) => {
          const world = new World(PROCESSES, latency);
          await run(world, quota, steps, false, (told) =>
            expect(committed(world, told, TTL_MS - BEAT_MS)).toBeLessThanOrEqual(quota),
          );
          await world.live(3000);
          const unanswered = sum(world.processes.map(({ limits }) => limits.stats.budgets.waiting));
          expect({ faults: world.faults, unanswered }).toEqual({ faults: 0, unanswered: 0 });
        },
      ),
      { ...BOUNDED, numRuns: runs(60) },
    );
  });

  test('is not passed either while the store is away or its answers are lost', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 150 }),
        latencies,
        fc.array(fc.oneof(...sound, faults), { maxLength: 100, size: 'max' }),
        async (quota, latency, steps) => {
          const world = new World(PROCESSES, latency);
          await run(world, quota, steps, false, (told) =>
            expect(committed(world, told, TTL_MS - BEAT_MS)).toBeLessThanOrEqual(quota),
          );
        },
      ),
      { ...BOUNDED, numRuns: runs(50) },
    );
  });

  test('leaks nothing: when all has ended or expired, nothing is held, each end was booked once, and the rest can be spent', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 150 }),
        latencies,
        fc.array(fc.oneof(...sound, crash, sleep, faults), { maxLength: 100, size: 'max' }),
        async (quota, latency, steps) => {
          const world = new World(PROCESSES, latency);
          const told = await run(world, quota, steps, true, () => undefined);
          world.storeUp = true;
          world.losesAnswers = false;
          await world.live(2 * TTL_MS + 15_000, 500);
          for (const { limits } of world.processes) void limits.tidy();
          await world.live(2000, 500);
          const budget = world.store.budget(TENANT, PERIOD);
          for (const { limits } of world.processes) {
            expect(limits.stats.budgets).toMatchObject({
              waiting: 0,
              outstanding: 0,
              held: 0,
              reserved: 0,
              isOffline: false,
            });
          }
          expect(usedOf(budget)).toBe(budget.spent);
          const least = sum([...told.certain].map((request) => told.spent.get(request) ?? 0));
          expect(budget.spent).toBeGreaterThanOrEqual(least);
          const most = world.admitted.map((request) =>
            Math.max(told.spent.get(request) ?? 0, promptOf(world, request)),
          );
          expect(budget.spent).toBeLessThanOrEqual(sum(most));
          const rest = quota - budget.spent;
          const before = world.running.length;
          if (rest > 0) world.admit(0, { metered: true, monthlyTokens: quota, askedTokens: rest });
          await world.live(1000);
          expect(world.running.length).toBe(before + (rest > 0 ? 1 : 0));
          world.admit(0, { metered: true, monthlyTokens: quota, askedTokens: 1 });
          await world.live(1000);
          expect(world.running.length).toBe(before + (rest > 0 ? 1 : 0));
        },
      ),
      { ...BOUNDED, numRuns: runs(50) },
    );
  });
});
