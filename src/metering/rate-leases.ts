/**
 * Rate limits over all processes. A window is a fixed interval of the store's clock. The store grants each process
 * slices of a window ahead of need, so that a check consumes a unit from memory:
 *
 * - If the process has a unit left, it admits the check at once.
 * - If the store has reported that the window is used up, the process rejects the check at once.
 * - Otherwise (the first check, a burst, or a limit too small to slice) the check waits for one statement, which
 *   carries the requests of all waiting checks.
 *
 * Invariant: in a window, all processes together never admit more than the store granted, and the store never grants
 * more than the limit. If the store's clock is not known well enough to distinguish two adjacent windows, a check
 * consumes a unit of both.
 *
 * While the store is unreachable, each process continues with its fair share of the limit: the limit divided by the
 * number of processes last seen. It reports the admitted requests afterwards. In the window in which the outage begins,
 * a process keeps what it used beyond its share. In the window in which the outage ends, a process may lease units that
 * others have not reported yet. In these two windows, all processes together exceed the limit by at most the shares of
 * all processes except one.
 */

import { SingleFlight } from '../concurrency/single-flight.ts';
import { Fault } from '../domain/errors.ts';
import type { Interval, StoreClock } from '../domain/store-clock.ts';
import { Outage, type SharedParts } from './parts.ts';
import type { RateLeaseRequest, RateLeaseResult, RateStore } from './ports.ts';
import { MAX_REQUESTS, RateBatch, windowSpanAt } from './rate-batch.ts';
import { RateNeeds } from './rate-needs.ts';
import { RecentSubjects } from './rate-recent.ts';
import { type RateState, rateState, unknownRate } from './rate-state.ts';
import { type RateSubject, RateSubjects, type SubjectKind } from './rate-subjects.ts';
import { applyGrant, consumeShare, isExhausted, type RateWindow } from './rate-window.ts';
import { rateSliceOf, SHORT_MS, SLICE_SPAN_MS } from './slices.ts';

interface RateParts extends SharedParts {
  readonly store: RateStore;
  readonly windowMs: number;
  /** Learns from each answer of the store. */
  readonly clock: StoreClock;
  /** The machine's clock, milliseconds since the epoch. Used until the store's clock is known. */
  readonly now: () => number;
  readonly maxSubjects: number;
}

export type RateResult =
  | { readonly kind: 'consumed'; readonly state: RateState; readonly windows: readonly RateWindow[] }
  | { readonly kind: 'refused'; readonly state: RateState };

/** The largest number of subjects that one tick examines for a slice of the next window. */
export const MAX_LOOKED_AHEAD = 2000;
/**
 * A subject gets a slice of the next window if at least this number of its requests is expected within SLICE_SPAN_MS.
 */
const LIKELY = 0.5;
/** The largest number of subjects that are examined for one statement. */
const MAX_EXAMINED = 5 * MAX_REQUESTS;
const MAX_ATTEMPTS = 4;
const MAX_WAITING = 10_000;
/** The longest time between two statements. They keep the process known to the store, and its clock known here. */
const BEAT_MS = 5000;

interface Waiter {
  readonly subject: RateSubject;
  readonly limit: number;
  attempts: number;
  /** Whether the current batch has its request. */
  isRequested: boolean;
  readonly resolve: (result: RateResult) => void;
}

export class RateLeases {
  readonly #parts: RateParts;
  readonly #clock: StoreClock;
  readonly #subjects: RateSubjects;
  readonly #recent = new RecentSubjects();
  readonly #needs = new RateNeeds();
  readonly #outage: Outage;
  readonly #statements = new SingleFlight(
    () => this.#sendStatement(),
    () => this.#waiting.length > 0,
  );
  /** Requests leased and not used, in all windows. */
  #held = 0;
  #examined = 0;
  #waiting: Waiter[] = [];
  #processes = 1;
  #requestedAtMs = Number.NEGATIVE_INFINITY;
  #reachableSinceMs = Number.POSITIVE_INFINITY;

  constructor(parts: RateParts) {
    this.#parts = parts;
    this.#clock = parts.clock;
    this.#outage = new Outage(parts);
    this.#subjects = new RateSubjects({
      max: parts.maxSubjects,
      onForgotten: (subject) => {
        this.#needs.forget(subject);
        this.#recent.forget(subject);
      },
      onStranded: (requests) => {
        this.#held -= requests;
        parts.counts.rateStranded += requests;
      },
    });
  }

  /**
   * Consumes one unit of the current window.
   * @returns the result, or a promise if the check must wait for the store. The promise never rejects. Throws a Fault
   *   if too many wait.
   */
  consume(
    kind: SubjectKind,
    id: string,
    limit: number,
    now = this.#parts.monotonicMs(),
  ): RateResult | Promise<RateResult> {
    const subject = this.#subjects.find(kind, id, now);
    subject.limit = limit;
    subject.used = true;
    subject.demand.record();
    this.#recent.record(subject, now);
    const result = this.#try(subject, limit, now);
    if (result !== undefined) return result;
    if (this.#waiting.length >= MAX_WAITING)
      throw new Fault(`${MAX_WAITING} requests are already waiting for a rate lease`);
    this.#parts.counts.rateWaited += 1;
    return new Promise((resolve) => {
      this.#waiting.push({ subject, limit, attempts: 0, isRequested: false, resolve });
      void this.#statements.run();
    });
  }

  /** Undoes `consume` for a request that was rejected for another reason. */
  release(windows: readonly RateWindow[]): void {
    for (const window of windows) {
      window.admitted -= 1;
      this.#hold(window, 1);
    }
  }

  /** Leases what will be needed soon. Call it about every 100 ms. Resolves when the store has answered. */
  tick(): Promise<void> {
    const now = this.#parts.monotonicMs();
    if (this.#clock.known && !this.#outage.lasts) this.#lookAhead(this.#clock.at(now), now);
    if (this.#needs.urgent || this.#outage.lasts || this.#beatIsDue(now)) return this.#statements.run();
    return this.#statements.idle();
  }

  /** Returns unused leases to the store. */
  async stop(): Promise<void> {
    await this.#statements.idle();
    const requests: RateLeaseRequest[] = [];
    for (const { name, limit, windows } of this.#subjects.all()) {
      for (const window of windows) {
        const report = window.unreported - window.left;
        if (report !== 0) requests.push({ subject: name, window: window.number, limit, requested: 0, report });
        this.#hold(window, -window.left);
        window.unreported = 0;
      }
    }
    try {
      for (let at = 0; at < requests.length; at += MAX_REQUESTS) {
        await this.#parts.store.lease(this.#parts.processId, requests.slice(at, at + MAX_REQUESTS));
      }
    } catch (error) {
      // The leases are lost until their windows end.
      this.#parts.onFault?.(error);
    }
  }

  /**
   * Another server of the database answers, which has not seen the other processes yet. Its next answer begins the time
   * that `reachableSinceMs` returns.
   */
  storeReplaced(): void {
    this.#reachableSinceMs = Number.POSITIVE_INFINITY;
  }

  /** The time since which the store has answered every statement, by the monotonic clock; infinity during an outage. */
  get reachableSinceMs(): number {
    return this.#reachableSinceMs;
  }

  get stats() {
    return {
      subjects: this.#subjects.size,
      /** The number of times that a subject was examined for a statement since the process began. */
      examined: this.#examined,
      waiting: this.#waiting.length,
      held: this.#held,
      isOffline: this.#outage.lasts,
      processes: this.#processes,
    };
  }

  #beatIsDue(now: number): boolean {
    return now - this.#requestedAtMs >= BEAT_MS;
  }

  /** Returns undefined if the check must wait for the store. */
  #try(subject: RateSubject, limit: number, now: number): RateResult | undefined {
    if (this.#outage.lasts) return this.#consumeFairShare(subject, limit, now);
    if (!this.#clock.known) return undefined;
    const { windowMs } = this.#parts;
    const interval = this.#clock.at(now);
    const first = Math.floor(interval.earliestMs / windowMs);
    const last = Math.floor(interval.latestMs / windowMs);
    const window = subject.window(first);
    // An array literal takes less memory than an array that grows.
    const windows = first === last ? [window] : [window, subject.window(last)];
    for (const each of windows) {
      if (isExhausted(each, limit)) return { kind: 'refused', state: this.#state(limit, each, interval) };
      if (each.left < 1) return undefined;
    }
    for (const each of windows) {
      each.admitted += 1;
      this.#hold(each, -1);
    }
    if (window.left < subject.demand.expectedIn(SHORT_MS, now)) this.#needs.add(subject, window, now);
    return { kind: 'consumed', state: this.#state(limit, window, interval), windows };
  }

  #consumeFairShare(subject: RateSubject, limit: number, now: number): RateResult {
    const { windowMs } = this.#parts;
    const interval = this.#clock.known
      ? this.#clock.at(now)
      : { earliestMs: this.#parts.now(), latestMs: this.#parts.now() };
    const first = subject.window(Math.floor(interval.earliestMs / windowMs));
    const last = subject.window(Math.floor(interval.latestMs / windowMs));
    const windows = first === last ? [first] : [first, last];
    const leased = consumeShare(windows, Math.floor(limit / this.#processes));
    if (leased === undefined) return { kind: 'refused', state: this.#state(limit, first, interval) };
    this.#held -= leased.length;
    if (leased.length < windows.length) this.#needs.addReport(subject);
    return { kind: 'consumed', state: this.#state(limit, first, interval), windows: leased };
  }

  #state(limit: number, window: RateWindow, { earliestMs }: Interval): RateState {
    return rateState(limit, window, this.#parts.windowMs, earliestMs);
  }

  /** Adds units to a window, or removes them. A grant may arrive after the window has ended. */
  #hold(window: RateWindow, requests: number): void {
    window.left += requests;
    if (window.dropped) this.#parts.counts.rateStranded += requests;
    else this.#held += requests;
  }

  /**
   * Before a border, marks recent subjects that need a first slice of the next window: a bounded number in each tick.
   */
  #lookAhead(interval: Interval, now: number): void {
    const { last, ahead } = windowSpanAt(interval, this.#parts.windowMs);
    if (ahead === last) return;
    for (const subject of this.#recent.next(ahead, MAX_LOOKED_AHEAD)) {
      this.#examined += 1;
      if (subject.demand.expectedIn(SLICE_SPAN_MS, now) < LIKELY) continue;
      const slice = rateSliceOf(subject, this.#processes, now);
      if (slice === 0) continue;
      const window = subject.window(ahead);
      if (!isExhausted(window, subject.limit) && window.left < slice) this.#needs.addUrgent(subject);
    }
  }

  async #sendStatement(): Promise<void> {
    // The statement also carries the requests of checks that arrive in this turn of the event loop.
    await Promise.resolve();
    const { store, processId, counts, monotonicMs } = this.#parts;
    const batch = this.#collect();
    const requests = batch?.requests ?? [];
    const sentMs = monotonicMs();
    // A subject whose limit is too small to slice may be marked without a request.
    if (requests.length === 0 && this.#waiting.length === 0 && !this.#outage.lasts && !this.#beatIsDue(sentMs)) return;
    this.#requestedAtMs = sentMs;
    counts.statements += 1;
    try {
      const result = await store.lease(processId, requests);
      this.#clock.learn(sentMs, monotonicMs(), result.nowMs);
      this.#processes = Math.max(1, result.processes);
      if (batch !== undefined) this.#apply(batch, result);
      this.#outage.answered();
      this.#reachableSinceMs = Math.min(this.#reachableSinceMs, sentMs);
    } catch (error) {
      this.#outage.failed(error);
      this.#reachableSinceMs = Number.POSITIVE_INFINITY;
    }
    this.#serveWaiting();
  }

  /**
   * Collects the requests of one statement: first for waiting checks, then reports, then windows with few units left.
   */
  #collect(): RateBatch | undefined {
    if (!this.#clock.known) return undefined;
    const now = this.#parts.monotonicMs();
    const batch = new RateBatch(windowSpanAt(this.#clock.at(now), this.#parts.windowMs), this.#processes, now);
    const add = (subject: RateSubject, waits: number): boolean => {
      this.#examined += 1;
      return batch.add(subject, waits);
    };
    for (const [subject, waiters] of Map.groupBy(this.#waiting, ({ subject }) => subject)) {
      // The other waiters get the next statement, which follows at once.
      if (batch.isFull) return batch;
      if (add(subject, waiters.length)) for (const waiter of waiters) waiter.isRequested = true;
    }
    for (const subject of this.#needs.unreported()) {
      if (batch.isFull) return batch;
      // Only the current windows matter, so a subject without a request for them has nothing to report.
      if (!batch.subjects.has(subject) && !add(subject, 0)) this.#needs.reported(subject);
    }
    if (batch.isFull) return batch;
    let examined = 0;
    for (const subject of this.#needs.taken()) {
      if (!batch.subjects.has(subject)) add(subject, 0);
      examined += 1;
      if (batch.isFull || examined >= MAX_EXAMINED) break;
    }
    return batch;
  }

  #apply({ requests, windows, subjects }: RateBatch, result: RateLeaseResult): void {
    for (const [i, request] of requests.entries()) {
      const window = windows[i];
      const grant = result.grants[i];
      if (window === undefined || grant === undefined) continue;
      this.#parts.counts.rateLeased += grant.granted;
      applyGrant(window, request, grant);
      this.#hold(window, grant.granted);
    }
    for (const subject of subjects)
      if (!subject.windows.some(({ unreported }) => unreported > 0)) this.#needs.reported(subject);
  }

  #serveWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    const now = this.#parts.monotonicMs();
    for (const waiter of waiting) {
      const result = this.#try(waiter.subject, waiter.limit, now);
      if (waiter.isRequested) waiter.attempts += 1;
      waiter.isRequested = false;
      if (result !== undefined) waiter.resolve(result);
      else if (waiter.attempts < MAX_ATTEMPTS) this.#waiting.push(waiter);
      else waiter.resolve({ kind: 'refused', state: unknownRate(waiter.limit, this.#parts.windowMs) });
    }
  }
}
