/** A budget that must have room for a request, and the refusal of a request for which it has none. */

import type { CompiledBudget } from '../decision/budgets.ts';
import type { ModelRate } from '../decision/model-rates.ts';
import type { BudgetState, LimitDecision } from './admission.ts';
import type { PeriodBudget } from './budget.ts';
import type { RateState } from './rate-state.ts';

export interface Hold {
  readonly budget: PeriodBudget;
  readonly limit: number;
  readonly cause: HoldCause;
}

/** The limit that needs the hold. A refusal names it. */
type HoldCause =
  | { readonly kind: 'parallel'; readonly rate: ModelRate }
  | { readonly kind: 'month' }
  | { readonly kind: 'budget'; readonly record: CompiledBudget };

const SUBJECT = { tenant: 'This tenant', user: 'This user', key: 'This API key' } as const;
/** The place of a request becomes free when the request ends, which no process knows in advance. */
const RETRY_PARALLEL_SECONDS = 1;

/** @param rate the state of the tighter rate limit; undefined if there is none */
export function refuseFor(hold: Hold, amount: number, rate: RateState | undefined): LimitDecision {
  const { budget, limit, cause } = hold;
  switch (cause.kind) {
    case 'parallel': {
      const { level, models, dimension } = cause.rate;
      return {
        kind: 'refused',
        code: 'rate_limit_exceeded',
        detail: `${SUBJECT[level]} may have ${limit} requests for these models at the same time. Try again when one of them has ended.`,
        rate: undefined,
        retryAfterSeconds: RETRY_PARALLEL_SECONDS,
        limit: { level, models, dimension },
      };
    }
    case 'month': {
      const resetsAt = resetOf(budget);
      const { remaining } = amountsOf(hold);
      const rest = remaining === undefined ? 'has fewer' : `has ${remaining}`;
      const detail = `This request needs up to ${amount} tokens, but the tenant's monthly quota of ${limit} ${rest} left. The quota resets at ${resetsAt}.`;
      return { kind: 'refused', code: 'insufficient_quota', detail, resetsAt, rate };
    }
    case 'budget': {
      const state = stateOf(hold, cause.record);
      const { resetsAt } = state;
      const reset = resetsAt === undefined ? 'It does not reset by itself.' : `It resets at ${resetsAt}.`;
      // The amounts are only for callers that may read them.
      const detail = `This request may spend more than the budget "${state.name}" has left. ${reset}`;
      return { kind: 'refused', code: 'insufficient_quota', detail, resetsAt, rate, budget: state };
    }
    default:
      return cause satisfies never;
  }
}

/** Returns the budget of which the smallest share is left; undefined if no budget blocks. */
export function scarcestOf(holds: readonly Hold[]): BudgetState | undefined {
  let scarcest: BudgetState | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const hold of holds) {
    if (hold.cause.kind !== 'budget') continue;
    const share = (amountsOf(hold).remaining ?? hold.limit) / Math.max(1, hold.limit);
    if (share >= least) continue;
    least = share;
    scarcest = stateOf(hold, hold.cause.record);
  }
  return scarcest;
}

function stateOf(hold: Hold, record: CompiledBudget): BudgetState {
  const { id, name, unit, period, limit } = record;
  return { id, name, unit, period, resetsAt: resetOf(hold.budget), own: isOwn(record), limit, ...amountsOf(hold) };
}

/** An amount that the process holds and has not reserved counts as remaining. */
function amountsOf({ budget, limit }: Hold): Pick<BudgetState, 'spent' | 'reserved' | 'remaining'> {
  const { used, spent, available } = budget;
  if (used === undefined) return { spent: undefined, reserved: undefined, remaining: undefined };
  const reserved = Math.max(0, used - spent - Math.max(0, available));
  return { spent, reserved, remaining: Math.max(0, limit - spent - reserved) };
}

/** Reports whether no other key or user spends the amount. */
function isOwn({ per, appliesTo }: CompiledBudget): boolean {
  if (per !== 'all') return true;
  return ('keys' in appliesTo && appliesTo.keys.length === 1) || ('users' in appliesTo && appliesTo.users.length === 1);
}

function resetOf({ endsMs }: PeriodBudget): string | undefined {
  return Number.isFinite(endsMs) ? new Date(endsMs).toISOString() : undefined;
}
