/**
 * Compares a request with the limits in the database, and with the budgets that count it, for steps 16 and 17 of an
 * explanation. It only reads.
 *
 * Gates lease parts of rates and budgets in advance. So `used` of a rate includes leased and unused requests, and
 * `reserved` of tokens includes leased tokens. The decision of a gate may differ by these amounts.
 */

import { budgetCallerOf, budgetsOf } from '../../decision/budgets.ts';
import type { ExplainedBudget, ExplainedLimit } from '../../decision/explain-steps.ts';
import type { Allow, Identity, TenantView } from '../../decision/model.ts';
import { allModelRates, modelRatesOf } from '../../decision/model-rates.ts';
import { costOf } from '../../decision/prices.ts';
import type { RouteMatch } from '../../decision/routes.ts';
import type { BudgetUnit } from '../../domain/records.ts';
import { reservationAmount } from '../../metering/admission.ts';
import { shownOf } from '../budgets/entity.ts';
import { instantOf, type SpentBudget, spentOf } from '../budgets/state.ts';
import { type LimitsState, readLimits, usedOf } from '../usage/limit-queries.ts';
import type { MeteringParts } from '../usage/parts.ts';
import { momentOf } from '../usage/period.ts';
import type { ExplainParts } from './resolve.ts';

/** Returns the limits that apply to an allowed request. */
type LimitCheck = (allow: Allow) => readonly ExplainedLimit[];

/**
 * Reads the current state of the limits. The instant of the decision does not matter.
 * @param nowMs the clock, in milliseconds since the epoch
 * @returns undefined if an earlier step ends the decision: no route matches or no principal is proved
 */
export async function limitCheck(
  { db, metering }: Pick<ExplainParts, 'db' | 'metering'>,
  match: RouteMatch,
  identity: Identity,
  tenant: TenantView | undefined,
  nowMs: number,
): Promise<LimitCheck | undefined> {
  if (match.kind !== 'matched' || identity.kind !== 'proved' || tenant === undefined) return undefined;
  const { principal } = identity;
  const { period, periodEndsMs } = momentOf(tenant.settings.timezone, nowMs);
  const key = principal.kind === 'api_key' ? principal.id : undefined;
  const rates = allModelRates(tenant, principal);
  const state = await readLimits(db.knex, { tenant: tenant.id, period, key, rates }, metering.windowMs);
  return (allow) => [
    ...ratesOf(allow, state),
    ...modelRates(allow, state, metering),
    tokensOf(allow, state, metering, periodEndsMs),
    collectionsOf(allow, state),
  ];
}

interface Counted {
  readonly limit: number | undefined;
  readonly used: number;
  readonly needed: number;
  readonly applies: boolean;
}

type State = Pick<ExplainedLimit, 'applies' | 'limit' | 'used' | 'remaining' | 'needed' | 'exceeded'>;

function stateOf({ limit, used, needed, applies }: Counted): State {
  if (limit === undefined) return { applies, limit: null, used, remaining: null, needed, exceeded: false };
  const remaining = Math.max(0, limit - used);
  return { applies, limit, used, remaining, needed, exceeded: applies && needed > remaining };
}

function ratesOf({ tenant, principal }: Allow, state: LimitsState): readonly ExplainedLimit[] {
  const rate = (of: ExplainedLimit['of'], limit: number | undefined, used: number): ExplainedLimit => ({
    name: 'rate_limit_rpm',
    of,
    line: 16,
    // Requests without a rate limit are not counted.
    ...stateOf({ limit, used, needed: 1, applies: limit !== undefined }),
    reserved: null,
    resets_at: limit === undefined ? null : new Date(state.windowEndsMs).toISOString(),
  });
  const ofTenant = rate('tenant', tenant.settings.rate_limit_rpm, state.granted);
  return principal.kind === 'api_key'
    ? [ofTenant, rate('api_key', principal.rateLimitRpm, state.keyGranted)]
    : [ofTenant];
}

const OF = { tenant: 'tenant', user: 'user', key: 'api_key' } as const;

/** The limits by model that count the request. */
function modelRates(allow: Allow, state: LimitsState, estimates: MeteringParts['metering']): readonly ExplainedLimit[] {
  const { tenant, principal, route, model, defaultModel } = allow;
  if (!route.tokens && !route.reportsUsage) return [];
  return modelRatesOf(tenant, principal, model ?? defaultModel).map((rate): ExplainedLimit => {
    const { level, dimension, models, limit } = rate;
    const needed = dimension === 'tokens_per_minute' ? Math.max(1, neededTokens(allow, estimates)) : 1;
    return {
      name: dimension,
      of: OF[level],
      models,
      line: 16,
      ...stateOf({ limit, used: usedOf(state, rate), needed, applies: true }),
      reserved: null,
      resets_at: dimension === 'parallel' ? null : new Date(state.windowEndsMs).toISOString(),
    };
  });
}

function neededTokens({ tenant, route, ...asked }: Allow, estimates: MeteringParts['metering']): number {
  if (!route.tokens) return 0;
  const { prompt, answer } = reservationAmount(
    { ...asked, maxTokensPerRequest: tenant.settings.max_tokens_per_request },
    estimates,
  );
  return prompt + answer;
}

function tokensOf(
  allow: Allow,
  state: LimitsState,
  estimates: MeteringParts['metering'],
  periodEndsMs: number,
): ExplainedLimit {
  const { tenant, route } = allow;
  const applies = route.tokens || route.reportsUsage;
  const needed = applies ? Math.max(1, neededTokens(allow, estimates)) : 0;
  return {
    name: 'monthly_tokens',
    of: 'tenant',
    line: 17,
    ...stateOf({ limit: tenant.quotas.monthly_tokens, used: state.spent, needed, applies }),
    reserved: state.held,
    resets_at: new Date(periodEndsMs).toISOString(),
  };
}

function collectionsOf({ tenant, route }: Allow, state: LimitsState): ExplainedLimit {
  const applies = route.counts === 'adds-collection';
  const { collections: used, collectionsReserved: reserved } = state;
  const counted = stateOf({ limit: tenant.quotas.max_collections, used, needed: applies ? 1 : 0, applies });
  const full = counted.remaining !== null && counted.remaining - reserved < 1;
  return {
    name: 'max_collections',
    of: 'tenant',
    line: 17,
    ...counted,
    exceeded: applies && full,
    reserved,
    resets_at: null,
  };
}

/** Returns the budgets that count an allowed request, by name. */
type BudgetCheck = (allow: Allow) => readonly ExplainedBudget[];

/** @returns undefined as `limitCheck`, and if the tenant has no budgets */
export async function budgetCheck(
  { db, metering, priceTable }: Pick<ExplainParts, 'db' | 'metering' | 'priceTable'>,
  match: RouteMatch,
  identity: Identity,
  tenant: TenantView | undefined,
  nowMs: number,
): Promise<BudgetCheck | undefined> {
  if (match.kind !== 'matched' || identity.kind !== 'proved' || tenant?.budgets === undefined) return undefined;
  const caller = budgetCallerOf(identity.principal);
  const { roles, budgets: index } = tenant;
  const budgets = budgetsOf(index, caller);
  const zone = { id: tenant.id, timezone: tenant.settings.timezone };
  const states = await spentOf(db.knex, zone, budgets, caller, nowMs);
  return (allow) => {
    const { route, model = allow.defaultModel } = allow;
    if (!(route.tokens || route.reportsUsage)) return [];
    const needed = amountsOf(allow, model, { metering, priceTable });
    // A proposal may delete roles of the caller.
    const left = caller.roles.filter((role) => !roles.has(role) || allow.tenant.roles.has(role));
    const counting = budgetsOf(index, { ...caller, roles: left }).filter(({ counts }) => counts(model));
    const ids = new Set(counting.map(({ id }) => id));
    return states
      .filter(({ budget: { id } }) => ids.has(id))
      .map((state) => explained(state, needed[state.budget.unit]));
  };
}

/** Returns the amounts that the request sets aside. One unit, so that an exhausted budget blocks each request. */
function amountsOf(
  { route, tenant, ...asked }: Allow,
  model: string | undefined,
  { metering, priceTable }: Pick<ExplainParts, 'metering' | 'priceTable'>,
): Readonly<Record<BudgetUnit, number>> {
  if (!route.tokens) return { money: 1, tokens: 1, requests: 1 };
  const { prompt, answer } = reservationAmount(
    { ...asked, maxTokensPerRequest: tenant.settings.max_tokens_per_request },
    metering,
  );
  const price = model === undefined ? undefined : priceTable().of(model);
  const money = price === undefined ? 1 : Math.max(1, costOf(price, { prompt, completion: answer }));
  return { money, tokens: prompt + answer, requests: 1 };
}

function explained({ budget, share, spent, held, endsMs }: SpentBudget, needed: number): ExplainedBudget {
  const { id, name, unit, period, action, limit } = budget;
  return {
    ...{ id, name, unit, period, action },
    caller: share === '' ? null : share,
    limit: shownOf(unit, limit),
    spent: shownOf(unit, spent),
    reserved: shownOf(unit, held),
    needed: shownOf(unit, needed),
    resets_at: instantOf(endsMs),
    exceeded: needed > limit - spent,
  };
}
