/** Statements that take what is to be announced, and mark it, in the transaction of its audit rows. */

import type { IssuerId, TenantId } from '../../domain/ids.ts';
import type { BudgetRecord } from '../../domain/records.ts';
import { runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { KeyRow } from '../api-keys/entity.ts';

export interface BudgetAlert {
  readonly tenant_id: TenantId;
  /** Null: the monthly tokens of the tenant. */
  readonly budget_id: string | null;
  readonly name: string | null;
  readonly unit: BudgetRecord['unit'] | null;
  readonly period: string;
  readonly threshold: number;
  /** Digits: an amount of money may exceed a number. */
  readonly spent: string;
  readonly limit_amount: string;
}

const ALERTS = {
  name: 'take_budget_alerts',
  text: `
    with taken as (
      select id from budget_alerts where announced_at is null order by id limit $1 for update skip locked
    ), marked as (
      update budget_alerts a set announced_at = clock_timestamp() from taken where a.id = taken.id returning a.*
    )
    select m.tenant_id, m.budget_id, b.name, b.unit, m.period, m.threshold, m.spent::text, m.limit_amount::text
    from marked m left join budgets b on b.id = m.budget_id order by m.id`,
};

/** Returns thresholds that are not announced yet, and marks them. */
export async function takeAlerts(trx: Queryable, take: number): Promise<readonly BudgetAlert[]> {
  return runPrepared<BudgetAlert>(trx, ALERTS, [take]);
}

/**
 * Locks the places until the transaction ends. Empty: another process has them.
 * @returns the days before the end of a key
 */
export async function holdKeyEnds(trx: Queryable): Promise<readonly { readonly days: number }[]> {
  const { rows } = await trx.raw<{ rows: { days: number }[] }>(
    'select days from key_end_cursors order by days for update skip locked',
  );
  return rows;
}

export interface EndingKey extends Pick<KeyRow, 'id' | 'tenant_id' | 'user_id' | 'name' | 'prefix'> {
  readonly expires_at: Date;
  readonly revoked: boolean;
}

const KEY_ENDS = {
  name: 'advance_key_ends',
  text: `
    with place as (
      select ends_before, key_id, clock_timestamp() + make_interval(days => days) as until from key_end_cursors where days = $1
    ), passed as (
      -- A join would read the index of all keys.
      select k.* from place p cross join lateral (
        select id, tenant_id, user_id, name, prefix, expires_at, revoked_at is not null as revoked, expires_at as ends
        from api_keys where (expires_at, id) > (p.ends_before, p.key_id) and expires_at < p.until
        order by expires_at, id limit $2
      ) k
    ), moved as (
      update key_end_cursors c set (ends_before, key_id) = (
        select l.ends, l.id from (
          select ends, id from passed where (select count(*) from passed) = $2
          union all select p.until, '' from place p where (select count(*) from passed) < $2
        ) l order by l.ends desc, l.id desc limit 1
      ) where c.days = $1
    )
    select id, tenant_id, user_id, name, prefix, expires_at, revoked from passed order by expires_at, id`,
};

/**
 * Returns the keys that reach the time of a locked place since the last call, and moves the place behind them. A key
 * that begins to exist within that time is not returned.
 */
export async function advanceKeyEnds(trx: Queryable, days: number, take: number): Promise<readonly EndingKey[]> {
  return runPrepared<EndingKey>(trx, KEY_ENDS, [days, take]);
}

export interface StaleIssuer {
  readonly id: IssuerId;
  readonly tenant_id: TenantId;
  readonly name: string;
  /** Null: never. */
  readonly fetched_at: Date | null;
  readonly error: string | null;
}

const STALE = {
  name: 'mark_stale_issuers',
  text: `
    with stale as (
      select k.issuer_id, coalesce(k.fetched_at, i.created_at) as since
      from issuer_keys k join issuers i on i.id = k.issuer_id
      where i.enabled and i.jwks is null and coalesce(k.fetched_at, i.created_at) < clock_timestamp() - make_interval(secs => $1)
        and k.stale_announced_for is distinct from coalesce(k.fetched_at, i.created_at)
      order by 1 limit $2 for update of k skip locked
    )
    update issuer_keys k set stale_announced_for = stale.since from stale, issuers i
    where k.issuer_id = stale.issuer_id and i.id = stale.issuer_id
    returning i.id, i.tenant_id, i.name, k.fetched_at, k.error`,
};

/** Returns enabled issuers whose keys have become too old, each once, and marks them. */
export async function markStale(trx: Queryable, maxStalenessMs: number, take: number): Promise<readonly StaleIssuer[]> {
  return runPrepared<StaleIssuer>(trx, STALE, [maxStalenessMs / 1000, take]);
}
