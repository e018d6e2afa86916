/**
 * Usage events of platforms that meter themselves. Each counts once, by its id. They report past usage, so no quota
 * rejects them. The price is the one that was in force at the time of the event. The budgets are those that the tenant has
 * when the server books the event, in the period of its time.
 */

import { pauses } from '../../concurrency/pauses.ts';
import { type BudgetCaller, budgetsOf, shareOf } from '../../decision/budgets.ts';
import type { TenantView } from '../../decision/model.ts';
import { compilePrices, costOf, NO_PRICES, type PriceTable } from '../../decision/prices.ts';
import { Refusal } from '../../domain/errors.ts';
import { type KeyId, parseId, type TenantId, type UserId } from '../../domain/ids.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import { counterName, periodAt } from '../../metering/budget-periods.ts';
import type { Charge } from '../../metering/ports.ts';
import { type PriceListDate, priceListDates, readPriceList } from '../../store/price-lists.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { throwIfInvalid } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import {
  type BudgetedKey,
  bookEvents,
  type EventId,
  MAX_EVENT_AGE_DAYS,
  readBudgetedKeys,
  readRolesOf,
  takeEvents,
  type UsageEntry,
} from './event-queries.ts';
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
    const pause = pauses();
    const events: ReturnType<typeof eventOf>[] = [];
    for (const [i, request] of unique.entries()) {
      await pause();
      const price = priceEvent(prices[i] ?? NO_PRICES, request);
      events.push(eventOf(request, effective?.settings.timezone, { ...price, charges: chargesOf(request) }));
    }
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
  costs: PricedUsage & Pick<UsageEntry, 'charges'>,
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
    ...costs,
  };
  return { id, time, usage };
}

/** The tables of the last lists that events named. A list never changes. */
const MAX_TABLES = 4;

interface KnownTable {
  readonly version: number;
  readonly setAtMs: number;
  readonly table: PriceTable;
}

/** The prices at any time. */
export class PriceHistory {
  #known: readonly KnownTable[] = [];

  /** @param times milliseconds since the epoch. @returns the table of each time, in order */
  async at(q: Queryable, times: readonly number[]): Promise<readonly PriceTable[]> {
    const dates = await priceListDates(q, Math.min(...times));
    const tables = new Map<number, PriceTable>();
    const found: PriceTable[] = [];
    for (const timeMs of times) {
      const date = dates.findLast(({ setAtMs }) => setAtMs <= timeMs);
      if (date === undefined) found.push(NO_PRICES);
      else {
        const table = tables.get(date.version) ?? (await this.#tableOf(q, date));
        tables.set(date.version, table);
        found.push(table);
      }
    }
    return found;
  }

  async #tableOf(q: Queryable, { version, setAtMs }: PriceListDate): Promise<PriceTable> {
    const known = this.#known.find((one) => one.version === version && one.setAtMs === setAtMs);
    if (known !== undefined) return known.table;
    const table = compilePrices(await readPriceList(q, version));
    this.#known = [{ version, setAtMs, table }, ...this.#known].slice(0, MAX_TABLES);
    return table;
  }
}

type PricedUsage = Pick<UsageEntry, 'cost' | 'price_version'>;

function priceEvent(table: PriceTable, event: UsageEvent): PricedUsage {
  const price = table.of(event.model);
  if (price === undefined) return { cost: 0, price_version: 0 };
  const { prompt_tokens: prompt, completion_tokens: completion, cached_tokens: cached = 0 } = event;
  const { cache_write_tokens: cacheWrite = 0, total_tokens: total = prompt + completion } = event;
  return { cost: costOf(price, { prompt, completion, cached, cacheWrite, total }), price_version: price.version };
}

/** The callers of events, as budgets see them. */
interface Callers {
  readonly keys: ReadonlyMap<string, BudgetedKey>;
  readonly roles: ReadonlyMap<string, BudgetCaller['roles']>;
}

/** The members of an event that select budgets. */
type ChargedEvent = Pick<UsageEvent, 'key_id' | 'user_id' | 'model' | 'time'>;

/** Returns the budgets that an event counts in. */
export type ChargesOf = (event: ChargedEvent) => readonly Charge[];

/** Returns a function that finds the budgets of each event. It reads the keys and users of all events at once. */
export async function chargesOfEvents(
  q: Queryable,
  tenant: Pick<TenantView, 'id' | 'budgets' | 'settings'> | undefined,
  events: readonly ChargedEvent[],
): Promise<ChargesOf> {
  const { budgets } = tenant ?? {};
  if (tenant === undefined || budgets === undefined || budgets.size === 0) return () => [];
  const callers = await readCallers(q, tenant.id, events);
  return (event) => {
    const caller = callerOf(event, callers);
    return budgetsOf(budgets, caller)
      .filter((budget) => budget.counts(event.model))
      .map((budget): Charge => {
        const { unit, timezone = tenant.settings.timezone } = budget;
        const period = periodAt(budget.period, timezone, Date.parse(event.time));
        return { unit, period: counterName(budget, shareOf(budget, caller), period) };
      });
  };
}

async function readCallers(q: Queryable, tenant: TenantId, events: readonly ChargedEvent[]): Promise<Callers> {
  const keyIds = new Set(events.flatMap(({ key_id: id }) => id ?? []));
  const keys = new Map((await readBudgetedKeys(q, tenant, [...keyIds])).map((key) => [key.id, key]));
  const userIds = new Set(events.flatMap((event) => userOf(event, keys) ?? []));
  const roles = new Map((await readRolesOf(q, tenant, [...userIds])).map((user) => [user.id, user.roles]));
  return { keys, roles };
}

function callerOf(event: ChargedEvent, { keys, roles }: Callers): BudgetCaller {
  const userId = userOf(event, keys);
  return {
    keyId: keyOf(event),
    userId,
    roles: (userId === undefined ? undefined : roles.get(userId)) ?? [],
    metadata: keys.get(event.key_id ?? '')?.metadata,
  };
}

function keyOf({ key_id: id }: ChargedEvent): KeyId | undefined {
  return id == null ? undefined : parseId('key', id);
}

/** Returns the user of an event: the one that it names, or the owner of its key. */
function userOf({ key_id: key, user_id: id }: ChargedEvent, keys: Callers['keys']): UserId | undefined {
  return id == null ? keys.get(key ?? '')?.owner : parseId('usr', id);
}
