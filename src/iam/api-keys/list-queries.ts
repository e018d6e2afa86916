/** Lists, searches and counts API keys. */

import type { KeyId, TenantId, UserId } from '../../domain/ids.ts';
import { present } from '../../domain/objects.ts';
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
import { countUpTo, type NamedQuery } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import { findSortedPage, type OrderedRows, type SortedRow, type SortedSearch } from '../../store/sorted-pages.ts';
import type { Sorting } from '../../store/sorting.ts';
import type { ListOrder } from '../list/sort.ts';
import { columnsOf } from '../schema/entity.ts';
import { apiKey, type KeyOwnerResource, type KeyRow, type KeyStatus } from './entity.ts';
import { WIDER_THAN_USED, widerBindings } from './permission-use-queries.ts';
import type { PlatformPermission } from './platform-permissions.ts';
import { proofSql } from './queries.ts';

export interface KeyFilter {
  readonly status?: KeyStatus | undefined;
  readonly userId?: UserId | undefined;
  readonly createdBy?: UserId | KeyId | undefined;
  readonly expiresBefore?: Date | undefined;
  readonly withoutExpiry?: boolean | undefined;
  /** Keys that existed at this time and have not been used since. */
  readonly unusedSince?: Date | undefined;
  /** Keys that cover one of these permissions and do not use it. */
  readonly widerThan?: readonly PlatformPermission[] | undefined;
  /** The name of the issuer whose tokens prove the keys. */
  readonly issuer?: string | undefined;
  /** The beginning of the shown prefix. Printable ASCII. */
  readonly prefix?: string | undefined;
  /** Any part of name, description or metadata, in any case. */
  readonly q?: string | undefined;
  /** `q` also finds the keys of the users with it in their names or email addresses. */
  readonly searchesOwners?: boolean | undefined;
}

export const KEY_ORDERS = ['created_at', 'last_used_at', 'expires_at', 'name'] as const;
export type KeyOrder = ListOrder<(typeof KEY_ORDERS)[number]>;
export const NEWEST_FIRST: KeyOrder = { member: 'created_at', descending: true };

/** A key of a page, with its place in the order of the list. */
type ListedKey = KeyRow & Pick<SortedRow<KeyId>, 'position'>;

const columnsFrom = (keys: string): string => `${columnsOf(apiKey).join(', ')}, ${proofSql(keys)}`;

/** The approximate bytes of a key in a response. */
const OCTETS =
  'octet_length(scopes::text) + octet_length(resource_constraints::text) + octet_length(metadata::text) + coalesce(octet_length(proof_claims::text), 0) + 500';

/**
 * Keys that a search reads in the order of the list before it reads an index of the filter: a text that many keys have
 * fills a page among few keys.
 */
const SCANNED_KEYS = [2000];

export async function listKeys(
  q: Queryable,
  scope: TenantScope,
  filter: KeyFilter,
  page: Page,
  now: Date,
  order: KeyOrder = NEWEST_FIRST,
): Promise<PageRows<ListedKey>> {
  const found = await findSortedPage<KeyId>(q, keySearch(scope, filter, now, order), page, SCANNED_KEYS);
  const places = new Map(found.map(({ id, position }, place) => [id, { position, place }]));
  // The ids alone find the rows: with the condition on the tenant, the planner may walk through all keys of the tenant.
  const sql = `with wanted as materialized (select * from unnest(cast(:ids as text[])) with ordinality as w(wanted_id, place)),
    found as materialized (select ${columnsFrom('api_keys')}, ${OCTETS} as octets from api_keys where id = any(:ids))
    ${withinBytes(`select found.*, place from found join wanted on wanted_id = id where ${scopeCondition(scope, 'tenant_id')}`, 'place')}`;
  const { rows } = await q.raw<{ rows: (KeyRow & BoundedRow)[] }>(sql, {
    ids: found.map(({ id }) => id),
    ...scopeBinding(scope),
    ...bytesBinding(page),
  });
  return {
    rows: rows.flatMap((row) => {
      const at = places.get(row.id);
      return at === undefined ? [] : [{ ...row, position: at.position }];
    }),
    // Upkeep may have removed a key since the ids were read. Then the page is shorter, and is not the last one.
    more: found.length === page.take || (rows[0]?.rows_found ?? 0) > rows.length,
  };
}

/** Returns the ids of the newest `take` keys of a list. */
export async function listKeyIds(
  q: Queryable,
  scope: TenantScope,
  filter: KeyFilter,
  take: number,
  now: Date,
): Promise<readonly KeyId[]> {
  const search = keySearch(scope, filter, now, NEWEST_FIRST);
  const found = await findSortedPage<KeyId>(q, search, { after: undefined, take }, SCANNED_KEYS);
  return found.map(({ id }) => id);
}

export async function countKeys(
  q: Queryable,
  scope: TenantScope,
  filter: KeyFilter,
  now: Date,
  most: number,
): Promise<number> {
  const { table, matching, bindings } = keySearch(scope, filter, now, NEWEST_FIRST);
  return countUpTo(q, { sql: `select from ${table} where ${matching}`, bindings }, most);
}

/** Returns the tenant's keys among these ids that match the filter, in the order of their ids. */
export async function findKeys(
  q: Queryable,
  tenant: TenantId,
  ids: readonly KeyId[],
  filter: KeyFilter,
  now: Date,
): Promise<readonly KeyRow[]> {
  const scope = { kind: 'one', tenant } as const;
  const conditions = ['k.id = any(:ids)', scopeCondition(scope, 'k.tenant_id'), ...conditionsOf(filter)];
  const { rows } = await q.raw<{ rows: KeyRow[] }>(
    `select ${columnsFrom('k')} from api_keys k where ${conditions.join(' and ')} order by id`,
    { ...bindingsOf(scope, filter, now), ids },
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

/** Returns the users that own these keys, by the id of the key. */
export async function ownersOf(q: Queryable, keys: readonly KeyRow[]): Promise<ReadonlyMap<KeyId, KeyOwnerResource>> {
  const ids = [...new Set(keys.map((key) => key.user_id).filter((id) => id !== null))];
  if (ids.length === 0) return new Map();
  const { rows } = await q.raw<{ rows: (KeyOwnerResource & { readonly tenant_id: TenantId })[] }>(
    'select id, tenant_id, name, email from users where id = any(:ids)',
    { ids },
  );
  const owners = new Map(rows.map(({ tenant_id: tenant, ...owner }) => [`${tenant} ${owner.id}`, owner]));
  return new Map(
    keys.flatMap((key) => {
      const owner = owners.get(`${key.tenant_id} ${key.user_id}`);
      return owner === undefined ? [] : [[key.id, owner] as const];
    }),
  );
}

/** A tenant that is deleted keeps the keys that have ended. Its keys are in no list. */
const ofScope = (scope: TenantScope): string =>
  scope.kind === 'every'
    ? 'k.tenant_id <> all(array(select id from tenants where deleted_at is not null))'
    : scopeCondition(scope, 'k.tenant_id');

interface Ordered {
  readonly value: string;
  readonly kind: Sorting['kind'];
  /** The rows by the indexes of the order, within a scope. */
  readonly rows: (scope: string) => readonly OrderedRows[];
}

const KEYS = { id: 'k.id', from: 'api_keys k' };

/**
 * The table has no index of the last use, because each use would then change all indexes of the key: the keys of a
 * tenant are read and sorted.
 */
const ORDERS: Readonly<Record<KeyOrder['member'], Ordered>> = {
  created_at: {
    value: 'k.created_at',
    kind: 'time',
    rows: (scope) => [{ ...KEYS, value: 'k.created_at', where: scope }],
  },
  expires_at: {
    value: 'k.expires_at',
    kind: 'time',
    rows: (scope) => [
      { ...KEYS, value: 'k.expires_at', where: `${scope} and k.expires_at is not null` },
      { ...KEYS, value: null, where: `${scope} and k.expires_at is null` },
    ],
  },
  last_used_at: { value: 'k.last_used_at', kind: 'time', rows: () => [] },
  name: {
    value: 'lower(k.name)',
    kind: 'text',
    rows: (scope) => [
      { ...KEYS, value: 'lower(k.name)', where: `${scope} and k.name is not null` },
      { ...KEYS, value: null, where: `${scope} and k.name is null` },
    ],
  },
};

/** Returns the search of a list. */
export function keySearch(scope: TenantScope, filter: KeyFilter, now: Date, order: KeyOrder): SortedSearch {
  const { value, kind, rows } = ORDERS[order.member];
  const conditions = conditionsOf(filter);
  // Few keys match, so that reading them is cheaper than reading keys in order.
  const isNarrow = filter.userId !== undefined;
  return {
    ...{ kind, value, id: 'k.id', table: 'api_keys k', descending: order.descending },
    ordered: isNarrow ? [] : rows(ofScope(scope)),
    filter: conditions.length === 0 ? undefined : conditions.map(hidden).join(' and '),
    matching: matchingOf(scope, filter),
    bindings: bindingsOf(scope, filter, now),
  };
}

/** Hides a condition from the planner, which would choose an index of it. */
const hidden = (condition: string): string => `(${condition}) is true`;

/** The condition of a list. The planner sees the part that an index finds few keys by. */
function matchingOf(scope: TenantScope, filter: KeyFilter): string {
  const found = indexedOf(scope, filter);
  const others = [ofScope(scope), ...conditionsOf(filter)].map(hidden);
  return [found, ...others].join(' and ');
}

/** A condition that all keys of the filter meet, for an index. */
function indexedOf(scope: TenantScope, filter: KeyFilter): string {
  if (filter.userId !== undefined) return 'k.user_id = :userId';
  if (filter.prefix !== undefined) return PREFIX;
  if (filter.issuer !== undefined) return ofIssuer(scope);
  if (filter.q !== undefined) return `k.id = any(array(${idsByText(filter)}))`;
  if (filter.createdBy !== undefined) return 'k.created_by = :createdBy';
  const scoped = ofScope(scope);
  if (filter.withoutExpiry === true) return `${scoped} and k.expires_at is null`;
  if (filter.status === 'expired') return `${scoped} and k.expires_at <= :now`;
  return filter.expiresBefore === undefined ? scoped : `${scoped} and k.expires_at < :expiresBefore`;
}

/** SQL of the ids of keys with `q`, by the indexes of lexemes. */
function idsByText(filter: KeyFilter): string {
  const keys = `select t.id from api_keys t where user_lexemes(t.tenant_id, coalesce(t.user_id, ''), '{}', t.search_text)
      @@ (select user_query(cast(:tenantMark as text), null, null, lower(cast(:q as text))))
    and (position((select lower(:q)) in t.search_text) > 0) is true`;
  if (filter.searchesOwners !== true) return keys;
  return `${keys} union select t.id from users o join api_keys t on t.user_id = o.id and t.tenant_id = o.tenant_id
    where user_lexemes(o.tenant_id, o.status, o.role_names, o.search_text)
      @@ (select user_query(cast(:tenantMark as text), null, null, lower(cast(:q as text)))) and (${NAMES_OWNER}) is true`;
}

const OF_ISSUER =
  'k.proof_issuer_id in (select i.id from issuers i where i.name = :issuer and i.tenant_id = k.tenant_id)';

/** A condition that all keys of the issuers with the name meet, for an index. */
const ofIssuer = (scope: TenantScope): string =>
  `k.proof_issuer_id = any(array(select i.id from issuers i where i.name = :issuer and ${scopeCondition(scope, 'i.tenant_id')}))`;

const NAMES_OWNER = `position((select lower(:q)) in lower(o.name)) > 0 or position((select lower(:q)) in o.email) > 0`;
const PREFIX = 'k.prefix collate "C" >= :prefix and k.prefix collate "C" < :prefixEnd';

const STATUS_CONDITIONS: Readonly<Record<KeyStatus, string>> = {
  active: 'not k.revoked and k.disabled_at is null and (k.expires_at is null or k.expires_at > :now)',
  disabled: 'not k.revoked and k.disabled_at is not null',
  expired: 'not k.revoked and k.disabled_at is null and k.expires_at <= :now',
  revoked: 'k.revoked',
};

/** Every condition on `api_keys k` except the scope's. */
function conditionsOf(filter: KeyFilter): readonly string[] {
  const { status, q } = filter;
  const text = 'position((select lower(:q)) in k.search_text) > 0';
  const owners = `exists (select from users o where o.id = k.user_id and o.tenant_id = k.tenant_id and (${NAMES_OWNER}))`;
  return [
    ...(filter.userId === undefined ? [] : ['k.user_id = :userId']),
    ...(filter.createdBy === undefined ? [] : ['k.created_by = :createdBy']),
    ...(status === undefined ? [] : [STATUS_CONDITIONS[status]]),
    ...(filter.expiresBefore === undefined ? [] : ['k.expires_at < :expiresBefore']),
    ...(filter.withoutExpiry === true ? ['k.expires_at is null'] : []),
    ...(filter.unusedSince === undefined ? [] : ['coalesce(k.last_used_at, k.created_at) < :unusedSince']),
    ...(filter.widerThan === undefined ? [] : [WIDER_THAN_USED]),
    ...(filter.issuer === undefined ? [] : [OF_ISSUER]),
    ...(filter.prefix === undefined ? [] : [PREFIX]),
    ...(q === undefined ? [] : [filter.searchesOwners === true ? `${text} or ${owners}` : text]),
  ].map((condition) => `(${condition})`);
}

/** Sorts after every text of printable ASCII. */
const AFTER_ASCII = '\x7f';

function bindingsOf(scope: TenantScope, filter: KeyFilter, now: Date): NamedQuery['bindings'] {
  const { userId, createdBy, expiresBefore, unusedSince, widerThan, issuer, prefix, q } = filter;
  return {
    ...scopeBinding(scope),
    ...present({ userId, createdBy, expiresBefore, unusedSince, issuer }),
    ...(widerThan === undefined ? {} : widerBindings(widerThan, now)),
    ...(prefix === undefined ? {} : { prefix, prefixEnd: prefix + AFTER_ASCII }),
    ...(q === undefined ? {} : { q, tenantMark: scopeBinding(scope).tenant ?? null }),
    now,
  };
}
