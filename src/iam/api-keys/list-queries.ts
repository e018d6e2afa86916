/**
 * Lists and searches API keys, in the order of their ids.
 *
 * Status and expiry are an interval of `expires_at`. The index of the table holds the keys of each month of expiry in
 * the order of the list, so a page consists of the first keys of each month in the interval.
 */

import type { KeyId, TenantId, UserId } from '../../domain/ids.ts';
import {
  type BoundedRow,
  bytesBinding,
  type Page,
  type PageRows,
  scopeBinding,
  scopeCondition,
  type TenantScope,
  withinBytes,
} from '../../store/paging.ts';
import { countUpTo, type NamedQuery, runNamedQuery } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import { columnsOf } from '../schema/entity.ts';
import { apiKey, type KeyRow, type KeyStatus } from './entity.ts';

export interface KeyFilter {
  readonly status?: KeyStatus | undefined;
  readonly userId?: UserId | undefined;
  readonly createdBy?: UserId | KeyId | undefined;
  readonly expiresBefore?: Date | undefined;
  /** The beginning of the shown prefix. Printable ASCII. */
  readonly prefix?: string | undefined;
  /** Any part of name, description or metadata, in any case. */
  readonly q?: string | undefined;
}

const COLUMNS = columnsOf(apiKey).join(', ');

/** The approximate bytes of a key in a response. */
const OCTETS =
  'octet_length(scopes::text) + octet_length(resource_constraints::text) + octet_length(metadata::text) + 500';

/** Returns one page of keys. */
export async function listKeys(
  q: Queryable,
  scope: TenantScope,
  filter: KeyFilter,
  page: Page,
  now: Date,
): Promise<PageRows<KeyRow>> {
  const ids = await listKeyIds(q, scope, filter, page, now);
  // The ids alone find the rows: with the condition on the tenant, the planner may walk through all keys of the tenant.
  const found = `with found as materialized (select ${COLUMNS}, ${OCTETS} as octets from api_keys where id = any(:ids))
    ${withinBytes(`select * from found where ${scopeCondition(scope, 'tenant_id')}`, 'id')}`;
  const { rows } = await q.raw<{ rows: (KeyRow & BoundedRow)[] }>(found, {
    ids,
    ...scopeBinding(scope),
    ...bytesBinding(page),
  });
  // Upkeep may have removed a key since the ids were read. Then the page is shorter, and is not the last one.
  return { rows, more: ids.length === page.take || (rows[0]?.rows_found ?? 0) > rows.length };
}

/** Returns the ids of one page. */
export async function listKeyIds(
  q: Queryable,
  scope: TenantScope,
  filter: KeyFilter,
  page: Page,
  now: Date,
): Promise<readonly KeyId[]> {
  if (isSearch(filter)) return searchKeyIds(q, scope, filter, page, now);
  return (await runNamedQuery<Pick<KeyRow, 'id'>>(q, keyIdsInOrder(scope, filter, page, now))).map(({ id }) => id);
}

/** Counts the keys of a list, up to `most`. */
export async function countKeys(
  q: Queryable,
  scope: TenantScope,
  filter: KeyFilter,
  now: Date,
  most: number,
): Promise<number> {
  if (isSearch(filter)) return countUpTo(q, keysByIndex(scope, filter, EVERYTHING, now), most);
  const conditions = [...keyConditions(scope, filter, EVERYTHING), ...monthConditions(filter, 'k')];
  const sql = `select from api_keys k where ${conditions.join(' and ')}`;
  return countUpTo(q, { sql, bindings: keyBindings(scope, filter, EVERYTHING, now) }, most);
}

const EVERYTHING: Page = { after: undefined, take: 0 };

/** Returns those of a tenant's keys with these ids that the filter matches, by id. */
export async function findKeys(
  q: Queryable,
  tenant: TenantId,
  ids: readonly KeyId[],
  filter: KeyFilter,
  now: Date,
): Promise<readonly KeyRow[]> {
  const scope = { kind: 'one', tenant } as const;
  const conditions = ['k.id = any(:ids)', ...keyConditions(scope, filter, EVERYTHING), ...textConditions(filter)];
  const { rows } = await q.raw<{ rows: KeyRow[] }>(
    `select ${COLUMNS} from api_keys k where ${conditions.join(' and ')} order by id`,
    { ...keyBindings(scope, filter, EVERYTHING, now), ids },
  );
  return rows;
}

/** Returns the approximate bytes of keys of a tenant, as stored. */
export async function keysSize(q: Queryable, tenant: TenantId, ids: readonly KeyId[]): Promise<number> {
  const { rows } = await q.raw<{ rows: { bytes: number }[] }>(
    `select coalesce(sum(${OCTETS}), 0)::float8 as bytes from api_keys where tenant_id = :tenant and id = any(:ids)`,
    { tenant, ids },
  );
  return rows[0]?.bytes ?? 0;
}

function isSearch({ prefix, q }: KeyFilter): boolean {
  return prefix !== undefined || q !== undefined;
}

/**
 * Keys that a search reads in the order of the list before it reads an index: a text that many keys have fills a page
 * among few keys.
 */
const SCANNED_KEYS = 2000;

/** Returns the ids of one page for a filter with `q` or `prefix`. */
async function searchKeyIds(
  q: Queryable,
  scope: TenantScope,
  filter: KeyFilter,
  page: Page,
  now: Date,
): Promise<readonly KeyId[]> {
  const { q: _text, prefix: _prefix, ...others } = filter;
  const next = keyIdsInOrder(scope, others, { ...page, take: SCANNED_KEYS }, now);
  const scan = `with next as materialized (${next.sql})
    select array(
        select k.id from api_keys k where k.id = any(array(select id from next)) and ${textConditions(filter).join(' and ')}
        order by k.id limit :pageSize
      ) as ids,
      (select count(*) from next) < :take as at_end`;
  const [scanned] = await runNamedQuery<{ ids: readonly KeyId[]; at_end: boolean }>(q, {
    sql: scan,
    bindings: { ...keyBindings(scope, filter, page, now), ...next.bindings, pageSize: page.take },
  });
  if (scanned !== undefined && (scanned.at_end || scanned.ids.length === page.take)) return scanned.ids;
  const { sql, bindings } = keysByIndex(scope, filter, page, now);
  const found = `with found as materialized (${sql}) select id from found order by id limit :take`;
  return (await runNamedQuery<Pick<KeyRow, 'id'>>(q, { sql: found, bindings })).map(({ id }) => id);
}

/**
 * Returns a query for the ids of a search, in no order, by the index of lexemes or of prefixes. All conditions except
 * those of the index are hidden from the planner, which would walk through whole tenants for them.
 */
export function keysByIndex(scope: TenantScope, filter: KeyFilter, page: Page, now: Date): NamedQuery {
  const others = keyConditions(scope, filter, page).map((condition) => `(${condition}) is true`);
  const texts = textConditions(filter);
  const bindings = keyBindings(scope, filter, page, now);
  if (filter.q === undefined) {
    return { sql: `select k.id from api_keys k where ${[...texts, ...others].join(' and ')}`, bindings };
  }
  const conditions = [
    `user_lexemes(k.tenant_id, coalesce(k.user_id, ''), '{}', k.search_text)
      @@ (select user_query(cast(:tenantMark as text), cast(:userMark as text), null, lower(cast(:q as text))))`,
    ...texts.map((condition) => `(${condition}) is true`),
    ...others,
  ];
  const marks = { tenantMark: scopeBinding(scope).tenant ?? null, userMark: filter.userId ?? null };
  return { sql: `select k.id from api_keys k where ${conditions.join(' and ')}`, bindings: { ...bindings, ...marks } };
}

const STATUS_CONDITIONS: Readonly<Record<KeyStatus, string>> = {
  active: 'not k.revoked and (k.expires_at is null or k.expires_at > :now)',
  expired: 'not k.revoked and k.expires_at <= :now',
  revoked: 'k.revoked',
};

/** Every condition on `api_keys k` except those of `prefix` and `q`. */
function keyConditions(scope: TenantScope, filter: KeyFilter, page: Page): readonly string[] {
  return [
    ...ownerConditions(scope, filter),
    ...(page.after === undefined ? [] : ['k.id > :after']),
    ...(filter.status === undefined ? [] : [STATUS_CONDITIONS[filter.status]]),
    ...(filter.expiresBefore === undefined ? [] : ['k.expires_at < :expiresBefore']),
  ];
}

function ownerConditions(scope: TenantScope, filter: KeyFilter): readonly string[] {
  return [
    scopeCondition(scope, 'k.tenant_id'),
    ...(filter.userId === undefined ? [] : ['k.user_id = :userId']),
    ...(filter.createdBy === undefined ? [] : ['k.created_by = :createdBy']),
  ];
}

/** The conditions of `prefix` and `q`. */
function textConditions(filter: KeyFilter): readonly string[] {
  return [
    ...(filter.prefix === undefined ? [] : ['k.prefix collate "C" >= :prefix and k.prefix collate "C" < :prefixEnd']),
    ...(filter.q === undefined ? [] : ['position((select lower(:q)) in k.search_text) > 0']),
  ];
}

/** Sorts after every text of printable ASCII. */
const AFTER_ASCII = '\x7f';

function keyBindings(scope: TenantScope, filter: KeyFilter, page: Page, now: Date): NamedQuery['bindings'] {
  const { userId, createdBy, expiresBefore, status, prefix, q } = filter;
  const after = page.after?.[0];
  return {
    ...scopeBinding(scope),
    ...(after === undefined ? {} : { after }),
    ...(userId === undefined ? {} : { userId }),
    ...(createdBy === undefined ? {} : { createdBy }),
    ...(expiresBefore === undefined ? {} : { expiresBefore }),
    ...(status === undefined ? {} : { now }),
    ...(prefix === undefined ? {} : { prefix, prefixEnd: prefix + AFTER_ASCII }),
    ...(q === undefined ? {} : { q }),
    take: page.take,
  };
}

/**
 * Returns the conditions on the months that hold every key of the filter. Keys that never expire are in a month after
 * all others.
 */
function monthConditions({ status, createdBy, expiresBefore }: KeyFilter, table: string): readonly string[] {
  const month = `${table}.expiry_month`;
  return [
    ...(status === undefined ? [] : [status === 'revoked' ? `${table}.revoked` : `not ${table}.revoked`]),
    ...(status === 'active' ? [`${month} >= expiry_month_of(:now)`] : []),
    ...(status === 'expired' ? [`${month} <= expiry_month_of(:now)`] : []),
    // The index of creators is in the order of months too. Without this condition, the planner walks through all keys
    // for a creator of few.
    ...(createdBy === undefined ? [] : [`${month} is not null`]),
    ...(expiresBefore === undefined ? [] : [`${month} <= expiry_month_of(:expiresBefore)`]),
  ];
}

/** Returns a query for the ids of one page, in order, for a filter without `prefix` and `q`. */
export function keyIdsInOrder(scope: TenantScope, filter: KeyFilter, page: Page, now: Date): NamedQuery {
  const conditions = keyConditions(scope, filter, page).join(' and ');
  const months = monthConditions(filter, 'm');
  const bindings = keyBindings(scope, filter, page, now);
  if (months.length === 0) {
    return { sql: `select k.id from api_keys k where ${conditions} order by k.id limit :take`, bindings };
  }
  // Steps from month to month through the index, and takes a page from each.
  const step = (condition: string): string =>
    `select k.expiry_month, k.revoked from api_keys k where ${[...ownerConditions(scope, filter), condition].join(' and ')}
     order by k.expiry_month, k.revoked limit 1`;
  const sql = `with recursive months as (
      (${step('true')})
      union all
      select next.* from months m cross join lateral (${step('(k.expiry_month, k.revoked) > (m.expiry_month, m.revoked)')}) next
    )
    select found.id from months m cross join lateral (
      select k.id from api_keys k where k.expiry_month = m.expiry_month and k.revoked = m.revoked and ${conditions}
      order by k.id limit :take
    ) found
    where ${months.join(' and ')} order by found.id limit :take`;
  return { sql, bindings };
}
