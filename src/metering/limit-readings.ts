/**
 * The limits of checks in shadow mode: what a request would get, by the numbers that the store has. A reading takes
 * nothing, reserves nothing, and leaves no lease, no hold and no row.
 *
 * Amounts that processes hold ahead of need count as used, so a reading may refuse a request shortly before the limits
 * would. A number is read at most once a second for each limit, in one statement at a time for all waiting checks.
 */

import { LRUCache } from 'lru-cache';
import { SingleFlight } from '../concurrency/single-flight.ts';
import type { PriceTable } from '../decision/prices.ts';
import { Fault } from '../domain/errors.ts';
import { amountIn } from './account.ts';
import { type AdmissionRequest, type Estimates, type LimitDecision, reservationAmount } from './admission.ts';
import { ADMITTED, amountsOf, NO_TOKENS, refusedCollection } from './admitter.ts';
import { type BudgetKey, PeriodBudget } from './budget.ts';
import { NUMBERS } from './budget-numbers.ts';
import { type Hold, refuseFor } from './hold.ts';
import type { ReadingStore } from './ports.ts';
import { type MinuteLimit, minuteLimitsOf, refusedRate } from './rate-limits.ts';
import { RequestPlans } from './request-plans.ts';

interface LimitReadingsParts extends Estimates {
  readonly store: ReadingStore;
  readonly windowMs: number;
  readonly prices: () => PriceTable;
  readonly monotonicMs: () => number;
  /** The store's time, milliseconds since the epoch. */
  readonly nowMs: () => number;
}

interface Reading {
  readonly kind: 'rate' | 'budget' | 'collections';
  readonly tenant: string;
  /** The name of the subject, or the period of the budget. */
  readonly name: string;
  spent: number;
  held: number;
  /** When the window ends, by the monotonic clock. */
  endsMs: number;
  readAtMs: number;
  /** Whether it waits for a statement, or for the answer of one. */
  isPending: boolean;
  fault: Fault | undefined;
}

/** A number that is older is read again. */
const MAX_AGE_MS = 1000;
const MAX_READINGS = 50_000;
/** The numbers of one statement. */
const MAX_NUMBERS = 1000;
/** The largest number of numbers that wait to be read, and of checks that wait for numbers. */
const MAX_WAITING = 10_000;

export class LimitReadings {
  readonly #parts: LimitReadingsParts;
  readonly #plans: RequestPlans;
  readonly #readings = new LRUCache<string, Reading>({ max: MAX_READINGS });
  readonly #waiting = new Set<Reading>();
  #waitingChecks = 0;
  readonly #statements = new SingleFlight(
    () => this.#read(),
    () => this.#waiting.size > 0,
  );

  constructor(parts: LimitReadingsParts) {
    this.#parts = parts;
    this.#plans = new RequestPlans({ prices: parts.prices, find: (key) => detached(key, parts.monotonicMs()) });
  }

  /** Returns the decision, or a promise if a number must be read. Throws and rejects with a Fault. */
  admit(request: AdmissionRequest): LimitDecision | Promise<LimitDecision> {
    const spends = request.metered || request.reportsUsage;
    const plan = spends ? this.#plans.of(request, this.#parts.nowMs()) : undefined;
    const limits = minuteLimitsOf(request, plan?.rates ?? []);
    const rates = limits.map((limit) => this.#reading('rate', '', limit.name));
    const holds = plan?.holds ?? [];
    const places = holds.filter(({ cause }) => cause.kind === 'parallel');
    const budgets = holds.map(({ budget }) => this.#reading('budget', budget.tenant, budget.period));
    const creates = !spends && request.createsCollection && request.maxCollections !== undefined;
    const collections = creates ? this.#reading('collections', request.tenantId, '') : undefined;
    const all = [...rates, ...budgets, ...(collections === undefined ? [] : [collections])];

    const decide = (): LimitDecision => {
      for (const { fault } of all) if (fault !== undefined) throw fault;
      const reserved = request.metered ? reservationAmount(request, this.#parts) : NO_TOKENS;
      const amounts = amountsOf(reserved, plan?.price);
      const full = firstFull(limits, rates, ({ label }) =>
        label.dimension === 'tokens_per_minute' ? amounts.tokens : 1,
      );
      if (full !== undefined) return this.#refuse(full.limit, full.reading, request, amounts.tokens);
      const amountOf = ({ budget }: Hold): number => amountIn(budget.unit, amounts);
      // Places come first among the holds: a rate limit refuses before a quota.
      const lacking = firstFull(places, budgets, amountOf) ?? firstFull(holds, budgets, amountOf);
      if (lacking !== undefined) {
        const { limit: hold, reading } = lacking;
        hold.budget.spent = reading.spent;
        hold.budget.used = reading.spent + reading.held;
        return refuseFor(hold, amounts.tokens, undefined);
      }
      const { maxCollections: max } = request;
      const isFull = collections !== undefined && max !== undefined && collections.spent >= max;
      return isFull ? refusedCollection(max, undefined) : ADMITTED;
    };
    const pending = this.#fresh(all);
    return pending === undefined ? decide() : pending.then(decide);
  }

  #refuse(limit: MinuteLimit, reading: Reading, { keyId }: AdmissionRequest, tokens: number): LimitDecision {
    const state = {
      limit: limit.limit,
      remaining: Math.max(0, limit.limit - reading.spent),
      resetSeconds: Math.max(1, Math.ceil((reading.endsMs - this.#parts.monotonicMs()) / 1000)),
      windowSeconds: Math.max(1, Math.ceil(this.#parts.windowMs / 1000)),
    };
    return refusedRate(limit, state, keyId, tokens);
  }

  #reading(kind: Reading['kind'], tenant: string, name: string): Reading {
    const key = `${kind} ${tenant} ${name}`;
    const known = this.#readings.get(key);
    if (known !== undefined) return known;
    const numbers = {
      spent: 0,
      held: 0,
      endsMs: 0,
      readAtMs: Number.NEGATIVE_INFINITY,
      isPending: false,
      fault: undefined,
    };
    const made: Reading = { kind, tenant, name, ...numbers };
    this.#readings.set(key, made);
    return made;
  }

  /** Returns undefined if all readings are fresh; otherwise a promise that resolves when they are. */
  #fresh(readings: readonly Reading[]): Promise<void> | undefined {
    const stale = readings.filter((reading) => this.#isStale(reading));
    if (stale.length === 0) return undefined;
    if (Math.max(this.#waiting.size, this.#waitingChecks) >= MAX_WAITING)
      throw new Fault(`${MAX_WAITING} checks or limits are already waiting for the database`);
    for (const reading of stale) {
      if (!reading.isPending) this.#waiting.add(reading);
      reading.isPending = true;
    }
    return this.#await(stale);
  }

  /** A statement that runs already may not have the readings, so the wait may take two. */
  async #await(stale: readonly Reading[]): Promise<void> {
    this.#waitingChecks++;
    do await this.#statements.run();
    while (stale.some(({ isPending }) => isPending));
    this.#waitingChecks--;
  }

  #isStale({ readAtMs, kind, endsMs }: Reading): boolean {
    const now = this.#parts.monotonicMs();
    return now - readAtMs >= MAX_AGE_MS || (kind === 'rate' && now >= endsMs);
  }

  /** Never rejects: each reading of the batch has the fault. */
  async #read(): Promise<void> {
    const { store, windowMs, monotonicMs } = this.#parts;
    const batch = [...this.#waiting].slice(0, MAX_NUMBERS);
    for (const reading of batch) this.#waiting.delete(reading);
    const of = (wanted: Reading['kind']): readonly Reading[] => batch.filter(({ kind }) => kind === wanted);
    const [rates, budgets, collections] = [of('rate'), of('budget'), of('collections')];
    try {
      const result = await store.read({
        windowMs,
        subjects: rates.map(({ name }) => name),
        budgets: budgets.map(({ tenant, name }) => ({ tenant, period: name })),
        collections: collections.map(({ tenant }) => tenant),
      });
      const now = monotonicMs();
      const set = (readings: readonly Reading[], spent: readonly number[], held?: readonly number[]): void => {
        for (const [i, reading] of readings.entries()) {
          reading.spent = spent[i] ?? 0;
          reading.held = held?.[i] ?? 0;
          reading.endsMs = now + result.windowLeftMs;
          reading.readAtMs = now;
          reading.fault = undefined;
        }
      };
      set(rates, result.granted);
      set(budgets, result.spent, result.held);
      set(collections, result.collections);
    } catch (error) {
      const fault = new Fault('the limits could not be read', { cause: error });
      for (const reading of batch) {
        reading.fault = fault;
        reading.readAtMs = monotonicMs();
        reading.endsMs = Number.POSITIVE_INFINITY;
      }
    }
    for (const reading of batch) reading.isPending = false;
  }
}

/**
 * Returns the limit that refuses: the first that is smaller than the amount, otherwise the first with too little left.
 * Undefined: all have room.
 */
function firstFull<L extends { readonly limit: number }>(
  limits: readonly L[],
  readings: readonly Reading[],
  amountOf: (limit: L) => number,
): { readonly limit: L; readonly reading: Reading } | undefined {
  let found: { readonly limit: L; readonly reading: Reading } | undefined;
  for (const [i, limit] of limits.entries()) {
    const reading = readings[i];
    if (reading === undefined) continue;
    const amount = amountOf(limit);
    if (amount > limit.limit) return { limit, reading };
    if (reading.spent + reading.held + amount > limit.limit) found ??= { limit, reading };
  }
  return found;
}

/** Returns a budget that no process holds anything of, for the plan of a request. */
function detached(key: BudgetKey, nowMs: number): PeriodBudget {
  return new PeriodBudget(key, nowMs, {
    sums: { held: 0, reserved: 0 },
    numbers: { numbers: new Float64Array(NUMBERS), at: 0 },
    onReleased: () => undefined,
  });
}
