/**
 * Writes the demo's traffic to the counters, with the functions that servers use: decisions of the last week, usage
 * since the beginning of the month, and the last use of each key. It writes each interval of ten minutes once, and each
 * start adds the intervals since the last.
 */

import { compileBudgets } from '../decision/budgets.ts';
import { compilePrices, costOf, type PriceTable } from '../decision/prices.ts';
import { CLIENTS, type Client, SLOT_MS, slotOf } from '../demo/traffic.ts';
import type { TenantId } from '../domain/ids.ts';
import type { TenantSettings } from '../domain/records.ts';
import type { KeyRow } from '../iam/api-keys/entity.ts';
import { budgetRecord } from '../iam/budgets/entity.ts';
import { enabledBudgets } from '../iam/budgets/queries.ts';
import type { AdminParts } from '../iam/caller/caller.ts';
import { importPrices } from '../iam/prices/prices.ts';
import { parsePrices } from '../iam/prices/rules.ts';
import { findTenant } from '../iam/tenants/queries.ts';
import { bookEvents, type EventId, takeEvents, type UsageEntry } from '../iam/usage/event-queries.ts';
import { type ChargesOf, chargesOfEvents } from '../iam/usage/events.ts';
import { dayIn, momentOf } from '../iam/usage/period.ts';
import { DecisionCounts } from '../store/decision-counts.ts';
import { KeyUses } from '../store/last-use.ts';
import { runPrepared } from '../store/prepared.ts';
import { readPrices } from '../store/price-lists.ts';
import { type Transaction, transaction } from '../store/transaction.ts';
import type { DecisionCount } from '../telemetry/decision-tally.ts';
import { demoKeys } from './demo-keys.ts';
import { ACME, TRIAL } from './demo-setup.ts';
import { withLongTimeout } from './with-store.ts';

const WEEK_MS = 7 * 86_400_000;
const MONTH_MS = 31 * 86_400_000;

export async function seedTraffic(parts: AdminParts): Promise<void> {
  const uses = new KeyUses({ db: parts.db });
  try {
    const keys = await demoKeys(parts);
    const prices = await ensurePrices(parts);
    await withLongTimeout(parts.db, 1, async (longTimeoutDb) => {
      for (const tenant of [ACME, TRIAL]) {
        const settings = (await findTenant(parts.db.knex, tenant))?.settings ?? {};
        const given = { settings, keys, prices, nowMs: parts.now() };
        const slots = await transaction(longTimeoutDb, (trx) => writeSlots(trx, tenant, given));
        for (const [key, usedMs] of lastUses(slots, tenant, keys)) uses.note(key, usedMs);
      }
    });
  } finally {
    await uses.stop();
  }
}

/** One model of the traffic has no price, so that the console shows requests without one. */
const PRICES = parsePrices([
  { models: 'llama-3*', input: '0.20', output: '0.60', cached_input: '0.05', per: 1_000_000 },
  { models: 'phi-4', input: '0.07', output: '0.14', per: 1_000_000 },
  { models: 'e5-*', input: '0.02', output: '0', per: 1_000_000 },
]);

/** Sets the prices if no list was ever set. @returns the prices in force */
async function ensurePrices(parts: AdminParts): Promise<PriceTable> {
  const present = await readPrices(parts.db.knex);
  if (present.version > 0) return compilePrices(present);
  const set = await importPrices(parts, { prices: PRICES, replaces: true, seen: 0 });
  return compilePrices(set ?? (await readPrices(parts.db.knex)));
}

/** Ten minutes of one client. */
interface Written {
  readonly client: Client;
  readonly startMs: number;
  /** In the tenant's zone. */
  readonly day: string;
  readonly period: string;
  readonly slot: ReturnType<typeof slotOf>;
}

interface TrafficSource {
  readonly settings: TenantSettings;
  readonly keys: readonly KeyRow[];
  readonly prices: PriceTable;
  readonly nowMs: number;
}

/** @returns what is new */
async function writeSlots(
  trx: Transaction,
  tenant: TenantId,
  { settings, keys, prices, nowMs }: TrafficSource,
): Promise<readonly Written[]> {
  const { timezone } = settings;
  const current = momentOf(timezone, nowMs).period;
  const starts = slotsUntil(nowMs).filter(
    (startMs) => startMs >= nowMs - WEEK_MS || momentOf(timezone, startMs).period === current,
  );
  const events = starts.map((startMs) => markerOf(startMs));
  const fresh = await takeEvents(trx, tenant, events);
  const clients = CLIENTS.filter((client) => client.tenant === tenant && keys.some((key) => key.name === client.key));
  const written = starts
    .filter((startMs) => fresh.has(markerOf(startMs).id))
    .flatMap((startMs) => {
      const moment = momentOf(timezone, startMs);
      const day = dayIn(moment);
      return clients.map((client) => ({
        client,
        startMs,
        day,
        period: moment.period,
        slot: slotOf(client, startMs, moment.offset),
      }));
    });
  const budgets = compileBudgets((await enabledBudgets(trx, tenant)).map(budgetRecord));
  const callers = keys.map(({ id, user_id }) => ({ key_id: id, user_id, model: '', time: '' }));
  const chargesOf = await chargesOfEvents(trx, { id: tenant, settings, budgets }, callers);
  await bookEvents(trx, tenant, usageOf(written, keys, prices, chargesOf));
  await writeDecisions(
    trx,
    written.filter(({ startMs }) => startMs >= nowMs - WEEK_MS),
  );
  return written;
}

/** Returns the starts of the finished intervals, oldest first. */
function slotsUntil(nowMs: number): readonly number[] {
  const end = Math.floor(nowMs / SLOT_MS) * SLOT_MS;
  const length = MONTH_MS / SLOT_MS;
  return Array.from({ length }, (_, i) => end - (length - i) * SLOT_MS);
}

/** Marks an interval as written. It is an event without usage, and the store accepts each event once. */
function markerOf(startMs: number): EventId {
  const time = new Date(startMs);
  return { id: `demo:${time.toISOString()}`, time };
}

/** One entry for each day and client. */
function usageOf(
  written: readonly Written[],
  keys: readonly KeyRow[],
  prices: PriceTable,
  chargesOf: ChargesOf,
): readonly UsageEntry[] {
  const days = Map.groupBy(
    written.filter(({ slot }) => slot.allowed > 0),
    ({ client, day }) => `${client.key} ${day}`,
  );
  return [...days.values()].flatMap((slots) => {
    const [first] = slots;
    const key = keys.find(({ name }) => name === first?.client.key);
    if (first === undefined || key === undefined) return [];
    const requests = slots.reduce((sum, { slot }) => sum + slot.allowed, 0);
    const { model, prompt, completion } = first.client;
    const price = prices.of(model);
    const time = new Date(first.startMs).toISOString();
    const spent = { prompt: requests * prompt, completion: requests * completion, cached: 0, cacheWrite: 0 };
    const total = spent.prompt + spent.completion;
    return {
      day: first.day,
      period: first.period,
      model,
      key_id: key.id,
      user_id: key.user_id ?? '',
      requests,
      prompt_tokens: spent.prompt,
      completion_tokens: spent.completion,
      cached_tokens: 0,
      total_tokens: total,
      cost: price === undefined ? 0 : costOf(price, { ...spent, total }),
      price_version: price?.version ?? 0,
      charges: chargesOf({ key_id: key.id, user_id: key.user_id, model, time }),
    };
  });
}

/** @throws the error of a statement that failed, so that the transaction is rolled back */
async function writeDecisions(trx: Transaction, written: readonly Written[]): Promise<void> {
  const counts = written.flatMap(({ client, startMs, slot }): readonly DecisionCount[] => {
    const common = { minuteMs: startMs, tenant: client.tenant, route: client.route };
    const denied = slot.denied.map(({ code, count }) => ({ ...common, code, decisions: count }));
    return slot.allowed === 0 ? denied : [{ ...common, code: 'allow', decisions: slot.allowed }, ...denied];
  });
  const failed: Error[] = [];
  const writer = new DecisionCounts({
    db: { query: ({ name = '', text, values = [] }) => runPrepared(trx, { name, text }, values) },
    tally: { take: () => counts, putBack: () => undefined },
    onError: (error) => failed.push(error),
  });
  await writer.stop();
  const [error] = failed;
  if (error !== undefined) throw error;
}

function* lastUses(
  written: readonly Written[],
  tenant: TenantId,
  keys: readonly KeyRow[],
): Generator<readonly [KeyRow['id'], number]> {
  for (const key of keys.filter(({ tenant_id }) => tenant_id === tenant)) {
    const last = written.findLast(({ client, slot }) => client.key === key.name && slot.allowed > 0);
    if (last !== undefined) yield [key.id, last.startMs + SLOT_MS / 2];
  }
}
