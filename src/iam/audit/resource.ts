/** What the API shows of an audit row. */

import type { StoredAudit } from './queries.ts';

export interface AuditResource {
  readonly id: string;
  readonly time: string;
  /** The id is null for the system and for whoever proved nothing. */
  readonly actor: { readonly type: 'user' | 'api_key' | 'system' | 'anonymous'; readonly id: string | null };
  /** null for what belongs to no tenant. */
  readonly tenant_id: string | null;
  readonly address: string | null;
  /** `<thing>.<verb>` */
  readonly action: string;
  readonly target: { readonly type: string | null; readonly id: string | null };
  readonly result: 'success' | 'failure' | 'refused';
  readonly before: unknown;
  readonly after: unknown;
  readonly request_id: string | null;
}

export function auditResource(row: StoredAudit): AuditResource {
  return {
    id: String(row.id),
    time: row.time.toISOString(),
    actor: { type: row.actorType, id: row.actorId },
    tenant_id: row.tenantId,
    address: row.address,
    action: row.action,
    target: { type: row.targetType, id: row.targetId },
    result: row.result,
    before: row.before,
    after: row.after,
    request_id: row.requestId,
  };
}
