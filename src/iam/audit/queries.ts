/** Reading the audit log, newest first. */

import type { AuditRow } from '../../store/audit-rows.ts';
import {
  type BoundedRow,
  bytesBinding,
  type Page,
  type PageRows,
  pageRows,
  scopeBinding,
  scopeCondition,
  type TenantScope,
  withinBytes,
} from '../../store/paging.ts';
import type { Queryable } from '../../store/queryable.ts';

export interface StoredAudit {
  readonly id: number;
  readonly time: Date;
  /** The same instant in microseconds since the epoch: what rows are ordered by. */
  readonly timeMicros: number;
  readonly actorType: AuditRow['actorType'];
  readonly actorId: string | null;
  readonly tenantId: string | null;
  readonly address: string | null;
  readonly action: string;
  readonly targetType: string | null;
  readonly targetId: string | null;
  readonly result: AuditRow['result'];
  readonly before: unknown;
  readonly after: unknown;
  readonly requestId: string | null;
}

export interface AuditFilter {
  /** An id; for actors that have none, their type. */
  readonly actor?: string;
  readonly action?: string;
  readonly targetType?: string;
  readonly targetId?: string;
  readonly result?: AuditRow['result'];
  /** From then on. */
  readonly from?: Date;
  /** Up to then, that instant left out. */
  readonly to?: Date;
  readonly requestId?: string;
}

const CONDITIONS: Readonly<Record<keyof AuditFilter, string>> = {
  // As the index has it.
  actor: 'coalesce(actor_id, actor_type) = :actor',
  action: 'action = :action',
  targetType: 'target_type = :targetType',
  targetId: 'target_id = :targetId',
  result: 'result = :result',
  from: 'time >= :from',
  to: 'time < :to',
  requestId: 'request_id = :requestId',
};

function isFilter(name: string): name is keyof AuditFilter {
  return name in CONDITIONS;
}

/** Rows from before the column have none. */
const OCTETS = `coalesce(octets, coalesce(octet_length(before::text), 0) + coalesce(octet_length(after::text), 0)) + 200 as octets`;

const COLUMNS = `id, time, cast(extract(epoch from time) * 1000000 as bigint) as "timeMicros", actor_type as "actorType",
  actor_id as "actorId", tenant_id as "tenantId", address, action, target_type as "targetType", target_id as "targetId", result, before,
  after, request_id as "requestId", ${OCTETS}`;

const ORDER = 'time desc, id desc';

function conditionsOf(scope: TenantScope, filter: AuditFilter): readonly string[] {
  const filters = Object.keys(filter).filter(isFilter);
  return [scopeCondition(scope, 'tenant_id'), ...filters.map((name) => CONDITIONS[name])];
}

/** Counts the rows of a list, up to `most`. */
export async function countAudit(q: Queryable, scope: TenantScope, filter: AuditFilter, most: number): Promise<number> {
  // With knex's values rather than a prepared statement: its plan depends on the filter's values, as that of a page does.
  const { rows } = await q.raw<{ rows: { rows: number }[] }>(
    `select count(*)::float8 as rows
     from (select from audit_log where ${conditionsOf(scope, filter).join(' and ')} order by time desc, id desc limit :most) counted`,
    { ...scopeBinding(scope), ...filter, most },
  );
  return rows[0]?.rows ?? 0;
}

/** @param page its position is `timeMicros` and `id` of the row before, both as digits */
export async function listAudit(
  q: Queryable,
  scope: TenantScope,
  filter: AuditFilter,
  page: Page,
): Promise<PageRows<StoredAudit>> {
  const conditions = [
    ...conditionsOf(scope, filter),
    ...(page.after === undefined
      ? []
      : [
          `(time, id) < (timestamptz 'epoch' + cast(:micros as bigint) * interval '1 microsecond', cast(:id as bigint))`,
        ]),
  ];
  const [micros, id] = page.after ?? [];
  const found = `select ${COLUMNS} from audit_log where ${conditions.join(' and ')} order by ${ORDER} limit :take`;
  const { rows } = await q.raw<{ rows: (StoredAudit & BoundedRow)[] }>(withinBytes(found, ORDER), {
    ...scopeBinding(scope),
    ...filter,
    ...(micros === undefined || id === undefined ? {} : { micros, id }),
    ...bytesBinding(page),
    take: page.take,
  });
  return pageRows(rows, page, (row) => row);
}

/**
 * Reads rows by their ids, in the order of `ids`, up to the one with which they take `maxBytes`. A row that no longer exists is left out.
 * @returns the rows, and whether others were left for the next call
 */
export async function auditRows(
  q: Queryable,
  ids: readonly number[],
  maxBytes: number,
): Promise<PageRows<StoredAudit>> {
  const page = { after: undefined, take: ids.length + 1, maxBytes };
  const found = `select ordinal, ${COLUMNS}
    from unnest(cast(:ids as bigint[])) with ordinality as wanted (id, ordinal) join audit_log using (id)`;
  const { rows } = await q.raw<{ rows: (StoredAudit & BoundedRow)[] }>(withinBytes(found, 'ordinal'), {
    ids,
    ...bytesBinding(page),
  });
  return pageRows(rows, page, (row) => row);
}
