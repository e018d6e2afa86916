/**
 * Time of the limits of one warm check and its end, without the gate and the database: with no budget, with
 * monthly tokens alone, and with 16 budgets on a key, all of which have room in memory.
 *
 * node bench/micro/budgets.ts [keys] [rounds]; with --cpu-prof it shows where the time goes.
 */

import { compileGrant, compileTenant } from '../../src/decision/compile.ts';
import type { KeyPrincipal, TenantView } from '../../src/decision/model.ts';
import { compilePrices } from '../../src/decision/prices.ts';
import { makeId, parseTenantId } from '../../src/domain/ids.ts';
import { BUDGET_PERIODS, BUDGET_UNITS, type BudgetRecord } from '../../src/domain/records.ts';
import type { AdmissionRequest } from '../../src/metering/admission.ts';
import { Limits } from '../../src/metering/limits.ts';
import { MemoryStore } from '../../test/metering/support/memory-store.ts';
import { askOf } from '../../test/metering/support/world.ts';

const KEYS = Number(process.argv[2] ?? 100);
const ROUNDS = Number(process.argv[3] ?? 20);
const CHECKS_PER_ROUND = 20_000;
const LIMIT = 2 ** 52;

const tenantId = parseTenantId('acme');
if (tenantId === undefined) throw new Error('the name of the tenant is malformed');
const bytes = (n: number): Buffer => Buffer.from(n.toString(16).padStart(20, '0'), 'hex');
const prices = compilePrices({
  version: 1,
  prices: [{ models: '*', input: 3e9, output: 1.5e10, cachedInput: undefined, cacheWrite: undefined }],
});

function tenantWith(budgets: number, monthly: boolean): TenantView {
  if (tenantId === undefined) throw new Error('the name of the tenant is malformed');
  const records = Array.from({ length: budgets }, (_, i): BudgetRecord => {
    const unit = BUDGET_UNITS[i % BUDGET_UNITS.length] ?? 'tokens';
    const period = BUDGET_PERIODS[i % BUDGET_PERIODS.length] ?? 'month';
    return {
      ...{ id: makeId('bud', 0, bytes(i)), name: `b${i}`, unit, limit: LIMIT, period, timezone: undefined },
      ...{
        appliesTo: { tenant: true },
        per: i % 2 === 0 ? 'all' : 'key',
        models: undefined,
        action: 'block',
        epoch: 0,
      },
    };
  });
  const quotas = monthly ? { monthly_tokens: LIMIT } : {};
  return compileTenant({
    ...{ id: tenantId, status: 'active', settings: {}, quotas, roles: [], policies: [] },
    budgets: records,
  });
}

function requestsOf(tenant: TenantView): readonly AdmissionRequest[] {
  return Array.from({ length: KEYS }, (_, i) => {
    const principal: KeyPrincipal = {
      ...{ kind: 'api_key', id: makeId('key', 0, bytes(i)), tenantId: tenant.id, owner: undefined },
      ...{ grant: compileGrant([], {}), rateLimitRpm: undefined },
    };
    const parts = {
      tenant,
      principal,
      keyId: principal.id,
      model: 'gpt',
      metered: true,
      promptTokens: 250,
      askedTokens: 500,
    };
    return askOf({ ...parts, monthlyTokens: tenant.quotas.monthly_tokens });
  });
}

const subjects = [
  { name: 'no budget', tenant: tenantWith(0, false) },
  { name: 'monthly tokens', tenant: tenantWith(0, true) },
  { name: '1 budget', tenant: tenantWith(1, false) },
  { name: '16 budgets', tenant: tenantWith(16, false) },
].map(({ name, tenant }, i) => {
  const limits = new Limits({
    ...{ store: new MemoryStore(Date.now), processId: `${i}`.padStart(16, '0'), reservationKey: Buffer.alloc(16, 7) },
    ...{ windowMs: 60_000, tokenEstimate: 500, fileEstimate: 1000, reservationTtlMs: 30_000 },
    ...{ prices: () => prices, now: Date.now, monotonicMs: () => performance.now() },
  });
  return { name, limits, requests: requestsOf(tenant), checks: [] as number[], ends: [] as number[], waits: 0 };
});

type Subject = (typeof subjects)[number];

/** Checks between two ticks, which fetch what the next checks need. */
const CHUNK = 250;

/** Adds the microseconds of one check, and of its release as that of a canceled call, for each chunk. */
async function measure({ limits, requests, checks, ends }: Subject): Promise<number> {
  let waits = 0;
  for (let i = 0; i < CHECKS_PER_ROUND; i += CHUNK) {
    const ids: string[] = [];
    const began = performance.now();
    for (let j = i; j < i + CHUNK; j++) {
      const request = requests[j % KEYS];
      const decision = request && limits.admit(request);
      if (decision instanceof Promise) waits += 1;
      else if (decision?.kind === 'admitted' && decision.reservation !== undefined) ids.push(decision.reservation);
    }
    const checked = performance.now();
    for (const id of ids) limits.release(id);
    const ended = performance.now();
    checks.push((1000 * (checked - began)) / CHUNK);
    ends.push((1000 * (ended - checked)) / CHUNK);
    await limits.tick();
  }
  return waits;
}

const WARM_UP = 3;
for (let round = -WARM_UP; round < ROUNDS; round++) {
  for (const subject of subjects) {
    const waits = await measure(subject);
    if (round >= 0) subject.waits += waits;
    else subject.checks.length = subject.ends.length = 0;
  }
}
for (const { name, checks, ends, waits } of subjects) {
  const [check, end] = [checks, ends].map((values) => {
    const sorted = values.toSorted((a, b) => a - b);
    // Other work of the machine makes most chunks slower, so the fast ones show the cost.
    const at = (share: number): string => (sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN).toFixed(2);
    return `best tenth ${at(0.1)}, median ${at(0.5)}`;
  });
  console.log(
    `${name}: microseconds per check: ${check}; per release: ${end}; ${waits} of ${ROUNDS * CHECKS_PER_ROUND} waited`,
  );
}
