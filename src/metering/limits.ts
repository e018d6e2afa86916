/**
 * The entry point of metering: rate limits and quotas of checks, and the ends of their requests.
 *
 * A check calls `admit`, which decides from memory if the tenant's limits are cached. The report of a request's end
 * goes to `settle`, in any process.
 */

import { SingleFlight } from '../concurrency/single-flight.ts';
import { NO_PRICES, type PriceTable } from '../decision/prices.ts';
import { StoreClock } from '../domain/store-clock.ts';
import { newCounts } from '../telemetry/metering-counts.ts';
import type { AdmissionRequest, Estimates, LimitDecision } from './admission.ts';
import { Admitter } from './admitter.ts';
import { Budgets } from './budgets.ts';
import { type Charges, NO_CHARGES, readCharges } from './charge-text.ts';
import type { QuotaShare } from './nearest-quotas.ts';
import { OpenRequests } from './open-requests.ts';
import type { SharedParts } from './parts.ts';
import type { MeteringStore } from './ports.ts';
import { RateLeases } from './rate-leases.ts';
import { RateLimits } from './rate-limits.ts';
import { RequestPlans } from './request-plans.ts';
import { ReservationChanges } from './reservation-changes.ts';
import { isHeld, type Reservation, ReservationIds } from './reservation-ids.ts';
import { type FinishedUsage, settlementOf } from './settlement.ts';
import { Settler } from './settler.ts';
import { UnreportedEnds } from './unreported-ends.ts';

export interface LimitsParts extends Estimates, Omit<SharedParts, 'counts'> {
  readonly store: MeteringStore;
  /** 16 bytes, the same in all processes: encrypts reservation ids. */
  readonly reservationKey: Uint8Array;
  /** The key under which other processes may issue ids while the installation changes its `secret-key`. */
  readonly otherReservationKey?: Uint8Array | undefined;
  /** The length of a rate limit window; 60000 except in tests. */
  readonly windowMs: number;
  /** The lifetime of a reservation that is neither settled nor renewed. */
  readonly reservationTtlMs: number;
  /**
   * The store's clock as this process knows it, for months, days and ages of reservations. Default: a clock that only
   * leases set.
   */
  readonly clock?: StoreClock;
  /** The machine's clock, milliseconds since the epoch. Used until the store's clock is known. */
  readonly now: () => number;
  /** Returns the prices in force. Default: no model has a price. */
  readonly prices?: () => PriceTable;
  /** Whether the answer of `admit` names the budget with the smallest share left. Default: false. */
  readonly reportsBudget?: boolean;
  /** Reports whether a tenant's usage comes from events, so that the ends of its requests are not booked. */
  readonly metersItself?: (tenant: string) => boolean;
  /** Called with the number of requests whose ends no proxy reports, and with 0 when ends are reported again. */
  readonly onUnreported?: (requests: number) => void;
  /** The largest number of rate subjects of each kind, and of token budgets. */
  readonly maxSubjects?: number;
  readonly maxReservations?: number;
  /** The largest number of ends that wait to be booked, and of renewals that wait to be sent. */
  readonly maxSettlements?: number;
}

const MINUTE_MS = 60_000;
const TICK_MS = 100;
/** The amounts of a lost process are available again at most this time after it counts as lost. */
const TIDY_MS = 5000;
/** A process sends a statement at least every 5 s. A late one must not make it look lost. */
const MIN_HOLD_TTL_MS = 20_000;
const TIDY_BATCH = 5000;
const MAX_TIDY_ROUNDS = 20;
/** A request may use 16 budgets, most of them its key's own. */
const MAX_BUDGETS = 500_000;
/** The largest number of requests in progress that one process notes in the store. */
const MAX_OPEN = 100_000;
/** The longest time that a request may take: an older id settles nothing. The store remembers settled ids longer. */
const SETTLE_WITHIN_MINUTES = 24 * 60;
const SETTLEMENT_KEEP_MS = 26 * 3_600_000;
/**
 * If the store's clock is set back further, for example by a failover, the ends of requests admitted before that count
 * as unknown.
 */
const CLOCK_SKEW_MINUTES = 5;

export class Limits {
  readonly #parts: LimitsParts;
  readonly #counts = newCounts();
  readonly #clock: StoreClock;
  readonly #leases: RateLeases;
  readonly #budgets: Budgets;
  readonly #admitter: Admitter;
  readonly #ids: ReservationIds;
  readonly #otherIds: ReservationIds | undefined;
  readonly #settler: Settler;
  readonly #changes: ReservationChanges;
  readonly #open: OpenRequests;
  readonly #ends: UnreportedEnds;
  /** The store takes the holds of a process that it has not seen for this time. */
  readonly #holdTtlMs: number;
  readonly #upkeep = new SingleFlight(() => this.#tidy());
  #timers: NodeJS.Timeout[] = [];

  constructor(parts: LimitsParts) {
    const { maxSubjects = 200_000, maxReservations = 1_000_000, maxSettlements = 200_000 } = parts;
    const { clock = new StoreClock(), otherReservationKey: otherKey, onUnreported } = parts;
    const shared = { ...parts, clock, counts: this.#counts, nowMs: (now?: number) => this.#nowMs(now) };
    this.#parts = parts;
    this.#clock = clock;
    this.#holdTtlMs = Math.max(MIN_HOLD_TTL_MS, parts.reservationTtlMs);
    this.#ids = new ReservationIds(parts.reservationKey, parts.processId);
    this.#otherIds = otherKey === undefined ? undefined : new ReservationIds(otherKey, parts.processId);
    this.#leases = new RateLeases({ ...shared, maxSubjects });
    this.#budgets = new Budgets({
      ...shared,
      holdTtlMs: this.#holdTtlMs,
      maxBudgets: parts.maxSubjects ?? MAX_BUDGETS,
      maxReservations,
      onRenewed: (counter, seenAtMs) => this.#open.renew(counter, seenAtMs),
      awaitsSettlements: () => this.#open.size > 0,
    });
    this.#changes = new ReservationChanges({ ...shared, maxWaiting: maxSettlements });
    this.#open = new OpenRequests({ ...shared, maxOpen: MAX_OPEN });
    this.#ends = new UnreportedEnds({
      ...shared,
      lifeMs: parts.reservationTtlMs,
      ...(onUnreported === undefined ? {} : { onChange: onUnreported }),
    });
    this.#settler = new Settler({
      ...shared,
      maxWaiting: maxSettlements,
      onBooked: ({ processId, held, counter, total, cost }) => {
        if (processId !== parts.processId) return;
        this.#open.ended(counter);
        if (held) this.#budgets.settled(counter, { tokens: total, money: cost });
      },
    });
    this.#admitter = new Admitter({
      ...shared,
      rates: new RateLimits(this.#leases, this.#counts),
      budgets: this.#budgets,
      plans: new RequestPlans({ prices: parts.prices ?? (() => NO_PRICES), find: (key) => this.#budgets.find(key) }),
      ids: this.#ids,
      open: this.#open,
      ends: this.#ends,
    });
  }

  /** Returns the decision, or a promise if the check must wait for the store. Throws and rejects with a Fault. */
  admit(request: AdmissionRequest): LimitDecision | Promise<LimitDecision> {
    return this.#admitter.admit(request);
  }

  /** Books a finished request after the answer. Any process may call it, any number of times. Never throws. */
  settle(finished: FinishedUsage): void {
    const reservation = this.#read(finished.reservation);
    if (reservation === undefined) {
      this.#counts.unknown += 1;
      return;
    }
    this.#reported(reservation);
    if (!this.#isCurrent(reservation)) {
      this.#counts.late += 1;
      return;
    }
    const books = finished.tenant === undefined || this.#parts.metersItself?.(finished.tenant) !== true;
    const settlement = settlementOf(finished, reservation, books, this.#chargesOf(finished));
    if (settlement === undefined) {
      this.#counts.unknown += 1;
      return;
    }
    if (settlement.estimated) this.#counts.estimated += 1;
    const { processId, held, counter, total, cost } = settlement;
    // At once, because the store may be unreachable and rate limits continue without it.
    if (held && processId === this.#parts.processId) this.#budgets.ended(counter, { tokens: total, money: cost });
    this.#settler.add(settlement);
  }

  /**
   * Renews the reservation of a request that is still running. Any process may call it, any number of times. Never
   * throws.
   */
  renew(id: string): void {
    const reservation = this.#currentOf(id);
    if (reservation === undefined) return;
    this.#reported(reservation);
    const { kind, processId, counter } = reservation;
    switch (kind) {
      case 'budget':
      case 'usage':
      case 'reports-usage-held':
        if (processId === this.#parts.processId) {
          this.#budgets.renew(counter);
          this.#open.renew(counter, this.#parts.monotonicMs());
        } else this.#changes.add({ kind: 'renew-tokens', processId, counter });
        break;
      case 'adds-collection':
        this.#changes.add({ kind: 'renew-collection', processId, counter });
        break;
      case 'removes-collection':
      case 'reads-response':
      case 'reports-usage':
        // These reserve nothing.
        break;
      default:
        kind satisfies never;
    }
  }

  /**
   * Releases the amounts or the collection that a cancelled check of this process had reserved. The check's unit of the
   * rate limit stays consumed. If the request runs nevertheless, its end is booked. Ignores reservations of other
   * processes. Never throws.
   */
  release(id: string): void {
    const { kind, processId, counter } = this.#currentOf(id) ?? {};
    if (counter === undefined || processId !== this.#parts.processId) return;
    this.#ends.released();
    this.#open.ended(counter);
    if (kind !== undefined && isHeld(kind)) this.#budgets.release(counter);
    if (kind !== 'adds-collection') return;
    this.#counts.reservationsReleased += 1;
    this.#changes.add({ kind: 'release-collection', processId, counter });
  }

  /**
   * Another server of the database answers, which may lack the last changes. The process asks it for its leases and
   * holds again.
   */
  storeReplaced(): void {
    this.#leases.storeReplaced();
    this.#budgets.storeReplaced();
  }

  /** Leases ahead of need, books ends, and returns what is not needed. Resolves when the store has answered. */
  async tick(): Promise<void> {
    await Promise.all([
      this.#leases.tick(),
      this.#budgets.tick(),
      this.#settler.tick(),
      this.#changes.tick(),
      this.#open.tick(this.#budgets.answeredRequestMs),
      this.#ends.tick(),
    ]);
  }

  /**
   * Registers the process with the store, and starts the timers of `tick` and `tidy`. Does not reject: an unreachable
   * store is retried.
   */
  async start(): Promise<void> {
    this.#timers = [setInterval(() => void this.tick(), TICK_MS), setInterval(() => void this.tidy(), TIDY_MS)];
    for (const timer of this.#timers) timer.unref();
    await this.tick();
  }

  /** Books the known ends and returns unused leases and holds, if the store is reachable. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
    await this.#upkeep.idle();
    await Promise.all([this.#settler.stop(), this.#changes.stop()]);
    await Promise.all([this.#leases.stop(), this.#budgets.stop()]);
  }

  /** Books the requests of lost processes, frees their holds, and deletes old rows. Never rejects. */
  tidy(): Promise<void> {
    return this.#upkeep.run();
  }

  get stats() {
    // First, because it updates the count of stranded requests.
    const rates = this.#leases.stats;
    const waiting = { settlementsWaiting: this.#settler.waiting, changesWaiting: this.#changes.waiting };
    return { ...this.#counts, rates, budgets: this.#budgets.stats, ...waiting, unreported: this.unreported };
  }

  /** Whether limits are enforced without the store. */
  get isOffline(): boolean {
    return this.#leases.stats.isOffline || this.#budgets.stats.isOffline;
  }

  /**
   * Returns the number of requests older than a reservation's lifetime whose ends no proxy reports; 0 while ends are
   * reported.
   */
  get unreported(): number {
    return this.#ends.requests;
  }

  /**
   * Returns the shares of monthly tokens that are spent or held, for the tenants with the least left, as of the last
   * review.
   */
  get quotas(): readonly QuotaShare[] {
    return this.#budgets.quotas;
  }

  #chargesOf({ charges: text }: FinishedUsage): Charges {
    if (text === undefined) return NO_CHARGES;
    const charges = readCharges(text);
    if (charges === undefined) this.#counts.unknownCharges += 1;
    return charges ?? NO_CHARGES;
  }

  #reported({ processId }: Reservation): void {
    if (processId === this.#parts.processId) this.#ends.reported();
  }

  #currentOf(id: string): Reservation | undefined {
    const reservation = this.#read(id);
    return reservation !== undefined && this.#isCurrent(reservation) ? reservation : undefined;
  }

  /** Reads an id with both keys: the wrong key gives a random minute, which is almost never a current one. */
  #read(id: string): Reservation | undefined {
    const reservation = this.#ids.read(id);
    if (this.#otherIds === undefined || reservation === undefined || this.#isCurrent(reservation)) return reservation;
    const other = this.#otherIds.read(id);
    return other !== undefined && this.#isCurrent(other) ? other : reservation;
  }

  #isCurrent({ minute }: Reservation): boolean {
    const now = Math.floor(this.#nowMs() / MINUTE_MS);
    return minute >= now - SETTLE_WITHIN_MINUTES && minute <= now + CLOCK_SKEW_MINUTES;
  }

  async #tidy(): Promise<void> {
    const { store, windowMs, reservationTtlMs, monotonicMs, onFault } = this.#parts;
    // No process could reach the store during its outage, so the silence of another process counts only after it.
    const silenceCounts = monotonicMs() - this.#leases.reachableSinceMs >= this.#holdTtlMs;
    const holdTtlMs = silenceCounts ? this.#holdTtlMs : SETTLEMENT_KEEP_MS;
    const options = { windowMs, holdTtlMs, settlementKeepMs: SETTLEMENT_KEEP_MS, batch: TIDY_BATCH };
    const repeat = async (statement: () => Promise<boolean>): Promise<void> => {
      for (let round = 0; round < MAX_TIDY_ROUNDS; round++) {
        this.#counts.statements += 1;
        if (!(await statement())) return;
      }
    };
    try {
      await repeat(async () => {
        const { booked, more } = await store.bookLost({ ...options, reservationTtlMs });
        this.#counts.lostBooked += booked;
        return more;
      });
      await repeat(async () => (await store.tidy(options)).more);
    } catch (error) {
      onFault?.(error);
    }
  }

  #nowMs(now = this.#parts.monotonicMs()): number {
    return this.#clock.nowMs(now, this.#parts.now);
  }
}
