/**
 * The budgets of requests, compiled once for each caller and model, so that a check makes no text and looks nothing up.
 *
 * A plan is valid while the caller, the tenant's rules and the prices are the same objects, and until the first of its
 * periods ends. The plans of a tenant's rules are garbage together with these rules.
 */

import { createHash } from 'node:crypto';
import { budgetCallerOf, budgetsOf, shareOf } from '../decision/budgets.ts';
import type { Principal, TenantView } from '../decision/model.ts';
import { type ModelRate, modelRatesOf } from '../decision/model-rates.ts';
import type { PriceTable } from '../decision/prices.ts';
import { Fault } from '../domain/errors.ts';
import type { Account } from './account.ts';
import type { AdmissionRequest } from './admission.ts';
import type { BudgetKey, PeriodBudget } from './budget.ts';
import { counterName, type Period, periodAt } from './budget-periods.ts';
import { type Charges, chargeText, MAX_CHARGES } from './charge-text.ts';
import type { Hold } from './hold.ts';
import type { Charge } from './ports.ts';
import { type PlannedRate, plannedRate } from './rate-plans.ts';

export interface RequestPlan extends Charges {
  /** In the order in which they refuse: places, the tenant's monthly tokens, then budgets by name. */
  readonly holds: readonly Hold[];
  /** The limits by model per minute. */
  readonly rates: readonly PlannedRate[];
  /** The budgets of `holds`. */
  readonly accounts: readonly Account[];
  /** Undefined: there is nothing to carry. */
  readonly text: string | undefined;
  /** The time in which the plan is valid, milliseconds since the epoch. */
  readonly startsMs: number;
  readonly endsMs: number;
}

interface RequestPlansParts {
  readonly prices: () => PriceTable;
  readonly find: (key: BudgetKey) => PeriodBudget;
  /** The largest weight of all plans. A plan weighs 1, and 1 more for each counter. Default: 400,000. */
  readonly maxWeight?: number;
}

/** The largest number of models of one caller whose plans are kept. */
const MAX_MODELS = 64;
/** Some 200 MB. */
const MAX_WEIGHT = 400_000;

type PlansOfCaller = Map<string | undefined, RequestPlan>;

interface PlansOfTenant {
  readonly prices: PriceTable;
  readonly callers: WeakMap<Principal, PlansOfCaller>;
}

export class RequestPlans {
  readonly #parts: RequestPlansParts;
  readonly #maxWeight: number;
  #tenants = new WeakMap<TenantView, PlansOfTenant>();
  /** The weight of the plans that were kept since all were dropped, including those that are garbage. */
  #weight = 0;

  constructor(parts: RequestPlansParts) {
    this.#parts = parts;
    this.#maxWeight = parts.maxWeight ?? MAX_WEIGHT;
  }

  /** Throws a Fault if too many budgets are in use, and if more count the request than its end can be booked to. */
  of(request: AdmissionRequest, nowMs: number): RequestPlan {
    const { model } = request;
    const known = this.#plansOf(request).get(model);
    if (known !== undefined && nowMs >= known.startsMs && nowMs < known.endsMs && isCurrent(known)) return known;
    const plan = this.#compile(request, nowMs);
    this.#makeRoom(plan);
    const plans = this.#plansOf(request);
    if (known === undefined && plans.size >= MAX_MODELS) plans.clear();
    plans.set(model, plan);
    return plan;
  }

  /**
   * Drops all plans if this one does not fit. Callers choose the names of models, and a tenant the number of its keys.
   */
  #makeRoom({ charges, holds }: RequestPlan): void {
    this.#weight += 1 + charges.length + holds.length;
    if (this.#weight <= this.#maxWeight) return;
    this.#tenants = new WeakMap();
    this.#weight = 1 + charges.length + holds.length;
  }

  #plansOf({ tenant, principal }: AdmissionRequest): PlansOfCaller {
    const prices = this.#parts.prices();
    let ofTenant = this.#tenants.get(tenant);
    if (ofTenant === undefined || ofTenant.prices !== prices) {
      ofTenant = { prices, callers: new WeakMap() };
      this.#tenants.set(tenant, ofTenant);
    }
    let plans = ofTenant.callers.get(principal);
    if (plans === undefined) {
      plans = new Map();
      ofTenant.callers.set(principal, plans);
    }
    return plans;
  }

  #compile(request: AdmissionRequest, nowMs: number): RequestPlan {
    const { tenant, tenantId, principal, model, monthlyTokens, timezone } = request;
    const holds: Hold[] = [];
    const periods: Period[] = [];
    const charges: Charge[] = [];
    const rates: PlannedRate[] = [];
    for (const rate of modelRatesOf(tenant, principal, model)) {
      if (rate.dimension !== 'parallel') {
        rates.push(plannedRate(rate));
        continue;
      }
      const key = {
        tenant: tenantId,
        period: placesOf(rate),
        unit: 'places',
        endsMs: Number.POSITIVE_INFINITY,
      } as const;
      holds.push({ budget: this.#parts.find(key), limit: rate.limit, cause: { kind: 'parallel', rate } });
    }
    if (monthlyTokens !== undefined) {
      const period = periodAt('month', timezone, nowMs);
      periods.push(period);
      const key = { tenant: tenantId, period: period.name, unit: 'tokens', endsMs: endOf(period) } as const;
      holds.push({ budget: this.#parts.find(key), limit: monthlyTokens, cause: { kind: 'month' } });
    }
    const caller = budgetCallerOf(principal);
    for (const record of tenant.budgets === undefined ? [] : budgetsOf(tenant.budgets, caller)) {
      if (!record.counts(model)) continue;
      const { unit, limit, action } = record;
      const period = periodAt(record.period, record.timezone ?? timezone, nowMs);
      const charge = { unit, period: counterName(record, shareOf(record, caller), period) };
      periods.push(period);
      charges.push(charge);
      if (action === 'report') continue;
      const budget = this.#parts.find({ ...charge, tenant: tenantId, endsMs: endOf(period) });
      holds.push({ budget, limit, cause: { kind: 'budget', record } });
    }
    if (charges.length > MAX_CHARGES) throw new Fault(`more than ${MAX_CHARGES} budgets count one request`);
    const price = model === undefined ? undefined : this.#parts.prices().of(model);
    return {
      ...{ price, charges, holds, rates },
      accounts: holds.map(({ budget }) => budget),
      text: chargeText({ price, charges }),
      startsMs: Math.max(
        ...periods.map(({ startsMs = Number.NEGATIVE_INFINITY }) => startsMs),
        Number.NEGATIVE_INFINITY,
      ),
      endsMs: Math.min(...periods.map(endOf), Number.POSITIVE_INFINITY),
    };
  }
}

/** Reports whether all budgets of the plan are still in use. */
function isCurrent({ holds }: RequestPlan): boolean {
  for (const { budget } of holds) if (budget.forgotten) return false;
  return true;
}

function endOf({ endsMs = Number.POSITIVE_INFINITY }: Period): number {
  return endsMs;
}

/** Names the places of a limit. The globs of a rule are many, so the name has a digest of them. */
export function placesOf({ id, models }: ModelRate): string {
  return `parallel ${id} ${createHash('sha256').update(JSON.stringify(models)).digest('hex').slice(0, 32)}`;
}
