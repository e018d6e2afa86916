/** The usage of a tenant's limits. */

import { Fault } from '../../domain/errors.ts';
import type { KeyId, TenantId } from '../../domain/ids.ts';
import type { Queryable } from '../../store/queryable.ts';

export interface LimitsState {
  /**
   * Requests that the database granted to all processes in the current rate limit window, including those leased ahead
   * of need.
   */
  readonly granted: number;
  /** The same for one key; 0 without a key. */
  readonly keyGranted: number;
  /** The end of that window by the database's clock, milliseconds since the epoch. */
  readonly windowEndsMs: number;
  /** Tokens spent in the period, and tokens held by all processes: for requests in progress, and ahead of need. */
  readonly spent: number;
  readonly held: number;
  readonly activeUsers: number;
  readonly collections: number;
  /** Creations that were admitted and have not been answered. */
  readonly collectionsReserved: number;
}

/**
 * @param period the calendar month in the tenant's time zone: `2026-11`
 * @param key the key whose rate is read as well
 */
export async function readLimits(
  q: Queryable,
  tenant: TenantId,
  period: string,
  windowMs: number,
  key?: KeyId,
): Promise<LimitsState> {
  const { rows } = await q.raw<{ rows: LimitsState[] }>(
    `with now_window as materialized (
       select cast(floor(extract(epoch from clock_timestamp()) * 1000 / :windowMs) as bigint) as number
     )
     select
       (n.number + 1) * cast(:windowMs as bigint) as "windowEndsMs",
       coalesce((select w.granted from rate_windows w where w.subject = :subject and w.number = n.number), 0) as granted,
       coalesce((select w.granted from rate_windows w where w.subject = :keySubject and w.number = n.number), 0) as "keyGranted",
       coalesce((select b.spent from token_budgets b where b.tenant_id = :tenant and b.period = :period), 0) as spent,
       coalesce((select b.held from token_budgets b where b.tenant_id = :tenant and b.period = :period), 0) as held,
       (select count(*) from users u where u.tenant_id = :tenant and u.status = 'active') as "activeUsers",
       coalesce((select c.count from collection_counts c where c.tenant_id = :tenant), 0) as collections,
       (select count(*) from collection_reservations r where r.tenant_id = :tenant and r.expires_at > clock_timestamp())
         as "collectionsReserved"
     from now_window n`,
    { tenant, subject: `tenant:${tenant}`, keySubject: `key:${key ?? ''}`, period, windowMs },
  );
  const [state] = rows;
  if (state === undefined) throw new Fault('the database returned no answer about limits');
  return state;
}

/** Sets the spent tokens of a period. Later bookings add to them. */
export async function setSpent(trx: Queryable, tenant: TenantId, period: string, spent: number): Promise<void> {
  await trx.raw(
    `insert into token_budgets (tenant_id, period, spent) values (:tenant, :period, :spent)
     on conflict (tenant_id, period) do update set spent = excluded.spent`,
    { tenant, period, spent },
  );
}

/**
 * Sets the number of collections. Creations in progress are counted when they are answered. The removed names are
 * forgotten, because each may be among the counted ones.
 */
export async function setCollections(trx: Queryable, tenant: TenantId, count: number): Promise<void> {
  await trx.raw(
    `insert into collection_counts (tenant_id, count) values (:tenant, :count)
     on conflict (tenant_id) do update set count = excluded.count, unmatched = '{}'`,
    { tenant, count },
  );
  await trx.raw('delete from collection_removals where tenant_id = :tenant', { tenant });
}
