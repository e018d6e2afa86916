/**
 * Which API keys a list shows.
 *
 * Status and expiry are one interval of `expires_at`, and the store keeps the keys of each month of expiry in the order of the list. So a
 * page is put together from the first keys of each month in the interval; only in the months at its ends is there anything to leave out.
 * All that this asks of a tenant's keys is in the index.
 */

import type { KeyId, UserId } from '../../domain/ids.ts';
import { type Page, scopeBinding, scopeCondition, type TenantScope } from '../../store/paging.ts';
import type { NamedQuery } from '../../store/prepared.ts';
import type { KeyStatus } from './entity.ts';

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

const STATUS_CONDITIONS: Readonly<Record<KeyStatus, string>> = {
  active: 'not k.revoked and (k.expires_at is null or k.expires_at > :now)',
  expired: 'not k.revoked and k.expires_at <= :now',
  revoked: 'k.revoked',
};

/** The months that hold every key of a status, as `api_keys.expiry_month` counts them; what never expires is after all. */
const STATUS_MONTHS: Readonly<Record<KeyStatus, readonly string[]>> = {
  active: ['not revoked', 'expiry_month >= expiry_month_of(:now)'],
  expired: ['not revoked', 'expiry_month <= expiry_month_of(:now)'],
  revoked: ['revoked'],
};

/** A statement that gives `id`, in order, for a filter without `prefix` and `q`, which key-search.ts adds. */
export function keyIdsInOrder(scope: TenantScope, filter: KeyFilter, page: Page, now: Date): NamedQuery {
  const conditions = keyConditions(scope, filter, page);
  const months = monthsOf(filter);
  const bindings = keyBindings(scope, filter, page, now);
  return {
    sql: months.length === 0 ? all(conditions) : byMonth(ownersOf(scope, filter), conditions, months),
    bindings,
  };
}

/** A statement that gives one row for each key, in no order, for the same filters. */
export function keysInAnyOrder(scope: TenantScope, filter: KeyFilter, now: Date): NamedQuery {
  const page = { after: undefined, take: 0 };
  const months = monthsOf(filter).map((condition) => `k.${condition}`.replace('k.not ', 'not k.'));
  const conditions = [...keyConditions(scope, filter, page), ...months];
  return {
    sql: `select from api_keys k where ${conditions.join(' and ')}`,
    bindings: keyBindings(scope, filter, page, now),
  };
}

/** Every condition on `api_keys k` except those of `prefix` and `q`. */
export function keyConditions(scope: TenantScope, filter: KeyFilter, page: Page): readonly string[] {
  return [
    ...ownersOf(scope, filter),
    ...(page.after === undefined ? [] : ['k.id > :after']),
    ...(filter.status === undefined ? [] : [STATUS_CONDITIONS[filter.status]]),
    ...(filter.expiresBefore === undefined ? [] : ['k.expires_at < :expiresBefore']),
  ];
}

/** The conditions of `prefix` and `q`. */
export function textConditions(filter: KeyFilter): readonly string[] {
  return [
    ...(filter.prefix === undefined ? [] : ['k.prefix collate "C" >= :prefix and k.prefix collate "C" < :prefixEnd']),
    ...(filter.q === undefined ? [] : ['position((select lower(:q)) in k.search_text) > 0']),
  ];
}

/** Sorts after every text of printable ASCII. */
const AFTER_ASCII = '\x7f';

export function keyBindings(scope: TenantScope, filter: KeyFilter, page: Page, now: Date): NamedQuery['bindings'] {
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

function ownersOf(scope: TenantScope, filter: KeyFilter): readonly string[] {
  return [
    scopeCondition(scope, 'k.tenant_id'),
    ...(filter.userId === undefined ? [] : ['k.user_id = :userId']),
    ...(filter.createdBy === undefined ? [] : ['k.created_by = :createdBy']),
  ];
}

function monthsOf(filter: KeyFilter): readonly string[] {
  return [
    ...(filter.status === undefined ? [] : STATUS_MONTHS[filter.status]),
    // The index of creators is in the order of months as well. The planner would otherwise walk through all keys for a creator of few.
    ...(filter.createdBy === undefined ? [] : ['expiry_month is not null']),
    ...(filter.expiresBefore === undefined ? [] : ['expiry_month <= expiry_month_of(:expiresBefore)']),
  ];
}

function all(conditions: readonly string[]): string {
  return `select k.id from api_keys k where ${conditions.join(' and ')} order by k.id limit :take`;
}

/** Steps from month to month through the index, and takes a page from each. */
function byMonth(whose: readonly string[], conditions: readonly string[], months: readonly string[]): string {
  const step = (beyond: string): string =>
    `select k.expiry_month, k.revoked from api_keys k where ${[...whose, beyond].join(' and ')} order by k.expiry_month, k.revoked limit 1`;
  return `with recursive months as (
      (${step('true')})
      union all
      select next.* from months m cross join lateral (${step('(k.expiry_month, k.revoked) > (m.expiry_month, m.revoked)')}) next
    )
    select found.id from months m cross join lateral (
      select k.id from api_keys k
      where k.expiry_month = m.expiry_month and k.revoked = m.revoked and ${conditions.join(' and ')}
      order by k.id limit :take
    ) found
    where ${months.map((condition) => `m.${condition}`.replace('m.not ', 'not m.')).join(' and ')}
    order by found.id limit :take`;
}
