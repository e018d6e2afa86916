/** The store that all processes share, in memory: what the statements do, and nothing of how. */

import { costOf } from '../../../src/decision/prices.ts';
import type {
  CollectionReservationRequest,
  HoldBatch,
  HoldResult,
  LostBooking,
  LostRequestOptions,
  MeteringStore,
  OpenRequest,
  OpenRequestNote,
  RateLeaseRequest,
  RateLeaseResult,
  ReservationChange,
  Settlement,
  SettleResult,
  TidyOptions,
  TidyResult,
} from '../../../src/metering/ports.ts';

interface Hold {
  held: number;
  changes: number;
}

interface BudgetRow {
  spent: number;
  readonly holds: Map<string, Hold>;
}

/** A budget as bookings look for reached thresholds. */
export interface AlertingBudget {
  readonly tenant: string;
  readonly limit: number;
  readonly epoch: number;
  readonly alerts: readonly number[];
}

/** What was booked under one name. */
export interface Booked {
  requests: number;
  tokens: number;
  cost: number;
}

interface Creation {
  readonly tenant: string;
  expiresMs: number;
}

const LIVE_MS = 15_000;

export class MemoryStore implements MeteringStore {
  readonly windows = new Map<string, number>();
  readonly budgets = new Map<string, BudgetRow>();
  readonly collections = new Map<string, number>();
  readonly creations = new Map<string, Creation>();
  /**
   * By tenant: each counted collection, as the number of its creation, and the released names with the last number at
   * their release.
   */
  readonly #counted = new Map<
    string,
    { created: number; readonly live: number[]; readonly removed: Map<number, number> }
  >();
  /** Requests booked, and their tokens, by tenant. */
  readonly usage = new Map<string, { requests: number; tokens: number; estimated: number }>();
  /** By `tenant <id>`, `key <tenant> <id>`, `user …`, `model …` and `price <tenant> <model> <version>`. */
  readonly booked = new Map<string, Booked>();
  /** Budgets with alerts, by id. */
  readonly alerting = new Map<string, AlertingBudget>();
  /** Monthly tokens, by tenant. */
  readonly quotas = new Map<string, number>();
  /** Reached thresholds as `<tenant> <period> <threshold>`, with the spent amount. */
  readonly alerts = new Map<string, number>();
  readonly #processes = new Map<string, { seenMs: number; sequence: number }>();
  readonly #responses = new Map<string, Settlement>();
  /** The tokens booked for each settled reservation. */
  readonly #settled = new Map<string, number>();
  readonly #settledMs = new Map<string, number>();
  readonly #unacked: { id: number; processId: string; counter: number; total: number; cost: number }[] = [];
  readonly #now: () => number;
  readonly #renewals: { processId: string; counter: number; heardMs: number }[] = [];
  #lastNews = 0;
  readonly #notes = new Map<string, { processId: string; requests: readonly OpenRequest[]; lookedMs: number }>();

  constructor(now: () => number) {
    this.#now = now;
  }

  budget(tenant: string, period: string): BudgetRow {
    const key = `${tenant} ${period}`;
    const known = this.budgets.get(key);
    if (known !== undefined) return known;
    const made = { spent: 0, holds: new Map<string, Hold>() };
    this.budgets.set(key, made);
    return made;
  }

  /** Returns a function that restores the present state, as of a standby that lags and becomes the primary later. */
  snapshot(): () => void {
    const { windows, budgets, collections, creations, usage, booked, alerts } = this;
    const kept = structuredClone({
      windows,
      budgets,
      collections,
      creations,
      usage,
      booked,
      alerts,
      processes: this.#processes,
      settled: this.#settled,
      counted: this.#counted,
    });
    return () => {
      refill(this.windows, kept.windows);
      refill(this.budgets, kept.budgets);
      refill(this.collections, kept.collections);
      refill(this.creations, kept.creations);
      refill(this.usage, kept.usage);
      refill(this.booked, kept.booked);
      refill(this.alerts, kept.alerts);
      refill(this.#processes, kept.processes);
      refill(this.#counted, kept.counted);
      this.#settled.clear();
      for (const [id, tokens] of kept.settled) this.#settled.set(id, tokens);
      this.#unacked.length = 0;
      this.#renewals.length = 0;
    };
  }

  /** Returns the tokens booked for a reservation, or undefined if none are booked yet. */
  bookedTokens(processId: string, counter: number): number | undefined {
    return this.#settled.get(`${processId} ${counter}`);
  }

  lease(processId: string, requests: readonly RateLeaseRequest[]): Promise<RateLeaseResult> {
    this.#beat(processId);
    const grants = requests.map(({ subject, window, limit, requested, report }) => {
      const key = `${subject} ${window}`;
      const before = Math.max(0, (this.windows.get(key) ?? 0) + report);
      const granted = Math.max(0, Math.min(requested, limit - before));
      this.windows.set(key, before + granted);
      return { granted, total: before + granted };
    });
    return Promise.resolve({ grants, nowMs: this.#now(), processes: this.#live() });
  }

  hold({ processId, sequence, requests, acked }: HoldBatch): Promise<HoldResult> {
    const known = this.#processes.get(processId);
    if (known !== undefined && known.sequence >= sequence) return Promise.reject(new Error('a later word was acked'));
    this.#processes.set(processId, { seenMs: this.#now(), sequence });
    const grants = requests.map(({ tenant, period, quota, requested, changes, confirmed }) => {
      const budget = this.budget(tenant, period);
      const hold = budget.holds.get(processId) ?? { held: 0, changes: confirmed };
      const change = Math.max(changes - hold.changes, -hold.held);
      const granted = Math.max(0, Math.min(requested, quota - usedOf(budget) - change));
      const held = hold.held + change + granted;
      if (held === 0) budget.holds.delete(processId);
      else budget.holds.set(processId, { held, changes });
      return { granted, held, used: usedOf(budget), spent: budget.spent };
    });
    const told = new Set(acked);
    const settlements = this.#unacked
      .filter((one) => one.processId === processId && !told.has(one.id))
      .map(({ id, counter, total, cost }) => ({ id, counters: [counter], totals: [total], costs: [cost] }));
    const kept = this.#unacked.filter(({ id }) => !told.has(id));
    this.#unacked.splice(0, this.#unacked.length, ...kept);
    const renewals = this.#renewals
      .filter((one) => one.processId === processId)
      .map(({ counter, heardMs }) => ({ counters: [counter], ageMs: this.#now() - heardMs }));
    this.#renewals.splice(0, this.#renewals.length, ...this.#renewals.filter((one) => one.processId !== processId));
    return Promise.resolve({ grants, settlements, renewals, processes: this.#live() });
  }

  settle(settler: string, settlements: readonly Settlement[]): Promise<SettleResult> {
    let booked = 0;
    const unknownProcesses = new Set<string>();
    this.#beat(settler);
    for (const settlement of settlements) {
      const { processId, counter, tenant, total, cost, held, collections } = settlement;
      if (!this.#processes.has(processId)) {
        unknownProcesses.add(processId);
        continue;
      }
      if (collections !== undefined) this.creations.delete(`${processId} ${counter}`);
      if (this.#settled.has(`${processId} ${counter}`)) continue;
      this.#settled.set(`${processId} ${counter}`, settlement.books ? total : 0);
      this.#settledMs.set(processId, this.#now());
      booked += 1;
      if (settlement.books) this.#book(settlement);
      else for (const { period } of settlement.charges) this.#charge(tenant, period, 1);
      this.#respond(settlement);
      if (collections !== undefined) this.#count(tenant, collections, settlement.collection ?? 0);
      if (held && processId !== settler) this.#unacked.push({ id: ++this.#lastNews, processId, counter, total, cost });
    }
    return Promise.resolve({ booked, unknownProcesses: [...unknownProcesses] });
  }

  settledLately(processId: string, withinMs: number): Promise<boolean> {
    return Promise.resolve(this.#now() - (this.#settledMs.get(processId) ?? Number.NEGATIVE_INFINITY) < withinMs);
  }

  reserveCollection({ processId, counter, tenant, max, ttlMs }: CollectionReservationRequest): Promise<boolean> {
    const under = [...this.creations.values()].filter((one) => one.tenant === tenant && one.expiresMs > this.#now());
    if ((this.collections.get(tenant) ?? 0) + under.length >= max) return Promise.resolve(false);
    this.creations.set(`${processId} ${counter}`, { tenant, expiresMs: this.#now() + ttlMs });
    return Promise.resolve(true);
  }

  changeReservations(changes: readonly ReservationChange[], ttlMs: number): Promise<void> {
    for (const { kind, processId, counter } of changes) {
      const key = `${processId} ${counter}`;
      const creation = this.creations.get(key);
      switch (kind) {
        case 'renew-tokens':
          if (this.#processes.has(processId)) this.#renewals.push({ processId, counter, heardMs: this.#now() });
          break;
        case 'renew-collection':
          if (creation !== undefined && creation.expiresMs > this.#now()) {
            creation.expiresMs = Math.max(creation.expiresMs, this.#now() + ttlMs);
          }
          break;
        case 'release-collection':
          this.creations.delete(key);
          break;
        default:
          kind satisfies never;
      }
    }
    return Promise.resolve();
  }

  noteRequests({ processId, note, requests, over }: OpenRequestNote): Promise<void> {
    for (const number of over) this.#notes.delete(`${processId} ${number}`);
    const key = `${processId} ${note}`;
    if (requests.length > 0 && !this.#notes.has(key)) {
      this.#notes.set(key, { processId, requests, lookedMs: Number.NEGATIVE_INFINITY });
    }
    return Promise.resolve();
  }

  async bookLost({ holdTtlMs, reservationTtlMs }: LostRequestOptions): Promise<LostBooking> {
    const now = this.#now();
    for (const [key, note] of this.#notes) {
      const { processId, requests } = note;
      if (now - (this.#processes.get(processId)?.seenMs ?? 0) <= holdTtlMs || now - note.lookedMs < reservationTtlMs)
        continue;
      const renewed = this.#renewals.filter(
        (one) => one.processId === processId && now - one.heardMs <= reservationTtlMs,
      );
      const running = new Set(renewed.map(({ counter }) => counter));
      const seenMs = this.#processes.get(processId)?.seenMs ?? 0;
      const { booked } = await this.settle(
        processId,
        requests.filter(({ counter }) => !running.has(counter)).map(entryOf(processId)),
      );
      this.#processes.set(processId, { seenMs, sequence: this.#processes.get(processId)?.sequence ?? 0 });
      const rest = requests.filter(({ counter }) => running.has(counter));
      if (rest.length === 0) this.#notes.delete(key);
      else this.#notes.set(key, { processId, requests: rest, lookedMs: now });
      return { booked, more: true };
    }
    return { booked: 0, more: false };
  }

  tidy({ holdTtlMs }: TidyOptions): Promise<TidyResult> {
    let holds = 0;
    for (const { holds: held } of this.budgets.values()) {
      for (const processId of held.keys()) {
        if (this.#now() - (this.#processes.get(processId)?.seenMs ?? 0) <= holdTtlMs) continue;
        held.delete(processId);
        holds += 1;
      }
    }
    for (const [id, { expiresMs }] of this.creations) if (expiresMs < this.#now()) this.creations.delete(id);
    return Promise.resolve({ holds, removed: holds, more: false });
  }

  /** Each removal takes the place of the oldest creation that may have been its name's. */
  #count(tenant: string, change: -1 | 0 | 1, name: number): void {
    const counted = this.#counted.get(tenant) ?? { created: 0, live: [], removed: new Map<number, number>() };
    this.#counted.set(tenant, counted);
    if (change > 0) counted.live.push(++counted.created);
    else if (change < 0) {
      const since = counted.removed.get(name) ?? 0;
      const at = counted.live.findIndex((number) => number > since);
      if (at >= 0) {
        counted.live.splice(at, 1);
        counted.removed.set(name, counted.created);
      }
    }
    this.collections.set(tenant, counted.live.length);
  }

  /** Stores a response that continues, or corrects the booked usage of one that is complete. */
  #respond(settlement: Settlement): void {
    if (settlement.response === undefined) return;
    const name = `${settlement.tenant} ${settlement.response}`;
    const begun = this.#responses.get(name);
    if (settlement.books) {
      if (begun === undefined) this.#responses.set(name, settlement);
    } else if (begun !== undefined) {
      this.#responses.delete(name);
      const { total, cost, price } = begun;
      const corrected = price === undefined ? 0 : costOf(price, settlement);
      this.#add(begun, { requests: 0, tokens: settlement.total - total, cost: corrected - cost, estimated: -total });
    }
  }

  #book(settlement: Settlement): void {
    const { total, cost, estimated } = settlement;
    this.#add(settlement, { requests: 1, tokens: total, cost, estimated: estimated ? total : 0 });
  }

  #add(
    { tenant, period, model, key, user, priceVersion, charges }: Settlement,
    { requests, tokens, cost, estimated }: Booked & { readonly estimated: number },
  ): void {
    const row = this.usage.get(tenant) ?? { requests: 0, tokens: 0, estimated: 0 };
    this.usage.set(tenant, {
      requests: row.requests + requests,
      tokens: row.tokens + tokens,
      estimated: row.estimated + estimated,
    });
    const price = priceVersion === 0 ? [] : [`price ${tenant} ${model} ${priceVersion}`];
    for (const name of [
      ...[`tenant ${tenant}`, `key ${tenant} ${key}`, `user ${tenant} ${user}`, `model ${tenant} ${model}`],
      ...price,
    ]) {
      const sum = this.booked.get(name) ?? { requests: 0, tokens: 0, cost: 0 };
      this.booked.set(name, {
        requests: sum.requests + requests,
        tokens: sum.tokens + tokens,
        cost: sum.cost + cost,
      });
    }
    this.#charge(tenant, period, tokens);
    const amounts = { money: cost, tokens, requests };
    for (const charge of charges) this.#charge(tenant, charge.period, amounts[charge.unit]);
  }

  #charge(tenant: string, period: string, amount: number): void {
    if (amount === 0) return;
    const budget = this.budget(tenant, period);
    budget.spent = Math.max(0, Math.min(Number.MAX_SAFE_INTEGER, budget.spent + amount));
    for (const [threshold, limit] of this.#thresholds(tenant, period)) {
      const name = `${tenant} ${period} ${threshold}`;
      if (budget.spent >= threshold * limit && !this.alerts.has(name)) this.alerts.set(name, budget.spent);
    }
  }

  #thresholds(tenant: string, period: string): readonly [threshold: number, limit: number][] {
    const [, id = '', epoch = ''] = /^([^ /]+)(?:\/[^ ]+)? .*#(\d+)$/.exec(period) ?? [];
    const budget = this.alerting.get(id);
    if (budget !== undefined && budget.tenant === tenant && String(budget.epoch) === epoch) {
      return budget.alerts.map((threshold) => [threshold, budget.limit]);
    }
    const quota = this.quotas.get(tenant);
    return quota === undefined || id !== ''
      ? []
      : [
          [0.8, quota],
          [1, quota],
        ];
  }

  #beat(processId: string): void {
    this.#processes.set(processId, { seenMs: this.#now(), sequence: this.#processes.get(processId)?.sequence ?? 0 });
  }

  #live(): number {
    return [...this.#processes.values()].filter(({ seenMs }) => this.#now() - seenMs < LIVE_MS).length;
  }
}

/** A request that spent its prompt's estimate. */
const entryOf =
  (processId: string) =>
  ({ counter, tenant, period, day, key, user, prompt, cost, priceVersion, charges }: OpenRequest): Settlement => ({
    ...{
      processId,
      counter,
      held: false,
      tenant,
      period,
      day,
      model: '',
      key,
      user,
      prompt,
      completion: 0,
      cached: 0,
      total: prompt,
      cost,
      priceVersion,
      price: undefined,
      cacheWrite: 0,
      charges,
    },
    ...{ estimated: true, books: true, collections: undefined, response: undefined, collection: undefined },
  });

function refill<V>(map: Map<string, V>, kept: ReadonlyMap<string, V>): void {
  map.clear();
  for (const [key, value] of kept) map.set(key, value);
}

export function usedOf({ spent, holds }: BudgetRow): number {
  let used = spent;
  for (const { held } of holds.values()) used += held;
  return used;
}
