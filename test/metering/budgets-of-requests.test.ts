import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileGrant, compileTenant, compileTenantInSteps } from '../../src/decision/compile.ts';
import type { Principal, TenantView } from '../../src/decision/model.ts';
import { compilePrices } from '../../src/decision/prices.ts';
import { type KeyId, makeId, parseTenantId, type UserId } from '../../src/domain/ids.ts';
import type { BudgetRecord, RateLimitRule } from '../../src/domain/records.ts';
import type { AdmissionRequest } from '../../src/metering/admission.ts';
import { type Charges, readCharges } from '../../src/metering/charge-text.ts';
import { runs } from '../support/properties.ts';
import { usedOf } from './support/memory-store.ts';
import { type Process, type Running, reservedBy, TTL_MS, World } from './support/world.ts';

const PROCESSES = 3;
/** The longest interval between two contacts of a process with the store. */
const BEAT_MS = 6000;
const BOUNDED = { interruptAfterTimeLimit: 10_000 };
/** Shortly before an hour, a day and a month end. */
const START_MS = Date.UTC(2026, 10, 30, 23, 59, 56);
const NANO = 1e9;
/** About the cost of one token. */
const NANO_PER_TOKEN = 5000;

const id = <P extends 'bud' | 'key' | 'usr'>(prefix: P, n: number) => makeId(prefix, 0, Buffer.alloc(10, n));
const ACME = parseTenantId('acme') ?? expect.fail();
const USERS: readonly UserId[] = [id('usr', 1), id('usr', 2)];
const KEYS: readonly { readonly id: KeyId; readonly owner: UserId }[] = [
  { id: id('key', 1), owner: USERS[0] ?? expect.fail() },
  { id: id('key', 2), owner: USERS[0] ?? expect.fail() },
  { id: id('key', 3), owner: USERS[1] ?? expect.fail() },
];
const MODELS = ['gpt-1', 'gpt-2', 'free-1'];
const CALLERS: readonly Principal[] = KEYS.map(({ id: key, owner }) => ({
  ...{ kind: 'api_key', id: key, tenantId: ACME, grant: compileGrant([], {}), owner: { id: owner, roles: [] } },
  ...{ rateLimitRpm: undefined },
}));

const record = (n: number, parts: Partial<BudgetRecord>): BudgetRecord => ({
  id: id('bud', n),
  name: `b${n}`,
  unit: 'tokens',
  limit: 1000,
  period: 'month',
  timezone: undefined,
  appliesTo: { tenant: true },
  per: 'all',
  models: undefined,
  action: 'block',
  epoch: 0,
  ...parts,
});

function tenantWith(
  budgets: readonly BudgetRecord[],
  monthlyTokens?: number,
  rateLimits?: readonly RateLimitRule[],
): TenantView {
  return compileTenant({
    ...{ id: ACME, status: 'active', roles: [], policies: [], budgets },
    settings: rateLimits === undefined ? {} : { rate_limits: rateLimits },
    quotas: monthlyTokens === undefined ? {} : { monthly_tokens: monthlyTokens },
  });
}

const price = (version: number, factor: number) =>
  compilePrices({
    version,
    prices: [
      {
        ...{ models: 'gpt-*', input: 3 * factor * NANO, output: 7 * factor * NANO },
        ...{ cachedInput: factor * NANO, cacheWrite: 5 * factor * NANO },
      },
    ],
  });

/** The request of a key for a model, in the tenant as a process knows it. */
function requestOf(tenant: TenantView, caller: number, model: string, parts: Partial<AdmissionRequest> = {}) {
  const principal = CALLERS[caller] ?? expect.fail();
  if (principal.kind !== 'api_key') throw new Error('the callers of this test are keys');
  return {
    ...{ tenant, principal, model, metered: true, askedTokens: 10 },
    ...{ keyId: principal.id, userId: principal.owner?.id, monthlyTokens: tenant.quotas.monthly_tokens },
    ...parts,
  };
}

/** The tokens that an upstream reports. */
interface Spent {
  readonly prompt: number;
  readonly completion: number;
  readonly cached: number;
  readonly cacheWrite: number;
  readonly total: number;
}

/** The naive twin of costs. */
function costOf({ price: of }: Charges, { prompt, completion, cached, cacheWrite }: Spent): number {
  if (of === undefined) return 0;
  const sum =
    (prompt - cached - cacheWrite) * of.input +
    cached * of.cachedInput +
    cacheWrite * of.cacheWrite +
    completion * of.output;
  return Math.ceil(sum / 1e6);
}

const chargesOf = ({ charges }: Running): Charges => readCharges(charges ?? '') ?? expect.fail('malformed charges');

type Step =
  | {
      readonly kind: 'admit';
      readonly process: number;
      readonly caller: number;
      readonly model: number;
      readonly prompt: number;
      readonly amount: number;
      readonly count: number;
    }
  | {
      readonly kind: 'end';
      readonly told: readonly number[];
      readonly which: number;
      readonly share: number;
      readonly cached: number;
    }
  | { readonly kind: 'renew'; readonly process: number; readonly which: number }
  | { readonly kind: 'cancel'; readonly which: number }
  | { readonly kind: 'tick'; readonly process: number }
  | { readonly kind: 'advance'; readonly ms: number }
  | { readonly kind: 'crash'; readonly process: number }
  | { readonly kind: 'tidy'; readonly process: number }
  | { readonly kind: 'store'; readonly up: boolean }
  | { readonly kind: 'prices'; readonly factor: number }
  | { readonly kind: 'limits'; readonly process: number; readonly factor: number }
  | { readonly kind: 'zone'; readonly process: number; readonly zone: string };

/** Time zones in which other hours, days and months run, at first all the first one. */
const ZONES = ['UTC', 'Pacific/Kiritimati', 'America/New_York'] as const;

const process = fc.nat({ max: PROCESSES - 1 });
const which = fc.nat({ max: 30 });
const step = <T extends Step>(weight: number, arbitrary: fc.Arbitrary<T>): fc.WeightedArbitrary<Step> => ({
  weight,
  arbitrary,
});
const kind = <K extends Step['kind']>(name: K): fc.Arbitrary<K> => fc.constant(name);
const sound: fc.WeightedArbitrary<Step>[] = [
  step(
    9,
    fc.record({
      ...{ kind: kind('admit'), process, caller: fc.nat({ max: 2 }), model: fc.nat({ max: 2 }) },
      ...{
        prompt: fc.nat({ max: 20 }),
        amount: fc.integer({ min: 1, max: 40 }),
        count: fc.integer({ min: 1, max: 4 }),
      },
    }),
  ),
  step(
    9,
    fc.record({
      ...{ kind: kind('end'), told: fc.array(process, { minLength: 1, maxLength: 3 }), which },
      ...{ share: fc.constantFrom(0, 0.3, 0.7, 1, 1, 1.5), cached: fc.constantFrom(0, 0.5) },
    }),
  ),
  step(3, fc.record({ kind: kind('renew'), process, which })),
  step(2, fc.record({ kind: kind('cancel'), which })),
  step(4, fc.record({ kind: kind('tick'), process })),
  step(6, fc.record({ kind: kind('advance'), ms: fc.integer({ min: 1, max: 900 }) })),
  step(1, fc.record({ kind: kind('tidy'), process })),
  step(1, fc.record({ kind: kind('prices'), factor: fc.integer({ min: 1, max: 3 }) })),
  step(1, fc.record({ kind: kind('limits'), process, factor: fc.constantFrom(0.5, 1) })),
  step(1, fc.record({ kind: kind('zone'), process, zone: fc.constantFrom(...ZONES) })),
];
const crash = step(1, fc.record({ kind: kind('crash'), process }));
const outage = step(1, fc.record({ kind: kind('store'), up: fc.boolean() }));
const latencies = fc.array(fc.integer({ min: 0, max: 200 }), { minLength: 1, maxLength: 8 }).map((values) => {
  let at = 0;
  return (): number => values[at++ % values.length] ?? 0;
});

/** The limits that processes know at first; `factor` changes them later. */
interface Limits {
  /** In tokens of each budget, about. */
  readonly base: number;
  /** The budget that is much smaller than the others. */
  readonly tight: number;
}

const limitsOfWorld: fc.Arbitrary<Limits> = fc.record({
  base: fc.integer({ min: 10, max: 150 }),
  tight: fc.integer({ min: 1, max: 6 }),
});
const AMPLE = 8;
const TOKENS_PER_REQUEST = 15;

/** Six budgets whose periods end at different times. */
function budgetsOf({ base, tight }: Limits, factor: number): readonly BudgetRecord[] {
  const of = (n: number, unit = 1): number => Math.max(1, Math.floor(base * factor * unit * (n === tight ? 1 : AMPLE)));
  return [
    record(1, { unit: 'money', limit: of(1, NANO_PER_TOKEN), period: 'hour' }),
    record(2, { unit: 'tokens', limit: of(2), period: 'day', per: 'key' }),
    record(3, { unit: 'requests', limit: of(3, 1 / TOKENS_PER_REQUEST), period: 'total', per: 'user' }),
    record(4, {
      ...{ unit: 'money', limit: of(4, NANO_PER_TOKEN), period: 'week', timezone: 'Asia/Kolkata', models: ['gpt-*'] },
    }),
    record(5, { unit: 'tokens', limit: 1, period: 'month', action: 'report' }),
    record(6, { unit: 'tokens', limit: of(6), period: 'month', appliesTo: { keys: [KEYS[0]?.id ?? expect.fail()] } }),
  ];
}

/** The ends that upstreams reported. */
interface Ledger {
  readonly spent: Map<Running, Spent>;
  /** Requests that ended at a process that lives, of a process that lives. */
  readonly certain: Set<Running>;
}

function isStale(world: World, { sinceMs }: Running): boolean {
  return world.nowMs - sinceMs >= TTL_MS - BEAT_MS;
}

function bookedTokens(world: World, { reservation }: Running): number | undefined {
  const { processId = '', counter = 0 } = world.ids.read(reservation) ?? {};
  return world.store.bookedTokens(processId, counter);
}

const promptOf = (world: World, { reservation }: Running): Spent => {
  const prompt = world.ids.read(reservation)?.prompt ?? 0;
  return { prompt, completion: 0, cached: 0, cacheWrite: 0, total: prompt };
};

/** Returns the tokens that were booked for a request, by the ledger or as the estimate of a lost process. */
function bookedOf(world: World, ledger: Ledger, request: Running): Spent | undefined {
  const tokens = bookedTokens(world, request);
  if (tokens === undefined) return undefined;
  const spent = ledger.spent.get(request);
  return spent?.total === tokens ? spent : promptOf(world, request);
}

async function run(
  world: World,
  limits: Limits,
  steps: readonly Step[],
  check: (ledger: Ledger) => void,
): Promise<Ledger> {
  const ledger: Ledger = { spent: new Map(), certain: new Set() };
  const views = new Map(
    [0.5, 1].flatMap((factor) =>
      ZONES.map((zone) => [
        `${factor} ${zone}`,
        tenantWith(budgetsOf(limits, factor), limits.tight === 5 ? limits.base : AMPLE * limits.base),
      ]),
    ),
  );
  const known = Array.from({ length: PROCESSES }, (): { factor: number; zone: string } => ({
    factor: 1,
    zone: ZONES[0],
  }));
  const knownTo = (i: number) => known[i] ?? expect.fail();
  const by = new Map<Running, readonly Process[]>();
  const pick = (which: number): Running | undefined => world.running[which % Math.max(1, world.running.length)];
  world.prices = price(1, 1);
  await world.live(400);
  for (const [at, step] of steps.entries()) {
    switch (step.kind) {
      case 'admit': {
        const { factor, zone } = knownTo(step.process);
        const tenant = views.get(`${factor} ${zone}`) ?? expect.fail();
        const parts = { promptTokens: step.prompt, askedTokens: step.amount, timezone: zone };
        for (let i = 0; i < step.count; i++)
          world.admit(step.process, requestOf(tenant, step.caller, MODELS[step.model] ?? '', parts));
        break;
      }
      case 'end': {
        const request = pick(step.which);
        if (request === undefined || isStale(world, request)) break;
        const { prompt: estimate = 0 } = world.ids.read(request.reservation) ?? {};
        const tokens = Math.floor(reservedBy(world.ids.read(request.reservation)) * step.share);
        const prompt = Math.min(tokens, estimate);
        // The total differs from the prompt's estimate, which is booked for requests of lost processes.
        const completion = tokens === estimate ? tokens - prompt + 1 : tokens - prompt;
        const cached = Math.floor(prompt * step.cached);
        const cacheWrite = Math.floor((prompt - cached) * step.cached);
        const spent = { prompt, completion, cached, cacheWrite, total: prompt + completion };
        const { keyId: key, userId: user, model } = request.request;
        for (const i of step.told) world.end(i, request, { usage: { ...spent, model }, key, user, model });
        ledger.spent.set(request, spent);
        by.set(
          request,
          step.told.flatMap((i) => world.processes[i] ?? []),
        );
        world.running.splice(world.running.indexOf(request), 1);
        break;
      }
      case 'renew': {
        const request = pick(step.which);
        if (request === undefined) break;
        world.renew(step.process, request);
        if (world.processes[step.process] === request.process && !isStale(world, request))
          request.sinceMs = world.nowMs;
        break;
      }
      case 'cancel': {
        const [request] = world.running.splice(step.which % Math.max(1, world.running.length), 1);
        if (request?.process?.alive === true) request.process.limits.release(request.reservation);
        break;
      }
      case 'tick':
        void world.processes[step.process]?.limits.tick();
        break;
      case 'advance':
        await world.live(step.ms);
        break;
      case 'crash':
        world.crash(step.process);
        break;
      case 'tidy':
        void world.processes[step.process]?.limits.tidy();
        break;
      case 'store':
        world.storeUp = step.up;
        break;
      case 'prices':
        world.prices = price(at + 2, step.factor);
        break;
      case 'limits':
        knownTo(step.process).factor = step.factor;
        break;
      case 'zone':
        knownTo(step.process).zone = step.zone;
        break;
      default:
        step satisfies never;
    }
    await world.advance(0);
    check(ledger);
  }
  for (const [request, tellers] of by) {
    if (request.process?.alive === true && tellers.some(({ alive }) => alive)) ledger.certain.add(request);
  }
  return ledger;
}

/** The amounts of one counter by the ledger. */
interface Sums {
  /** Spent, and what young requests may still spend. */
  committed: number;
  /** The amounts beyond their estimates. */
  excess: number;
  spent: number;
}

/** Adds up the ledger for each counter. */
function sumsOf(world: World, ledger: Ledger): Map<string, Sums> {
  const sums = new Map<string, Sums>();
  const add = (name: string, amounts: Partial<Sums>): void => {
    const { committed = 0, excess = 0, spent = 0 } = sums.get(name) ?? {};
    sums.set(name, {
      committed: committed + (amounts.committed ?? 0),
      excess: excess + (amounts.excess ?? 0),
      spent: spent + (amounts.spent ?? 0),
    });
  };
  for (const request of world.admitted) {
    const charges = chargesOf(request);
    const booked = bookedOf(world, ledger, request);
    const { prompt = 0, answer = 0 } = world.ids.read(request.reservation) ?? {};
    const reserved = { prompt, completion: answer, cached: 0, cacheWrite: 0, total: prompt + answer };
    const isYoung = world.nowMs - request.sinceMs < TTL_MS - BEAT_MS;
    const mayRun = isYoung && (world.running.includes(request) || ledger.spent.has(request));
    for (const { unit, period } of charges.charges) {
      const amountOf = (spent: Spent): number =>
        unit === 'tokens' ? spent.total : unit === 'money' ? costOf(charges, spent) : 1;
      const estimate = amountOf(reserved);
      if (booked === undefined) {
        if (mayRun) add(period, { committed: estimate });
      } else {
        const spent = amountOf(booked);
        add(period, { committed: spent, spent, excess: Math.max(0, spent - estimate) });
      }
    }
  }
  return sums;
}

describe('the budgets of requests', () => {
  const limitOf = (limits: Limits, period: string): number =>
    budgetsOf(limits, 1).find(({ id: budget, action }) => action === 'block' && period.startsWith(budget))?.limit ??
    Number.POSITIVE_INFINITY;

  test('are never exceeded beyond the estimates, for any order of requests, ends, delays, crashes, prices, limits, periods and time zones of the tenant', async () => {
    await fc.assert(
      fc.asyncProperty(
        limitsOfWorld,
        latencies,
        fc.array(fc.oneof(...sound, crash, outage), { minLength: 15, maxLength: 90, size: 'max' }),
        async (limits, latency, steps) => {
          const world = new World(PROCESSES, latency, [], undefined, START_MS);
          await run(world, limits, steps, (ledger) => {
            for (const [period, { committed, excess }] of sumsOf(world, ledger))
              expect(committed, period).toBeLessThanOrEqual(limitOf(limits, period) + excess);
          });
        },
      ),
      { ...BOUNDED, numRuns: runs(200) },
    );
  });

  test('agree with the ledger by tenant, key, user, model and budget, in money, tokens and requests, and nothing stays held', async () => {
    await fc.assert(
      fc.asyncProperty(
        limitsOfWorld,
        latencies,
        fc.array(fc.oneof(...sound, crash, outage), { minLength: 15, maxLength: 90, size: 'max' }),
        async (limits, latency, steps) => {
          const world = new World(PROCESSES, latency, [], undefined, START_MS);
          const ledger = await run(world, limits, steps, () => undefined);
          world.storeUp = true;
          await world.live(2 * TTL_MS + 15_000, 500);
          for (const { limits } of world.processes) void limits.tidy();
          await world.live(2000, 500);
          const { store } = world;
          for (const { limits } of world.processes) {
            const none = { held: 0, reserved: 0 };
            expect(limits.stats.budgets).toMatchObject({
              ...{ waiting: 0, outstanding: 0, ...none, money: none, requests: none },
            });
          }
          for (const request of ledger.certain) expect(bookedTokens(world, request)).toBeDefined();
          const counters = new Map([...store.budgets].map(([name, row]) => [name.slice('acme '.length), row]));
          for (const [period, { spent }] of sumsOf(world, ledger)) {
            expect(counters.get(period)?.spent ?? 0, period).toBe(spent);
            const row = counters.get(period);
            if (row !== undefined) expect(usedOf(row)).toBe(row.spent);
          }
          const booked = new Map<string, { requests: number; tokens: number; cost: number }>();
          for (const request of world.admitted) {
            const spent = bookedOf(world, ledger, request);
            if (spent === undefined) continue;
            const { keyId, userId } = request.request;
            for (const name of ['tenant acme', `key acme ${keyId}`, `user acme ${userId}`]) {
              const { requests, tokens, cost } = booked.get(name) ?? { requests: 0, tokens: 0, cost: 0 };
              const of = costOf(chargesOf(request), spent);
              booked.set(name, { requests: requests + 1, tokens: tokens + spent.total, cost: cost + of });
            }
          }
          for (const [name, sums] of booked) expect(store.booked.get(name), name).toEqual(sums);
        },
      ),
      { ...BOUNDED, numRuns: runs(200) },
    );
  });
});

test('the budgets of a tenant are compiled one in each step, so that requests run between them', () => {
  const stepsFor = (count: number): number => {
    const budgets = Array.from({ length: count }, (_, n) => record(n % 256, { name: `b${n}` }));
    const compiling = compileTenantInSteps({
      id: ACME,
      status: 'active',
      settings: {},
      quotas: {},
      roles: [],
      policies: [],
      budgets,
    });
    let steps = 0;
    while (compiling.next().done !== true) steps++;
    return steps;
  };
  expect(stepsFor(1000) - stepsFor(0)).toBe(1000);
});
