/**
 * The time for which a scrape of `/metrics` holds the event loop of a gate with 200,000 token budgets, and the longest
 * step of their review.
 *
 * node bench/micro/scrape.ts [budgets]
 */

import { Budgets } from '../../src/metering/budgets.ts';
import type { HoldBatch, HoldGrant, HoldRequest } from '../../src/metering/ports.ts';
import { newCounts } from '../../src/telemetry/metering-counts.ts';
import { watchMetering } from '../../src/telemetry/metering-metrics.ts';
import { watchQuotas } from '../../src/telemetry/state-metrics.ts';
import { createTelemetry } from '../../src/telemetry/telemetry.ts';

const BUDGETS = Number(process.argv[2] ?? 200_000);
const SCRAPES = 50;
const QUOTA = 1_000_000;
const MONTH_ENDS_MS = Date.UTC(2100, 0);
const TICK_MS = 100;

const spentOf = (tenant: string): number => (Number(tenant.slice('tenant-'.length)) * 7919) % (QUOTA / 2);

/** Grants everything. */
function grant({ tenant, requested, changes, confirmed }: HoldRequest): HoldGrant {
  const held = (holds.get(tenant) ?? 0) + requested + changes - confirmed;
  holds.set(tenant, held);
  return { granted: requested, held, used: spentOf(tenant) + held, spent: spentOf(tenant) };
}
const holds = new Map<string, number>();

let nowMs = 0;
const budgets = new Budgets({
  store: {
    hold: async ({ requests }: HoldBatch) => ({
      grants: requests.map(grant),
      settlements: [],
      renewals: [],
      processes: 1,
    }),
  },
  processId: 'benchmark',
  reservationTtlMs: 3_600_000,
  holdTtlMs: 3_600_000,
  monotonicMs: () => nowMs,
  nowMs: () => Date.now(),
  maxBudgets: BUDGETS,
  maxReservations: BUDGETS,
  counts: newCounts(),
});

const tick = async (): Promise<number> => {
  nowMs += TICK_MS;
  const beganMs = performance.now();
  const answered = budgets.tick();
  const tookMs = performance.now() - beganMs;
  await answered;
  return tookMs;
};
const waiting: unknown[] = [];
for (let i = 0; i < BUDGETS; i++) {
  const key = { tenant: `tenant-${i}`, period: '2099-12', unit: 'tokens', endsMs: MONTH_ENDS_MS } as const;
  const budget = budgets.find(key);
  const holds = [{ budget, limit: QUOTA, cause: { kind: 'month' } as const }];
  waiting.push(budgets.reserve({ holds, accounts: [budget], counter: i, tokens: 10, money: 1 }));
  if (i % 1000 === 0) await tick();
}
await Promise.all(waiting);

const stepsMs: number[] = [];
for (let i = 0; i < (3 * BUDGETS) / 2000 + 10; i++) stepsMs.push(await tick());

const { metrics } = createTelemetry({ level: 'silent' });
const { stats } = budgets;
const rest = { ...newCounts(), settlementsWaiting: 0, changesWaiting: 0, unreported: 0 };
const rates = { subjects: 0, held: 0, waiting: 0, isOffline: false };
watchMetering(metrics, () => ({ ...rest, rates, budgets: budgets.stats }));
watchQuotas(metrics, true, () => budgets.quotas);
for (let i = 0; i < SCRAPES; i++) await metrics.exposition();
const scrapesMs: number[] = [];
for (let i = 0; i < SCRAPES; i++) {
  const beganMs = performance.now();
  await metrics.exposition();
  scrapesMs.push(performance.now() - beganMs);
}
const quantile = (values: readonly number[], q: number): string =>
  (values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(q * values.length))] ?? Number.NaN).toFixed(
    1,
  );
console.log(
  `${stats.budgets} budgets: a scrape takes ${quantile(scrapesMs, 0.5)} ms (median), ${quantile(scrapesMs, 1)} ms (longest); ` +
    `a step of the review ${quantile(stepsMs, 0.5)} ms, ${quantile(stepsMs, 1)} ms`,
);
