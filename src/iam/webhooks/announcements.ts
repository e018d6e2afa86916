/**
 * Writes the audit rows of events that have no change of their own: reached thresholds, keys that expire, and keys of
 * issuers that have become stale. Each is written once over all servers: the mark is in the row's transaction.
 */

import { formatMoney } from '../../domain/money.ts';
import { type AuditRow, insertAudits } from '../../store/audit-rows.ts';
import type { Database } from '../../store/database.ts';
import { type Transaction, transaction } from '../../store/transaction.ts';
import { auditRow, OPERATOR } from '../change/audit-row.ts';
import {
  advanceKeyEnds,
  type BudgetAlert,
  type EndingKey,
  holdKeyEnds,
  markStale,
  type StaleIssuer,
  takeAlerts,
} from './announcement-queries.ts';

/** Rows of one transaction. */
const BATCH = 200;
/** Transactions of one run. The next run continues. */
const MAX_BATCHES = 50;

/**
 * Runs batches, each in a transaction, until one is not full.
 * @param batch returns the number of its rows
 * @returns the number of rows
 */
async function inBatches(db: Database, batch: (trx: Transaction) => Promise<number>): Promise<number> {
  let rows = 0;
  for (let n = 0; n < MAX_BATCHES; n++) {
    const written = await transaction(db, batch);
    rows += written;
    if (written < BATCH) break;
  }
  return rows;
}

/** Announces the thresholds that budgets and monthly tokens have reached. @returns the number of rows */
export function announceAlerts(db: Database): Promise<number> {
  return inBatches(db, async (trx) => {
    const alerts = await takeAlerts(trx, BATCH);
    await insertAudits(trx, alerts.map(alertRow));
    return alerts.length;
  });
}

/** Announces keys that expire, and issuers whose keys have become stale. @returns the number of rows */
export async function announceStates(db: Database, maxStalenessMs: number): Promise<number> {
  const stale = await inBatches(db, async (trx) => {
    const issuers = await markStale(trx, maxStalenessMs, BATCH);
    await insertAudits(trx, issuers.map(staleRow));
    return issuers.length;
  });
  return stale + (await announceKeyEnds(db));
}

/** A key that is changed to end earlier has the announcements of the times that are still ahead. */
function announceKeyEnds(db: Database): Promise<number> {
  return inBatches(db, async (trx) => {
    let written = 0;
    for (const { days } of await holdKeyEnds(trx)) {
      const keys = await advanceKeyEnds(trx, days, BATCH);
      await insertAudits(
        trx,
        keys.filter(({ revoked }) => !revoked).map((key) => keyRow(key, days)),
      );
      written = Math.max(written, keys.length);
    }
    return written;
  });
}

function alertRow(alert: BudgetAlert): AuditRow {
  const { budget_id, tenant_id: tenant, name, unit, threshold, spent, limit_amount } = alert;
  const amount = (value: string): string | number => (unit === 'money' ? formatMoney(BigInt(value)) : Number(value));
  const facts = { threshold, spent: amount(spent), limit: amount(limit_amount) };
  if (budget_id === null) {
    const after = { ...facts, period: alert.period };
    const target = { type: 'tenant', id: tenant } as const;
    return auditRow(OPERATOR, 'quota.threshold', { target, tenant, after }, 'success');
  }
  const [counter = '', period = ''] = alert.period.replace(/#\d+$/, '').split(' ');
  const [, subject] = counter.split('/');
  const after = { name, unit, ...facts, period, ...(subject === undefined ? {} : { subject }) };
  const target = { type: 'budget', id: budget_id } as const;
  return auditRow(OPERATOR, 'budget.threshold', { target, tenant, after }, 'success');
}

function keyRow({ id, tenant_id, user_id, name, prefix, expires_at }: EndingKey, days: number): AuditRow {
  const action = days === 0 ? 'api_key.expired' : 'api_key.expiring';
  const after = { name, prefix, user_id, expires_at, ...(days === 0 ? {} : { days }) };
  return auditRow(OPERATOR, action, { target: { type: 'api_key', id }, tenant: tenant_id, after }, 'success');
}

function staleRow({ id, tenant_id: tenant, name, fetched_at, error }: StaleIssuer): AuditRow {
  const target = { type: 'issuer', id } as const;
  return auditRow(OPERATOR, 'issuer.keys_stale', { target, tenant, after: { name, fetched_at, error } }, 'success');
}
