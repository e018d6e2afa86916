/** Compares a request with the budgets that count it, for step 17 of an explanation. It only reads. See limits.ts. */

import { budgetCallerOf, budgetsOf } from '../../decision/budgets.ts';
import type { ExplainedBudget } from '../../decision/explain-steps.ts';
import type { Allow, Identity, TenantView } from '../../decision/model.ts';
import { costOf } from '../../decision/prices.ts';
import type { RouteMatch } from '../../decision/routes.ts';
import type { BudgetUnit } from '../../domain/records.ts';
import { reservationAmount } from '../../metering/admission.ts';
import { shownOf } from '../budgets/entity.ts';
import { instantOf, type SpentBudget, spentOf } from '../budgets/state.ts';
import type { ExplainParts } from './resolve.ts';

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
  const budgets = budgetsOf(tenant.budgets, caller);
  const counts = new Map(budgets.map((budget) => [budget.id, budget.counts]));
  const zone = { id: tenant.id, timezone: tenant.settings.timezone };
  const states = await spentOf(db.knex, zone, budgets, caller, nowMs);
  return (allow) => {
    const { route, model = allow.defaultModel } = allow;
    if (!(route.tokens || route.reportsUsage)) return [];
    const needed = amountsOf(allow, model, { metering, priceTable });
    return states
      .filter(({ budget: { id } }) => counts.get(id)?.(model) === true)
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
