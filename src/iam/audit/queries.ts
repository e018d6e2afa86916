/** Statements that read the audit log, newest first. */

import type { ChainRow } from '../../store/audit-chain.ts';
import type { AuditRow } from '../../store/audit-rows.ts';
import {
  type Page,
  type PageRows,
  pageWithinBytes,
  scopeBinding,
  scopeCondition,
  type TenantScope,
} from '../../store/paging.ts';
import type { Queryable } from '../../store/queryable.ts';
import { type FilterConditions, filterConditions } from '../list/filters.ts';

/** A position: the rows of all seals before `seal`, and the rows of `seal` up to `row`, are delivered. */
export interface AuditCursor {
  /** 0: nothing is delivered. */
  readonly seal: number;
  readonly row: number;
  /**
   * The first digits of the seal's hash. They show whether a restored or different database has another seal with this
   * number.
   */
  readonly hash: string;
}

export interface StoredAudit extends Omit<ChainRow, 'time' | 'actor_type' | 'result' | 'before' | 'after'> {
  readonly time: Date;
  /** The time in microseconds since the epoch, by which rows are ordered. */
  readonly time_micros: number;
  readonly actor_type: AuditRow['actorType'];
  readonly result: AuditRow['result'];
  readonly before: unknown;
  readonly after: unknown;
}

export interface AuditFilter extends Partial<Record<'action' | 'target_type' | 'target_id' | 'request_id', string>> {
  /** An id, or the type of an actor without an id. */
  readonly actor?: string;
  readonly result?: AuditRow['result'];
  /** The start of the time span, included. */
  readonly from?: Date;
  /** The end of the time span, excluded. */
  readonly to?: Date;
}

const CONDITIONS: FilterConditions<AuditFilter> = {
  // The expression of the index.
  actor: 'coalesce(actor_id, actor_type) = :actor',
  action: 'action = :action',
  target_type: 'target_type = :target_type',
  target_id: 'target_id = :target_id',
  result: 'result = :result',
  from: 'time >= :from',
  to: 'time < :to',
  request_id: 'request_id = :request_id',
};

/** Rows that are older than the column have no value in it. */
const OCTETS = `coalesce(octets, coalesce(octet_length(before::text), 0) + coalesce(octet_length(after::text), 0)) + 200 as octets`;

const COLUMNS = `id, time, cast(extract(epoch from time) * 1000000 as bigint) as time_micros, actor_type, actor_id, tenant_id,
  address, action, target_type, target_id, result, before, after, request_id, ${OCTETS}`;

export const ORDER = 'time desc, id desc';

/** SQL conditions on `audit_log`, with the bindings of the scope and of the filter. */
export function conditionsOf(scope: TenantScope, filter: AuditFilter): readonly string[] {
  return [scopeCondition(scope, 'tenant_id'), ...filterConditions(CONDITIONS, filter)];
}

/** Counts the rows of a list, up to `most`. */
export async function countAudit(q: Queryable, scope: TenantScope, filter: AuditFilter, most: number): Promise<number> {
  // Not a prepared statement, because the plan depends on the filter's values.
  const { rows } = await q.raw<{ rows: { rows: number }[] }>(
    `select count(*)::float8 as rows
     from (select from audit_log where ${conditionsOf(scope, filter).join(' and ')} order by time desc, id desc limit :most) counted`,
    { ...scopeBinding(scope), ...filter, most },
  );
  return rows[0]?.rows ?? 0;
}

/** SQL for the rows after the page's position, with the bindings `micros` and `id`. */
export function afterCondition({ after }: Page): readonly string[] {
  if (after === undefined) return [];
  return [
    `(time, id) < (timestamptz 'epoch' + cast(:micros as bigint) * interval '1 microsecond', cast(:id as bigint))`,
  ];
}

/** @param page its position is `time_micros` and `id` of the previous row, both as digits */
export async function listAudit(
  q: Queryable,
  scope: TenantScope,
  filter: AuditFilter,
  page: Page,
): Promise<PageRows<StoredAudit>> {
  const conditions = [...conditionsOf(scope, filter), ...afterCondition(page)];
  const [micros, id] = page.after ?? [];
  const rows = `select ${COLUMNS} from audit_log where ${conditions.join(' and ')} order by ${ORDER} limit :take`;
  const after = micros === undefined || id === undefined ? {} : { micros, id };
  return pageWithinBytes(q, { rows, order: ORDER }, { ...scopeBinding(scope), ...filter, ...after }, page);
}

/**
 * Reads rows by their ids, in the order of `ids`, up to `maxBytes`. It leaves out a row that does not exist.
 * @returns the rows, and whether further rows remain
 */
export async function auditRows(
  q: Queryable,
  ids: readonly number[],
  maxBytes: number,
): Promise<PageRows<StoredAudit>> {
  const page = { after: undefined, take: ids.length + 1, maxBytes };
  const rows = `select ordinal, ${COLUMNS}
    from unnest(cast(:ids as bigint[])) with ordinality as wanted (id, ordinal) join audit_log using (id)`;
  return pageWithinBytes(q, { rows, order: 'ordinal' }, { ids: [...ids] }, page);
}
