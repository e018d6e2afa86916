/**
 * The cost of reported usage, and the budgets that it counts in. The price is the one that was in force at the time of
 * the event. The budgets are those that the tenant has when the server books the event, in the period of its time.
 */

import { type BudgetCaller, budgetsOf, shareOf } from '../../decision/budgets.ts';
import type { TenantView } from '../../decision/model.ts';
import { compilePrices, costOf, NO_PRICES, type PriceTable } from '../../decision/prices.ts';
import type { KeyId, TenantId, UserId } from '../../domain/ids.ts';
import { parseId } from '../../domain/ids.ts';
import { counterName, periodAt } from '../../metering/budget-periods.ts';
import type { Charge } from '../../metering/ports.ts';
import { type PriceListDate, priceListDates, readPriceList } from '../../store/price-lists.ts';
import type { Queryable } from '../../store/queryable.ts';
import { type BudgetedKey, readBudgetedKeys, readRolesOf } from './event-queries.ts';
import type { UsageEvent } from './schemas.ts';

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

export interface PricedUsage {
  /** In 10^-9 of the currency. */
  readonly cost: number;
  /** 0 = the model had no price. */
  readonly priceVersion: number;
}

export function priceEvent(table: PriceTable, event: UsageEvent): PricedUsage {
  const price = table.of(event.model);
  if (price === undefined) return { cost: 0, priceVersion: 0 };
  const { prompt_tokens: prompt, completion_tokens: completion, cached_tokens: cached = 0 } = event;
  const { cache_write_tokens: cacheWrite = 0, total_tokens: total = prompt + completion } = event;
  return { cost: costOf(price, { prompt, completion, cached, cacheWrite, total }), priceVersion: price.version };
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
