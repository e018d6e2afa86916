/** The alerts that a change of budgets raises. */

import type { Queryable } from '../../store/queryable.ts';
import { type BudgetRow, budgetRecord } from './entity.ts';
import { counterOf, currentPeriod } from './state.ts';
import { noteAlerts, zonesOf } from './state-queries.ts';

/**
 * Notes the alerts that the current amounts of changed budgets have reached, each once in a period. Only bookings note
 * the others, and a limit below what was spent may be the end of them.
 *
 * Bookings lock amounts and then budgets, and do not wait for a change. So this locks no amount. It sees the bookings
 * that have committed, and one that reads the budget after the change commits sees the new limit. A booking that does
 * both while this transaction commits sees neither, and the next one notes the alert.
 */
export async function noteReachedAlerts(q: Queryable, rows: readonly BudgetRow[], nowMs: number): Promise<void> {
  const alerting = rows.filter(({ enabled, alerts }) => enabled && alerts.length > 0);
  if (alerting.length === 0) return;
  const tenants = alerting.map(({ tenant_id }) => tenant_id);
  const zones = await zonesOf(q, tenants);
  await noteAlerts(
    q,
    alerting.map((row) => ({
      ...counterOf(row.tenant_id, row, '', currentPeriod(budgetRecord(row), zones.get(row.tenant_id), nowMs)),
      limit: row.limit_amount,
      fraction: Math.min(...row.alerts),
    })),
  );
}
