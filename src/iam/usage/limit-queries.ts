/** The usage of a tenant's limits. */

import type { ModelRate } from '../../decision/model-rates.ts';
import { Fault } from '../../domain/errors.ts';
import type { KeyId, TenantId } from '../../domain/ids.ts';
import { rateSubjectName } from '../../metering/rate-plans.ts';
import { placesOf } from '../../metering/request-plans.ts';
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
  /** As `granted`, by the names of the subjects of limits by model. */
  readonly grantedByModel: Readonly<Record<string, number>>;
  /** The places that all processes hold, by the names of their budgets. */
  readonly places: Readonly<Record<string, number>>;
}

interface LimitsAsked {
  readonly tenant: TenantId;
  /** The calendar month in the tenant's time zone: `2026-11` */
  readonly period: string;
  /** The key whose rate is read as well. */
  readonly key?: KeyId | undefined;
  /** The limits by model that are read as well. */
  readonly rates?: readonly ModelRate[] | undefined;
}

export async function readLimits(q: Queryable, asked: LimitsAsked, windowMs: number): Promise<LimitsState> {
  const state = (await readLimitsOf(q, [asked], windowMs)).get(asked.tenant);
  if (state === undefined) throw new Fault('the database returned no answer about limits');
  return state;
}

/** Reads the limits of several tenants in one statement. */
export async function readLimitsOf(
  q: Queryable,
  asked: readonly LimitsAsked[],
  windowMs: number,
): Promise<ReadonlyMap<string, LimitsState>> {
  if (asked.length === 0) return new Map();
  const { rows } = await q.raw<{ rows: (LimitsState & { readonly tenant: string })[] }>(
    `with now_window as materialized (
       select cast(floor(extract(epoch from clock_timestamp()) * 1000 / :windowMs) as bigint) as number
     )
     select
       a.tenant,
       (n.number + 1) * cast(:windowMs as bigint) as "windowEndsMs",
       coalesce((select w.granted from rate_windows w where w.subject = 'tenant:' || a.tenant and w.number = n.number), 0) as granted,
       coalesce((select w.granted from rate_windows w where w.subject = 'key:' || a.key and w.number = n.number), 0) as "keyGranted",
       coalesce((select b.spent from token_budgets b where b.tenant_id = a.tenant and b.period = a.period), 0) as spent,
       coalesce((select b.held from token_budgets b where b.tenant_id = a.tenant and b.period = a.period), 0) as held,
       (select count(*) from users u where u.tenant_id = a.tenant and u.status = 'active') as "activeUsers",
       coalesce((select c.count from collection_counts c where c.tenant_id = a.tenant), 0) as collections,
       (select count(*) from collection_reservations r where r.tenant_id = a.tenant and r.expires_at > clock_timestamp())
         as "collectionsReserved",
       coalesce((select jsonb_object_agg(w.subject, w.granted) from rate_windows w
         where w.subject = any(a.rates) and w.number = n.number), '{}') as "grantedByModel",
       coalesce((select jsonb_object_agg(b.period, b.held) from token_budgets b
         where b.tenant_id = a.tenant and b.period = any(a.places)), '{}') as places
     from now_window n
     cross join jsonb_to_recordset(cast(:asked as jsonb)) as a (tenant text, period text, key text, rates text[], places text[])`,
    { asked: JSON.stringify(asked.map(({ rates = [], ...each }) => ({ ...each, ...countersOf(rates) }))), windowMs },
  );
  return new Map(rows.map(({ tenant, ...state }) => [tenant, state]));
}

function countersOf(rates: readonly ModelRate[]) {
  const [places, others] = [
    rates.filter(({ dimension }) => dimension === 'parallel'),
    rates.filter(({ dimension }) => dimension !== 'parallel'),
  ];
  return { rates: others.map(rateSubjectName), places: places.map(placesOf) };
}

/** Returns the usage of a limit by model: requests and tokens of the current minute, or places. */
export function usedOf({ grantedByModel, places }: LimitsState, rate: ModelRate): number {
  return (rate.dimension === 'parallel' ? places[placesOf(rate)] : grantedByModel[rateSubjectName(rate)]) ?? 0;
}

export interface Activity {
  readonly tenant: string;
  readonly requests: number;
  readonly denied: number;
}

const HOURS_OF_DENIALS = 24;
/** SQL for the denials of each tenant in the last hours, by the index of denials. */
export const DENIALS = `select tenant_id collate "default" as tenant_id, cast(sum(decisions) as bigint) as denied from decision_counts
  where code not in ('allow', 'public', 'unavailable') and minute >= clock_timestamp() - interval '${HOURS_OF_DENIALS} hours'
  group by 1`;

/** Reads the requests of the current month and the latest denials of several tenants. */
export async function readActivityOf(
  q: Queryable,
  asked: readonly LimitsAsked[],
): Promise<ReadonlyMap<string, Activity>> {
  if (asked.length === 0) return new Map();
  const { rows } = await q.raw<{ rows: Activity[] }>(
    `with denials as materialized (${DENIALS})
     select a.tenant, coalesce(d.denied, 0) as denied,
       cast(coalesce((select sum(u.requests) from usage_by_model u
         where u.tenant_id = a.tenant and u.day >= cast(a.period || '-01' as date)), 0) as bigint) as requests
     from jsonb_to_recordset(cast(:asked as jsonb)) as a (tenant text, period text) left join denials d on d.tenant_id = a.tenant`,
    { asked: JSON.stringify(asked) },
  );
  return new Map(rows.map((row) => [row.tenant, row]));
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
 * Notes the alerts that the spent tokens of a period have reached, each once. A change of the quota calls it, as a
 * change of a budget calls `noteReachedAlerts`.
 */
export async function noteQuotaAlerts(trx: Queryable, tenant: TenantId, period: string): Promise<void> {
  await trx.raw(
    `select metering_note_alerts(array[tenant_id], array[period], array[spent]) from token_budgets
     where tenant_id = :tenant and period = :period`,
    { tenant, period },
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
