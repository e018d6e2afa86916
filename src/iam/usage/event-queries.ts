/** Usage that platforms report themselves. Each event is booked once, by its id. */

import type { KeyId, RoleName, TenantId, UserId } from '../../domain/ids.ts';
import type { Metadata } from '../../domain/records.ts';
import type { Charge } from '../../metering/ports.ts';
import { chargeWord } from '../../store/metering/entry.ts';
import type { Queryable } from '../../store/queryable.ts';

/** The largest age of an event that the server accepts. The id of an older one need not be remembered. */
export const MAX_EVENT_AGE_DAYS = 35;

export interface EventId {
  /** The id that the platform chose. */
  readonly id: string;
  readonly time: Date;
}

/** An event's usage, with members of the database's type `metering_entry`. */
export interface UsageEntry {
  /** `2026-11-30` and `2026-11` in the tenant's time zone. */
  readonly day: string;
  readonly period: string;
  readonly model: string;
  /** Empty = none; the same applies to `user_id`. */
  readonly key_id: string;
  readonly user_id: string;
  readonly requests: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cached_tokens: number;
  readonly total_tokens: number;
  /** In 10^-9 of the currency. */
  readonly cost: number;
  /** The version of the price list; 0 = the model had no price. */
  readonly price_version: number;
  /** The budgets that count the event. */
  readonly charges: readonly Charge[];
}

/** The members of a key by which budgets select. */
export interface BudgetedKey {
  readonly id: KeyId;
  /** Undefined: a key of the tenant. */
  readonly owner: UserId | undefined;
  readonly metadata: Metadata;
}

/** Reads keys of a tenant. Ids of other tenants and unknown ones have no row. */
export async function readBudgetedKeys(
  q: Queryable,
  tenant: TenantId,
  ids: readonly string[],
): Promise<readonly BudgetedKey[]> {
  if (ids.length === 0) return [];
  const { rows } = await q.raw<{ rows: { id: KeyId; user_id: UserId | null; metadata: Metadata }[] }>(
    'select id, user_id, metadata from api_keys where id = any(cast(:ids as text[])) and tenant_id = :tenant',
    { tenant, ids },
  );
  return rows.map(({ id, user_id, metadata }) => ({ id, owner: user_id ?? undefined, metadata }));
}

/** Reads the roles of users of a tenant. Ids of other tenants and unknown ones have no row. */
export async function readRolesOf(
  q: Queryable,
  tenant: TenantId,
  ids: readonly string[],
): Promise<readonly { readonly id: UserId; readonly roles: readonly RoleName[] }[]> {
  if (ids.length === 0) return [];
  const { rows } = await q.raw<{ rows: { id: UserId; roles: readonly RoleName[] }[] }>(
    `select u.id, array(select distinct r.role_name from user_roles r where r.user_id = u.id) as roles
     from users u where u.id = any(cast(:ids as text[])) and u.tenant_id = :tenant`,
    { tenant, ids },
  );
  return rows;
}

/**
 * Records the ids of events. Of any number of concurrent transactions, only one gets an id.
 * @param events unique by id
 * @returns the new ids
 */
export async function takeEvents(
  trx: Queryable,
  tenant: TenantId,
  events: readonly EventId[],
): Promise<ReadonlySet<string>> {
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    // Ordered, so that two batches with the same events do not deadlock.
    `insert into usage_events (tenant_id, id, time)
     select :tenant, e.id, e.time from jsonb_to_recordset(cast(:events as jsonb)) as e(id text, time timestamptz)
     order by e.id on conflict do nothing returning id`,
    { tenant, events: JSON.stringify(events.map(({ id, time }) => ({ id, time }))) },
  );
  return new Set(rows.map((row) => row.id));
}

/** Adds the entries to the usage, to the spent tokens of their periods, and to their budgets. */
export async function bookEvents(trx: Queryable, tenant: TenantId, entries: readonly UsageEntry[]): Promise<void> {
  const items = entries.map((entry) => ({
    ...entry,
    ...{ charges: entry.charges.map(chargeWord), tenant_id: tenant, estimated: false, books: true },
  }));
  await trx.raw(
    `select metering_book(array(
       select e from jsonb_populate_recordset(cast(null as metering_entry), cast(:entries as jsonb)) e))`,
    { entries: JSON.stringify(items) },
  );
}

/**
 * Deletes the ids of events that the server no longer accepts, the oldest first. It keeps them for another day, because
 * clocks differ.
 * @returns the number of deleted ids
 */
export async function pruneEvents(q: Queryable, batch: number): Promise<number> {
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `delete from usage_events where (tenant_id, id) in (
       select tenant_id, id from usage_events where time < clock_timestamp() - interval '${MAX_EVENT_AGE_DAYS + 1} days'
       order by time limit :batch for update skip locked)`,
    { batch },
  );
  return rowCount;
}
