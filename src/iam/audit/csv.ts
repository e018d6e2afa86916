/** Rows of the audit log as CSV. */

import { csvLine } from '../list/csv.ts';
import type { AuditResource } from './resource.ts';

const COLUMNS: Readonly<Record<string, (row: AuditResource) => string | null>> = {
  id: (row) => row.id,
  time: (row) => row.time,
  actor_type: (row) => row.actor.type,
  actor_id: (row) => row.actor.id,
  tenant_id: (row) => row.tenant_id,
  address: (row) => row.address,
  action: (row) => row.action,
  target_type: (row) => row.target.type,
  target_id: (row) => row.target.id,
  result: (row) => row.result,
  before: (row) => json(row.before),
  after: (row) => json(row.after),
  request_id: (row) => row.request_id,
};

export const AUDIT_CSV_HEADER = csvLine(Object.keys(COLUMNS));

export function auditCsvLine(row: AuditResource): string {
  return csvLine(Object.values(COLUMNS).map((read) => read(row)));
}

function json(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}
