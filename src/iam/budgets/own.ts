/** The budgets that count the requests of the caller itself, in its own tenant. */

import { type BudgetCaller, budgetCallerOf, budgetsOf } from '../../decision/budgets.ts';
import type { BudgetRecord } from '../../domain/records.ts';
import type { Queryable } from '../../store/queryable.ts';
import { isAuthorized } from '../caller/authorize.ts';
import type { Caller } from '../caller/caller.ts';
import { type OwnBudget, shownOf } from './entity.ts';
import { instantOf, type SpentBudget, spentOf } from './state.ts';

/** The amounts are shown if they are the caller's alone, or if the caller has `usage:read`. */
export async function ownBudgets(q: Queryable, caller: Caller): Promise<OwnBudget[]> {
  const { principal, snapshot, nowMs } = caller;
  const tenant = snapshot.own;
  if (tenant?.budgets === undefined) return [];
  const own = budgetCallerOf(principal);
  const mayRead = caller.tenant === tenant.id && isAuthorized(caller, 'usage:read');
  const zone = { id: tenant.id, timezone: tenant.settings.timezone };
  const states = await spentOf(q, zone, budgetsOf(tenant.budgets, own), own, nowMs);
  return states.map((state) => shown(state, mayRead || isOwn(state, own)));
}

function shown({ budget, endsMs, ...state }: SpentBudget, withAmounts: boolean): OwnBudget {
  const { name, unit, period, models, action, limit } = budget;
  const amounts = {
    limit: shownOf(unit, limit),
    spent: shownOf(unit, state.spent),
    reserved: shownOf(unit, state.held),
    remaining: shownOf(unit, state.remaining),
  };
  return {
    ...{ name, unit, period, action },
    models: models === undefined ? null : [...models],
    resets_at: instantOf(endsMs),
    ...(withAmounts ? amounts : {}),
  };
}

/** Reports whether no other caller's requests count in the amount. */
function isOwn(
  { budget, share }: { readonly budget: BudgetRecord; readonly share: string },
  of: BudgetCaller,
): boolean {
  const { appliesTo } = budget;
  const only = (names: readonly string[], name: string | undefined) => names.length === 1 && names[0] === name;
  if (share !== '') return true;
  if ('keys' in appliesTo) return only(appliesTo.keys, of.keyId);
  return 'users' in appliesTo && only(appliesTo.users, of.userId);
}
