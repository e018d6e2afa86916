/** Rows of the audit log. They are never changed. */

import { runPrepared } from './prepared.ts';
import type { Queryable } from './queryable.ts';

export interface AuditRow {
  readonly actorType: 'user' | 'api_key' | 'system' | 'anonymous';
  readonly actorId?: string | undefined;
  readonly tenantId?: string | undefined;
  readonly address?: string | undefined;
  readonly action: string;
  readonly targetType?: string | undefined;
  readonly targetId?: string | undefined;
  readonly result: 'success' | 'failure' | 'refused';
  /** JSON value without secrets; undefined = not recorded. */
  readonly before?: unknown;
  readonly after?: unknown;
  readonly requestId?: string | undefined;
}

const COLUMNS =
  'actor_type, actor_id, tenant_id, address, action, target_type, target_id, result, before, after, request_id, octets';
/** The row's size, for pages that are bounded in bytes. Seals do not include it, because it follows from the row. */
const octetsOf = (before: string, after: string): string =>
  `coalesce(octet_length(${before}::text), 0) + coalesce(octet_length(${after}::text), 0)`;
const ACTOR_ID = 1;
const TARGET_ID = 6;
const BEFORE = 8;
const AFTER = 9;
const TYPES = ['text', 'text', 'text', 'text', 'text', 'text', 'text', 'text', 'jsonb', 'jsonb', 'text'];

/**
 * Returns parts of a WITH clause that write an audit row for each row of `source` and queue it to be sealed. A
 * statement uses them to write the audit row of its own change. No other code may write to the log: verification
 * reports a row that was not queued as a forgery.
 * @param first position of the first of `auditValues`
 * @param user SQL of the user id, for rows whose actor and target are known only to the statement
 */
export function auditedBy(source: string, first: number, user?: string): string {
  const own = (i: number): boolean => user !== undefined && (i === ACTOR_ID || i === TARGET_ID);
  const value = (type: string, i: number): string => `$${first + i}::${type}`;
  const values = TYPES.map((type, i) => (own(i) ? `coalesce(${value(type, i)}, ${user})` : value(type, i))).join(', ');
  const octets = octetsOf(value('jsonb', BEFORE), value('jsonb', AFTER));
  return `written as (insert into audit_log (${COLUMNS}) select ${values}, ${octets} from ${source} returning id),
    unsealed as (insert into audit_unsealed (id) select id from written)`;
}

export function auditValues(row: AuditRow): readonly unknown[] {
  return [
    row.actorType,
    row.actorId ?? null,
    row.tenantId ?? null,
    row.address ?? null,
    row.action,
    row.targetType ?? null,
    row.targetId ?? null,
    row.result,
    row.before === undefined ? null : JSON.stringify(row.before),
    row.after === undefined ? null : JSON.stringify(row.after),
    row.requestId ?? null,
  ];
}

const INSERT = { name: 'insert_audit', text: `with ${auditedBy('(select) as once', 1)} select` };

/** Writes a row and queues it to be sealed. */
export async function insertAudit(trx: Queryable, row: AuditRow): Promise<void> {
  await runPrepared(trx, INSERT, auditValues(row));
}

/** Like `insertAudit`, for any number of rows in one statement. */
export async function insertAudits(trx: Queryable, rows: readonly AuditRow[]): Promise<void> {
  if (rows.length === 0) return;
  await trx.raw(
    `with written as (
       insert into audit_log (${COLUMNS})
       select "actorType", "actorId", "tenantId", address, action, "targetType", "targetId", result, before, after, "requestId",
         ${octetsOf('before', 'after')}
       from jsonb_to_recordset(cast(:rows as jsonb)) as r("actorType" text, "actorId" text, "tenantId" text, address text, action text,
         "targetType" text, "targetId" text, result text, before jsonb, after jsonb, "requestId" text)
       returning id
     )
     insert into audit_unsealed (id) select id from written`,
    { rows: JSON.stringify(rows) },
  );
}
