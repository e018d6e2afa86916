/** Rows of the audit log: written once, never changed. */

import type { Knex } from 'knex';

export interface AuditRow {
  readonly actorType: 'user' | 'api_key' | 'system' | 'anonymous';
  readonly actorId: string | undefined;
  readonly tenantId: string | undefined;
  readonly address: string | undefined;
  readonly action: string;
  readonly targetType: string | undefined;
  readonly targetId: string | undefined;
  readonly result: 'success' | 'failure' | 'refused';
  /** Any JSON, already without secrets; undefined = not recorded. */
  readonly before: unknown;
  readonly after: unknown;
  readonly requestId: string | undefined;
}

export async function insertAudit(trx: Knex, row: AuditRow): Promise<void> {
  await trx('audit_log').insert({
    actor_type: row.actorType,
    actor_id: row.actorId ?? null,
    tenant_id: row.tenantId ?? null,
    address: row.address ?? null,
    action: row.action,
    target_type: row.targetType ?? null,
    target_id: row.targetId ?? null,
    result: row.result,
    before: row.before === undefined ? null : JSON.stringify(row.before),
    after: row.after === undefined ? null : JSON.stringify(row.after),
    request_id: row.requestId ?? null,
  });
}
