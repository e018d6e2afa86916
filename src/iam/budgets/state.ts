/** Reads the use of budgets in their current periods. */

import { type BudgetCaller, shareOf } from '../../decision/budgets.ts';
import type { TenantId } from '../../domain/ids.ts';
import type { BudgetRecord } from '../../domain/records.ts';
import { counterName, type Period, periodAt } from '../../metering/budget-periods.ts';
import type { Queryable } from '../../store/queryable.ts';
import { dayIn, momentOf } from '../usage/period.ts';
import { type BudgetRow, budgetRecord, type SpentState, shownOf } from './entity.ts';
import {
  type CountedUsage,
  type Counter,
  type CounterState,
  isTooMuch,
  readCounters,
  topCallers,
  topKeys,
  topModels,
} from './state-queries.ts';

/** The rows of one breakdown. */
const MOST_ROWS = 10;

/** @param tenantZone of the tenant; undefined = UTC */
export function currentPeriod(
  { period, timezone }: Pick<BudgetRecord, 'period' | 'timezone'>,
  tenantZone: string | undefined,
  nowMs: number,
): Period {
  return periodAt(period, timezone ?? tenantZone, nowMs);
}

/** Returns the counter of a budget in a period. @param share of the caller; empty for a shared budget */
export function counterOf(
  tenant: TenantId,
  budget: Pick<BudgetRecord, 'id' | 'epoch'>,
  share: string,
  period: Pick<Period, 'name'>,
): Counter {
  return { tenant, period: counterName(budget, share, period) };
}

/** The state of the amount that a caller's requests use. */
export interface SpentBudget extends CounterState, Period {
  readonly budget: BudgetRecord;
  /** The caller whose amount it is; empty for a shared one. */
  readonly share: string;
  readonly remaining: number;
}

/** Reads the state of the budgets of a caller, in their order. */
export async function spentOf(
  q: Queryable,
  tenant: { readonly id: TenantId; readonly timezone: string | undefined },
  budgets: readonly BudgetRecord[],
  caller: BudgetCaller,
  nowMs: number,
): Promise<readonly SpentBudget[]> {
  const found = budgets.map((budget) => {
    const period = currentPeriod(budget, tenant.timezone, nowMs);
    const share = shareOf(budget, caller);
    return { budget, share, ...period, counter: counterOf(tenant.id, budget, share, period) };
  });
  const states = await readCounters(
    q,
    found.map(({ counter }) => counter),
  );
  return found.map(({ counter, ...one }) => {
    const { spent, held } = states(counter);
    return { ...one, spent, held, remaining: remainingOf(one.budget.limit, { spent, held }) };
  });
}

function remainingOf(limit: number, { spent, held }: CounterState): number {
  return Math.max(0, limit - spent - held);
}

export function instantOf(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}

/** Returns a function that returns the state of each of the budgets. @param zoneOf the zone of a tenant */
export async function statesOf(
  q: Queryable,
  rows: readonly BudgetRow[],
  zoneOf: (tenant: TenantId) => string | undefined,
  nowMs: number,
): Promise<(row: BudgetRow) => SpentState> {
  const periods = new Map(
    rows.map((row) => [row.id, currentPeriod(budgetRecord(row), zoneOf(row.tenant_id), nowMs)] as const),
  );
  const shared = rows.filter(({ per }) => per === 'all');
  const counter = (row: BudgetRow) => {
    const period = periods.get(row.id);
    return period === undefined ? [] : [counterOf(row.tenant_id, row, '', period)];
  };
  const states = await readCounters(q, shared.flatMap(counter));
  return (row) => {
    const period = periods.get(row.id);
    const [own] = row.per === 'all' ? counter(row) : [];
    return {
      starts_at: instantOf(period?.startsMs),
      resets_at: instantOf(period?.endsMs),
      ...(own === undefined ? NO_AMOUNTS : amountsOf(row, states(own))),
    };
  };
}

const NO_AMOUNTS = { spent: null, reserved: null, remaining: null } as const;

function amountsOf({ unit, limit_amount }: Pick<BudgetRow, 'unit' | 'limit_amount'>, state: CounterState) {
  return {
    spent: shownOf(unit, state.spent),
    reserved: shownOf(unit, state.held),
    remaining: shownOf(unit, remainingOf(limit_amount, state)),
  };
}

/** Reads who and which models used most of one budget in its current period, unless there is too much usage to sum. */
export async function breakdownOf(
  q: Queryable,
  row: BudgetRow,
  tenantZone: string | undefined,
  nowMs: number,
): Promise<Pick<SpentState, 'callers' | 'by_key' | 'by_model'>> {
  const record = budgetRecord(row);
  const period = currentPeriod(record, tenantZone, nowMs);
  const from = period.startsMs ?? row.created_at.getTime();
  const usage: CountedUsage = {
    tenant: row.tenant_id,
    unit: row.unit,
    appliesTo: row.applies_to,
    models: record.models,
    // Usage has the days of the tenant's zone.
    from: dayIn(momentOf(tenantZone, from)),
    to: dayIn(momentOf(tenantZone, nowMs)),
  };
  if (await isTooMuch(q, usage)) return {};
  const { per } = row;
  const callers = per === 'all' ? {} : { callers: await callersOf(q, row, usage, per, period) };
  if (row.period === 'hour') return callers;
  const shown = ({ spent }: { readonly spent: bigint }) => ({ spent: shownOf(row.unit, spent) });
  const [keys, models] = [await topKeys(q, usage, MOST_ROWS), await topModels(q, usage, MOST_ROWS)];
  return {
    ...callers,
    by_key: keys.map((one) => ({ ...one, ...shown(one) })),
    by_model: models.map((one) => ({ ...one, ...shown(one) })),
  };
}

async function callersOf(
  q: Queryable,
  row: BudgetRow,
  usage: CountedUsage,
  per: 'key' | 'user',
  period: Period,
): Promise<NonNullable<SpentState['callers']>> {
  const ids = await topCallers(q, usage, per, MOST_ROWS);
  const counter = (id: string): Counter => counterOf(row.tenant_id, row, id, period);
  const states = await readCounters(q, ids.map(counter));
  return ids.map((id) => ({ id, ...amountsOf(row, states(counter(id))) }));
}
