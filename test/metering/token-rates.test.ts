/** Limits of tokens per minute, and several limits of one check. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RateLeases, RateResult, Subjects } from '../../src/metering/rate-leases.ts';
import type { RateWindow } from '../../src/metering/rate-window.ts';
import { runs } from '../support/properties.ts';
import { RateWorld, WINDOW_MS } from './support/rate-world.ts';

const TOKENS = { level: 'key', models: ['*'], dimension: 'tokens_per_minute' } as const;
const REQUESTS = { level: 'key', models: ['*'], dimension: 'requests_per_minute' } as const;
const NAMES = ['tenant', 'user', 'key', 'requests'] as const;
type Name = (typeof NAMES)[number];
type Limits = Readonly<Record<Name, number>>;

function leasesOf(world: RateWorld, process: number): RateLeases {
  const leases = world.processes[process]?.leases;
  if (leases === undefined) throw new Error('there is no such process');
  return leases;
}

interface Running {
  readonly process: number;
  readonly names: readonly Name[];
  readonly tokens: number;
  readonly windows: readonly RateWindow[];
  /** By the clock of the store. */
  readonly window: number;
}

/** What requests consumed in each window by a ledger that the limits do not see. */
class Ledger {
  readonly world: RateWorld;
  readonly limits: Limits;
  running: Running[] = [];
  admitted = 0;
  refused = 0;
  readonly consumed = new Map<string, number>();
  /** Tokens that requests spent beyond what they had asked for. */
  readonly excess = new Map<string, number>();

  constructor(world: RateWorld, limits: Limits) {
    this.world = world;
    this.limits = limits;
  }

  take(process: number, names: readonly Name[], tokens: number): void {
    if (this.world.processes[process]?.alive !== true) return;
    const leases = leasesOf(this.world, process);
    const [first, ...others] = names.map((name) =>
      leases.subject('model', name, name === 'requests' ? REQUESTS : TOKENS, this.limits[name], this.world.nowMs),
    );
    if (first === undefined) return;
    const subjects: Subjects = [first, ...others];
    const note = (result: RateResult): void => {
      if (this.world.processes[process]?.alive !== true) return;
      if (result.kind === 'refused') {
        this.refused += 1;
        return;
      }
      this.admitted += 1;
      const window = Math.floor(this.world.nowMs / WINDOW_MS);
      this.running.push({ process, names, tokens, windows: result.windows, window });
      for (const name of names) this.#add(this.consumed, `${name} ${window}`, name === 'requests' ? 1 : tokens);
    };
    const result = leases.consume(subjects, tokens);
    if (result instanceof Promise) void result.then(note);
    else note(result);
  }

  end(index: number, spent: number): void {
    const [ended] = this.running.splice(index % Math.max(1, this.running.length), 1);
    if (ended === undefined || this.world.processes[ended.process]?.alive !== true) return;
    const { tokens, windows, window } = ended;
    leasesOf(this.world, ended.process).correct(
      windows.filter(({ subject }) => subject.unit === 'tokens'),
      tokens - spent,
    );
    for (const name of ended.names.filter((each) => each !== 'requests')) {
      this.#add(this.consumed, `${name} ${window}`, spent - tokens);
      if (spent > tokens) this.#add(this.excess, `${name} ${window}`, spent - tokens);
    }
  }

  #add(map: Map<string, number>, key: string, amount: number): void {
    map.set(key, (map.get(key) ?? 0) + amount);
  }

  expectWithinLimits(): void {
    for (const [key, consumed] of this.consumed) {
      const name = NAMES.find((each) => key.startsWith(`${each} `));
      const limit = name === undefined ? 0 : this.limits[name];
      expect(consumed).toBeLessThanOrEqual(limit + (this.excess.get(key) ?? 0));
    }
  }
}

const process = fc.nat({ max: 2 });
const steps = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant('take' as const),
        process,
        names: fc.subarray([...NAMES], { minLength: 1 }),
        tokens: fc.integer({ min: 1, max: 150 }),
      }),
    },
    {
      weight: 6,
      arbitrary: fc.record({ kind: fc.constant('end' as const), index: fc.nat(), spent: fc.nat({ max: 200 }) }),
    },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('tick' as const), process }) },
    {
      weight: 6,
      arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 150 }) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('crash' as const), process }) },
  ),
  { maxLength: 120, size: 'max' },
);

describe('limits of tokens and of requests in one check', () => {
  test('are never exceeded, except by what requests spend beyond their tokens, in any order of ends, delays and crashes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          tenant: fc.integer({ min: 0, max: 4000 }),
          user: fc.integer({ min: 0, max: 1000 }),
          key: fc.integer({ min: 0, max: 300 }),
          requests: fc.integer({ min: 0, max: 20 }),
        }),
        fc.array(fc.integer({ min: 0, max: 120 }), { minLength: 1, maxLength: 8 }),
        steps,
        async (limits, delays, all) => {
          let at = 0;
          const world = new RateWorld(3, () => delays[at++ % delays.length] ?? 0);
          const ledger = new Ledger(world, limits);
          for (const step of all) {
            if (step.kind === 'take') ledger.take(step.process, step.names, step.tokens);
            else if (step.kind === 'end') ledger.end(step.index, step.spent);
            else if (step.kind === 'tick') await world.tick(step.process);
            else if (step.kind === 'advance') await world.advance(step.ms);
            else {
              const crashed = world.processes[step.process];
              if (crashed !== undefined) crashed.alive = false;
            }
            ledger.expectWithinLimits();
          }
          await world.advance(5000);
          ledger.expectWithinLimits();
          for (const { leases, alive } of world.processes) if (alive) expect(leases.stats.waiting).toBe(0);
        },
      ),
      { numRuns: runs(300) },
    );
  });

  test('are consumed together or not at all: a limit without room leaves the others as they were', async () => {
    const ledger = new Ledger(new RateWorld(1, () => 1), { tenant: 1000, user: 1000, key: 100, requests: 2 });
    const { world } = ledger;
    for (let i = 0; i < 5; i++) ledger.take(0, ['tenant', 'key'], 60);
    await world.advance(20);
    expect([ledger.admitted, ledger.refused]).toEqual([1, 4]);
    for (let i = 0; i < 5; i++) ledger.take(0, ['tenant', 'requests'], 1);
    await world.advance(20);
    expect([ledger.admitted, ledger.refused]).toEqual([3, 7]);
    await world.advance(200);
    ledger.take(0, ['tenant'], 1000 - 60 - 2);
    ledger.take(0, ['tenant'], 1);
    await world.advance(20);
    expect([ledger.admitted, ledger.refused]).toEqual([4, 8]);
  });

  test('have room again in the same window when a request ends with fewer tokens, in another process as well', async () => {
    const ledger = new Ledger(new RateWorld(2, () => 1), { tenant: 1000, user: 0, key: 0, requests: 0 });
    const { world } = ledger;
    ledger.take(0, ['tenant'], 1000);
    await world.advance(20);
    ledger.take(1, ['tenant'], 900);
    await world.advance(20);
    expect([ledger.admitted, ledger.refused]).toEqual([1, 1]);
    ledger.end(0, 100);
    ledger.take(0, ['tenant'], 100);
    expect(ledger.admitted).toBe(2);
    for (let i = 0; i < 3; i++) {
      await world.tick(0);
      await world.advance(80);
    }
    ledger.take(1, ['tenant'], 801);
    await world.advance(20);
    expect(ledger.admitted).toBe(2);
    await world.advance(220);
    ledger.take(1, ['tenant'], 800);
    await world.advance(20);
    expect(ledger.admitted).toBe(3);
    ledger.end(1, 0);
    await world.tick(1);
    await world.advance(20);
    ledger.take(0, ['tenant'], 800);
    await world.advance(20);
    expect(ledger.admitted).toBe(4);
    ledger.expectWithinLimits();
  });

  test('count what a request spends beyond its tokens in the same window, and a long answer does not block the next', async () => {
    const ledger = new Ledger(new RateWorld(1, () => 1), { tenant: 1000, user: 0, key: 0, requests: 0 });
    const { world } = ledger;
    ledger.take(0, ['tenant'], 10);
    await world.advance(20);
    ledger.end(0, 5000);
    await world.tick(0);
    await world.advance(20);
    ledger.take(0, ['tenant'], 10);
    await world.advance(20);
    expect([ledger.admitted, ledger.refused]).toEqual([1, 1]);
    await world.advance(WINDOW_MS);
    ledger.take(0, ['tenant'], 1000);
    await world.advance(20);
    expect(ledger.admitted).toBe(2);
  });

  test('refuse a request that is larger than the whole limit at once, and a limit of 0 refuses every request', async () => {
    const world = new RateWorld(1, () => 1);
    const leases = leasesOf(world, 0);
    await world.tick(0);
    await world.advance(20);
    for (const [limit, tokens] of [
      [100, 101],
      [0, 1],
    ] as const) {
      const before = world.statements;
      const subject = leases.subject('model', 'tenant', TOKENS, limit, world.nowMs);
      expect(leases.consume([subject], tokens)).toMatchObject({ kind: 'refused', subject, state: { limit } });
      expect(world.statements).toBe(before);
      // Other requests keep their slices.
      expect(subject.lastAmount).toBe(1);
    }
  });

  test('admit the share of each process while the store is away, and what ends then is available in it', async () => {
    const ledger = new Ledger(new RateWorld(2, () => 1), { tenant: 1000, user: 0, key: 0, requests: 0 });
    const { world } = ledger;
    for (const [i] of world.processes.entries()) ledger.take(i, ['tenant'], 1);
    await world.advance(WINDOW_MS);
    world.storeUp = false;
    await world.tick(0);
    ledger.take(0, ['tenant'], 501);
    await world.advance(20);
    ledger.take(0, ['tenant'], 500);
    ledger.take(0, ['tenant'], 1);
    await world.advance(20);
    expect([ledger.admitted, ledger.refused]).toEqual([3, 2]);
    ledger.end(2, 100);
    ledger.take(0, ['tenant'], 400);
    await world.advance(20);
    expect(ledger.admitted).toBe(4);
    world.storeUp = true;
    await world.tick(0);
    await world.advance(20);
    const window = Math.floor(world.nowMs / WINDOW_MS);
    expect(world.granted.get(`tenant ${window}`)).toBe(500);
  });
});
