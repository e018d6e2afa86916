/**
 * Usage events of platforms that meter themselves. Each counts once, by its id. They report past usage, so no quota
 * rejects them.
 */

import { NO_PRICES } from '../../decision/prices.ts';
import { Refusal } from '../../domain/errors.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { throwIfInvalid } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { chargesOfEvents, type PricedUsage, type PriceHistory, priceEvent } from './event-charges.ts';
import { bookEvents, type EventId, MAX_EVENT_AGE_DAYS, takeEvents, type UsageEntry } from './event-queries.ts';
import type { MeteringParts } from './parts.ts';
import { dayIn, momentOf } from './period.ts';
import type { UsageEvent, UsageEventsCount } from './schemas.ts';

/** The difference that the server accepts between its clock and a platform's. */
const MAX_AHEAD_MS = 300_000;
const DAY_MS = 86_400_000;

/**
 * Records all events, or none.
 * @throws Refusal `invalid_field`; `in_use` if Envoy meters the tenant
 */
export async function recordEvents(
  parts: AdminParts & MeteringParts,
  caller: Caller,
  requests: readonly UsageEvent[],
  history: PriceHistory,
): Promise<UsageEventsCount> {
  const { tenant } = caller;
  if (!parts.metering.metersItself(tenant)) {
    throw new Refusal(
      'in_use',
      "The usage of this tenant comes from Envoy's reports, so the server accepts no usage events for it. The setting usage.source selects the source.",
    );
  }
  throwIfInvalid(requests.flatMap((request, i) => errorsOf(request, `/events/${i}`, caller.nowMs)));
  const { effective } = caller.snapshot;
  // The first event of each id.
  const unique = [...new Map(requests.toReversed().map((request) => [request.id, request])).values()];
  const entry = { action: 'usage.record', target: { type: 'tenant', id: tenant } } as const;
  return change(parts, caller, entry, async ({ trx, audit }) => {
    const prices = await history.at(
      trx,
      unique.map(({ time }) => Date.parse(time)),
    );
    const chargesOf = await chargesOfEvents(trx, effective, unique);
    const events = unique.map((request, i) => {
      const price = priceEvent(prices[i] ?? NO_PRICES, request);
      return eventOf(request, effective?.settings.timezone, { ...price, charges: chargesOf(request) });
    });
    const fresh = await takeEvents(trx, tenant, events);
    const booked = events.flatMap((event) => (fresh.has(event.id) ? [event.usage] : []));
    if (booked.length > 0) await bookEvents(trx, tenant, booked);
    const result = { accepted: booked.length, duplicates: requests.length - booked.length };
    audit.after = { ...result, total_tokens: booked.reduce((sum, { total_tokens }) => sum + total_tokens, 0) };
    return result;
  });
}

function errorsOf(request: UsageEvent, at: string, nowMs: number): readonly FieldError[] {
  const { prompt_tokens: prompt, completion_tokens: completion, cached_tokens: cached = 0 } = request;
  const { cache_write_tokens: cacheWrite = 0 } = request;
  const errors: FieldError[] = [];
  const timeMs = Date.parse(request.time);
  if (!(timeMs > nowMs - MAX_EVENT_AGE_DAYS * DAY_MS && timeMs < nowMs + MAX_AHEAD_MS)) {
    errors.push({ path: `${at}/time`, message: `Must be a time within the last ${MAX_EVENT_AGE_DAYS} days.` });
  }
  if (cached > prompt)
    errors.push({
      path: `${at}/cached_tokens`,
      message: 'Must not exceed the prompt tokens, because it is a part of them.',
    });
  else if (cached + cacheWrite > prompt)
    errors.push({
      path: `${at}/cache_write_tokens`,
      message: 'Must not exceed the prompt tokens that were not read from the cache.',
    });
  if (request.total_tokens !== undefined && request.total_tokens < prompt + completion) {
    errors.push({
      path: `${at}/total_tokens`,
      message: 'Must be at least the sum of the prompt and completion tokens.',
    });
  }
  return errors;
}

function eventOf(
  event: UsageEvent,
  timezone: string | undefined,
  { cost, priceVersion, charges }: PricedUsage & Pick<UsageEntry, 'charges'>,
): EventId & { readonly usage: UsageEntry } {
  const { id, model, requests = 1, prompt_tokens, completion_tokens, cached_tokens = 0 } = event;
  const time = new Date(event.time);
  const moment = momentOf(timezone, time.getTime());
  const usage: UsageEntry = {
    day: dayIn(moment),
    period: moment.period,
    model,
    key_id: event.key_id ?? '',
    user_id: event.user_id ?? '',
    requests,
    prompt_tokens,
    completion_tokens,
    cached_tokens,
    total_tokens: event.total_tokens ?? prompt_tokens + completion_tokens,
    cost,
    price_version: priceVersion,
    charges,
  };
  return { id, time, usage };
}
