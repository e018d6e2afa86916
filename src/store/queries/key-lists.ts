/**
 * Which API keys a list shows.
 *
 * Status and expiry are one interval of `expires_at`, and the store keeps the keys of each month of expiry in the order of the list. So a
 * page is put together from the first keys of each month in the interval; only in the months at its ends is there anything to leave out.
 * All that this asks of a tenant's keys is in the index.
 */

import type { UserId } from '../../domain/ids.ts';
import type { Asking } from '../asking.ts';
import { type Page, scopeBinding, scopeCondition, type TenantScope } from './rows.ts';

export type KeyStatus = 'active' | 'expired' | 'revoked';

export interface KeyFilter {
  readonly status?: KeyStatus;
  readonly userId?: UserId;
  readonly expiresBefore?: Date;
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

/** A statement that gives `id`, in order. */
export function keyIdsInOrder(scope: TenantScope, filter: KeyFilter, page: Page, now: Date): Asking {
  const after = page.after?.[0];
  const whose = [scopeCondition(scope, 'k.tenant_id'), ...(filter.userId === undefined ? [] : ['k.user_id = :userId'])];
  const conditions = [
    ...whose,
    ...(after === undefined ? [] : ['k.id > :after']),
    ...(filter.status === undefined ? [] : [STATUS_CONDITIONS[filter.status]]),
    ...(filter.expiresBefore === undefined ? [] : ['k.expires_at < :expiresBefore']),
  ];
  const months = [
    ...(filter.status === undefined ? [] : STATUS_MONTHS[filter.status]),
    ...(filter.expiresBefore === undefined ? [] : ['expiry_month <= expiry_month_of(:expiresBefore)']),
  ];
  return {
    sql: months.length === 0 ? all(conditions) : byMonth(whose, conditions, months),
    bindings: {
      ...scopeBinding(scope),
      ...(after === undefined ? {} : { after }),
      ...(filter.userId === undefined ? {} : { userId: filter.userId }),
      ...(filter.expiresBefore === undefined ? {} : { expiresBefore: filter.expiresBefore }),
      ...(filter.status === undefined ? {} : { now }),
      take: page.take,
    },
  };
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
