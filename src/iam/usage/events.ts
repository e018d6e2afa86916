/** Usage events of platforms that meter themselves. Each counts once, by its id; they are facts, so no quota refuses them. */

import { Refusal } from '../../domain/errors.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { throwIfInvalid } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { bookEvents, MAX_EVENT_AGE_DAYS, takeEvents, type UsageEvent } from './event-queries.ts';
import type { MeteringParts } from './parts.ts';
import { dayIn, momentOf } from './period.ts';

export interface UsageEventRequest {
  /** Of the platform's making: an event of an id that was heard of counts no second time. */
  readonly id: string;
  readonly model: string;
  readonly key_id?: string | null;
  readonly user_id?: string | null;
  /** RFC 3339 */
  readonly time: string;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  /** Of the prompt's. */
  readonly cached_tokens?: number;
  /** Prompt and completion together unless told. */
  readonly total_tokens?: number;
  /** 1 unless told. */
  readonly requests?: number;
}

export interface UsageEventsResource {
  readonly accepted: number;
  /** Events that were heard of before, in this batch or another. */
  readonly duplicates: number;
}

export const MAX_EVENTS = 1000;
/** Clocks of platforms differ. */
const MAX_AHEAD_MS = 300_000;
const DAY_MS = 86_400_000;

/**
 * All of a batch, or nothing.
 * @throws Refusal `invalid_field`; `in_use` where Envoy meters the tenant
 */
export async function recordEvents(
  parts: AdminParts & MeteringParts,
  caller: Caller,
  requests: readonly UsageEventRequest[],
): Promise<UsageEventsResource> {
  const { tenant } = caller;
  if (!parts.metering.metersItself(tenant)) {
    throw new Refusal(
      'in_use',
      "The usage of this tenant comes from Envoy's reports, so the server accepts no usage events for it. The setting usage.source selects the source.",
    );
  }
  throwIfInvalid(requests.flatMap((request, i) => errorsOf(request, `/events/${i}`, caller.nowMs)));
  const timezone = caller.snapshot.effective?.settings.timezone;
  const events = [
    ...new Map(requests.toReversed().map((request) => [request.id, eventOf(request, timezone)])).values(),
  ];
  return change(
    parts,
    caller,
    { action: 'usage.record', target: { type: 'tenant', id: tenant } },
    async ({ trx, audit }) => {
      const fresh = await takeEvents(trx, tenant, events);
      const booked = events.filter(({ id }) => fresh.has(id));
      if (booked.length > 0) await bookEvents(trx, tenant, booked);
      const result = { accepted: booked.length, duplicates: requests.length - booked.length };
      audit.after = { ...result, total_tokens: booked.reduce((sum, { totalTokens }) => sum + totalTokens, 0) };
      return result;
    },
  );
}

function errorsOf(request: UsageEventRequest, at: string, nowMs: number): readonly FieldError[] {
  const { prompt_tokens: prompt, completion_tokens: completion, cached_tokens: cached = 0 } = request;
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
  if (request.total_tokens !== undefined && request.total_tokens < prompt + completion) {
    errors.push({
      path: `${at}/total_tokens`,
      message: 'Must be at least the sum of the prompt and completion tokens.',
    });
  }
  return errors;
}

function eventOf(request: UsageEventRequest, timezone: string | undefined): UsageEvent {
  const { prompt_tokens: promptTokens, completion_tokens: completionTokens } = request;
  const time = new Date(request.time);
  const moment = momentOf(timezone, time.getTime());
  return {
    id: request.id,
    time,
    day: dayIn(moment),
    period: moment.period,
    model: request.model,
    keyId: request.key_id ?? '',
    userId: request.user_id ?? '',
    requests: request.requests ?? 1,
    promptTokens,
    completionTokens,
    cachedTokens: request.cached_tokens ?? 0,
    totalTokens: request.total_tokens ?? promptTokens + completionTokens,
  };
}
