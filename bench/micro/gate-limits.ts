/**
 * Processor time of one warm check with limits, without the network and without a database: a caller without budgets
 * beside one that 16 budgets count and that has 8 limits by model. A reservation ends outside of the measured time.
 *
 * node bench/micro/gate-limits.ts [keys] [tenants] [rounds]; with --cpu-prof it shows where the time goes.
 */

import { hash } from 'node:crypto';
import { CredentialCache } from '../../src/credential-cache/credential-cache.ts';
import type { CacheLoader } from '../../src/credential-cache/ports.ts';
import { compilePrices } from '../../src/decision/prices.ts';
import { buildRouteTable } from '../../src/decision/routes.ts';
import { makeId } from '../../src/domain/ids.ts';
import type { BudgetRecord, RateLimitRule } from '../../src/domain/records.ts';
import { type CheckHandler, createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { limiterOver } from '../../src/extauthz/limiter.ts';
import { Limits } from '../../src/metering/limits.ts';
import { createTelemetry } from '../../src/telemetry/telemetry.ts';
import { MemoryStore } from '../../test/metering/support/memory-store.ts';
import { builtinRoles } from '../../test/support/builtin-roles.ts';
import { chatBody, encodeFrame } from '../frames.ts';
import { keyText } from '../population.ts';
import { memorySource, withoutTokens } from './memory-source.ts';

const KEYS = Number(process.argv[2] ?? 10_000);
const TENANTS = Number(process.argv[3] ?? 100);
const ROUNDS = Number(process.argv[4] ?? 40);
/** So many checks are measured at once; then their reservations end. */
const CHECKS_PER_ROUND = 2000;
const MOST = 1.15;
const MODEL = 'llama-3-8b';
const HUGE = 8_000_000_000_000_000;

const built = buildRouteTable([]);
if (built.kind === 'error') throw new Error(built.message);
const { table: routes } = built;
const numbers = Array.from({ length: KEYS }, (_, index) => index);
const indexOf = new Map(numbers.map((index) => [hash('sha256', keyText(index), 'hex'), index]));
const prices = compilePrices({
  version: 1,
  prices: [
    { models: 'llama-*', input: 200_000_000, output: 600_000_000, cachedInput: undefined, cacheWrite: undefined },
  ],
});

const UNITS = ['money', 'tokens', 'requests'] as const;
const PERIODS = ['hour', 'day', 'week', 'month', 'total'] as const;

/** Half of them are shared by the tenant, and half are each key's own. */
function budget(index: number): BudgetRecord {
  return {
    id: makeId('bud', 0, Buffer.alloc(10, index)),
    name: `budget-${index}`,
    unit: UNITS[index % UNITS.length] ?? 'tokens',
    limit: HUGE,
    period: PERIODS[index % PERIODS.length] ?? 'month',
    timezone: undefined,
    appliesTo: { tenant: true },
    per: index % 2 === 0 ? 'all' : 'key',
    models: index % 4 === 0 ? ['llama-*'] : undefined,
    action: 'block',
    epoch: 0,
  };
}

const RATES: readonly RateLimitRule[] = ['llama-3-8b', 'llama-3-*', 'llama-*', '*', 'a-*', 'b-*', 'c-*', 'd-*'].map(
  (glob) => ({
    models: [glob],
    requests_per_minute: 50_000_000,
    tokens_per_minute: 2_000_000_000,
    parallel: 1_000_000,
  }),
);

/** The same keys and tenants, with these budgets and limits by model. */
function sourceWith(budgets: readonly BudgetRecord[], rates: readonly RateLimitRule[]): CacheLoader {
  const source = memorySource(indexOf, TENANTS);
  return {
    ...source,
    key: async (digest, known) => {
      const loaded = await source.key(digest, known);
      return loaded.value === undefined ? loaded : { ...loaded, value: { ...loaded.value, rateLimits: rates } };
    },
    tenant: async (id) => {
      const { value, asOf } = await source.tenant(id);
      if (value === undefined) return { value, asOf };
      return {
        asOf,
        value: (function* () {
          return { ...(yield* value), budgets };
        })(),
      };
    },
  };
}

const reservations: string[] = [];
const telemetry = createTelemetry({ level: 'warn' });

interface Subject {
  readonly name: string;
  readonly check: CheckHandler;
  readonly limits: Limits;
  readonly costs: number[];
}

function subject(name: string, budgets: readonly BudgetRecord[], rates: readonly RateLimitRule[]): Subject {
  const limits = new Limits({
    store: new MemoryStore(Date.now),
    processId: '00000000000000aa',
    reservationKey: Buffer.alloc(16, 7),
    windowMs: 86_400_000,
    tokenEstimate: 1024,
    fileEstimate: 1000,
    reservationTtlMs: 3_600_000,
    prices: () => prices,
    now: Date.now,
    monotonicMs: () => performance.now(),
  });
  const resolver = new CredentialCache({
    builtinRoles,
    source: sourceWith(budgets, rates),
    ...withoutTokens,
    feed: { polledAtMs: Number.POSITIVE_INFINITY, catchUp: async () => {} },
    maxCredentials: 2 * KEYS,
    maxStalenessMs: 300_000,
    monotonicMs: () => performance.now(),
  });
  const limiter = limiterOver(limits);
  const check = createCheckHandler({
    routes,
    resolver,
    limiter: {
      admit(allow, ...times) {
        const decision = limiter.admit(allow, ...times);
        if (!(decision instanceof Promise) && decision.kind === 'admitted' && decision.reservation !== undefined)
          reservations.push(decision.reservation);
        return decision;
      },
      release: (reservation) => limiter.release(reservation),
    },
    observer: telemetry.observer,
    trustedHops: 0,
    forwardCredential: false,
  });
  return { name, check, limits, costs: [] };
}

const budgets = Array.from({ length: 16 }, (_, index) => budget(index));
const subjects = [
  subject('no budget', [], []),
  subject('1 budget', budgets.slice(0, 1), []),
  subject('16 budgets', budgets, []),
  subject('8 limits by model', [], RATES),
  subject('16 budgets and 8 limits by model', budgets, RATES),
];

const body = chatBody(MODEL);
/** A stride that shares no factor with the number of keys, so that neighbours in time are not neighbours in memory. */
const STRIDE = 7919;
const frames = numbers.map((index) =>
  encodeFrame({
    method: 'POST',
    path: '/v1/chat/completions',
    authorization: `Bearer ${keyText((index * STRIDE) % KEYS)}`,
    body,
  }),
);

/** Returns the microseconds of processor time for a check. Checks that wait for the store do not count. */
async function costOf({ check, limits }: Subject, from: number): Promise<number> {
  const waiting: Promise<Buffer>[] = [];
  const began = process.cpuUsage();
  for (let i = 0; i < CHECKS_PER_ROUND; i++) {
    const frame = frames[(from + i) % frames.length];
    const answer = frame === undefined ? undefined : check(frame);
    if (answer instanceof Promise) waiting.push(answer);
  }
  const { user, system } = process.cpuUsage(began);
  await Promise.all(waiting);
  for (const reservation of reservations.splice(0)) limits.release(reservation);
  await limits.tick();
  telemetry.recent.take();
  return waiting.length > 0 ? Number.NaN : (user + system) / CHECKS_PER_ROUND;
}

for (const each of subjects) {
  for (let i = 0; i < 3 * (KEYS / CHECKS_PER_ROUND) + 5; i++) await costOf(each, i * CHECKS_PER_ROUND);
  const answer = await each.check(frames[0] ?? Buffer.alloc(0));
  console.log(`${each.name}: answer of ${answer.length} bytes`);
}
for (let round = 0; round < ROUNDS; round++)
  for (const each of subjects) each.costs.push(await costOf(each, round * CHECKS_PER_ROUND));

const at = (values: readonly number[], share: number): number =>
  values.toSorted((left, right) => left - right)[Math.floor(share * (values.length - 1))] ?? Number.NaN;
const plain = subjects[0]?.costs ?? [];
for (const { name, costs } of subjects) {
  const whole = costs.filter((cost) => !Number.isNaN(cost));
  const ratios = costs.map((cost, i) => cost / (plain[i] ?? Number.NaN)).filter((ratio) => !Number.isNaN(ratio));
  const [best, median] = [0, 0.5].map((share) => at(whole, share).toFixed(2));
  const ratio = at(ratios, 0.5);
  console.log(
    `${name}: microseconds of processor time per check: best ${best}, median ${median} of ${whole.length} rounds; ${ratio.toFixed(3)} of without`,
  );
  if (ratio > MOST) process.exitCode = 1;
}
process.exit();
