/** Usage that platforms tell of themselves: each event is booked once, by its id. */

import type { TenantId } from '../../domain/ids.ts';
import type { Queryable } from '../../store/queryable.ts';

/** How long ago an event may have happened that is sent now; afterwards its id need not be remembered. */
export const MAX_EVENT_AGE_DAYS = 35;

export interface UsageEvent {
  /** As the platform calls it. */
  readonly id: string;
  readonly time: Date;
  /** `2026-11-30` and `2026-11` in the tenant's time zone. */
  readonly day: string;
  readonly period: string;
  readonly model: string;
  /** Empty = none. */
  readonly keyId: string;
  readonly userId: string;
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Of the prompt's. */
  readonly cachedTokens: number;
  readonly totalTokens: number;
}

/**
 * Takes those events down that were not there; of the others nobody hears twice, however many transactions try at once.
 * @param events no two of one id
 * @returns the ids of those that are new
 */
export async function takeEvents(
  trx: Queryable,
  tenant: TenantId,
  events: readonly UsageEvent[],
): Promise<ReadonlySet<string>> {
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    // In one order, so that two batches with the same events do not wait for each other.
    `insert into usage_events (tenant_id, id, time)
     select :tenant, e.id, e.time from jsonb_to_recordset(cast(:events as jsonb)) as e(id text, time timestamptz)
     order by e.id on conflict do nothing returning id`,
    { tenant, events: JSON.stringify(events.map(({ id, time }) => ({ id, time }))) },
  );
  return new Set(rows.map((row) => row.id));
}

/** Adds them to usage and to what is spent of their period's tokens. */
export async function bookEvents(trx: Queryable, tenant: TenantId, events: readonly UsageEvent[]): Promise<void> {
  const entries = events.map((event) => ({
    tenant_id: tenant,
    day: event.day,
    period: event.period,
    model: event.model,
    key_id: event.keyId,
    user_id: event.userId,
    requests: event.requests,
    prompt_tokens: event.promptTokens,
    completion_tokens: event.completionTokens,
    cached_tokens: event.cachedTokens,
    total_tokens: event.totalTokens,
    estimated: false,
    books: true,
  }));
  await trx.raw(
    `select metering_book(array(
       select e from jsonb_populate_recordset(cast(null as metering_entry), cast(:entries as jsonb)) e))`,
    { entries: JSON.stringify(entries) },
  );
}

/** Deletes ids that nobody can send again, the oldest first; answers how many. A day longer than that: clocks differ. */
export async function pruneEvents(q: Queryable, batch: number): Promise<number> {
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `delete from usage_events where (tenant_id, id) in (
       select tenant_id, id from usage_events where time < clock_timestamp() - interval '${MAX_EVENT_AGE_DAYS + 1} days'
       order by time limit :batch for update skip locked)`,
    { batch },
  );
  return rowCount;
}
