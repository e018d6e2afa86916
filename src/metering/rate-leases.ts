/**
 * Requests per window, held over all processes. A window is a fixed stretch of the store's clock. The store grants each process slices
 * of what is left of a window, ahead of need, so that a check takes its share from memory:
 *
 * - a share is left here: the check is admitted at once;
 * - the store has said that there is no more: it is refused at once;
 * - neither is known (the first check, a burst, or a limit too small to slice): the check waits for one statement, which carries the
 *   wishes of all who wait.
 *
 * Invariant: what all processes admit in a window is never more than what the store granted for it, and that never passes the limit.
 * Where the store's clock is not known well enough to tell on which side of a border now is, a check takes a share of both windows.
 *
 * While the store is away each process goes on with its fair share of the limit, the limit divided by the processes last seen, and
 * reports afterwards what it admitted. In the window in which the store went away, processes that had used more than their share
 * before keep it; in that in which it comes back, whoever is back first may lease what others have not reported yet. In these two all
 * together pass the limit by at most the shares of all processes but one.
 */

import { Fault } from '../domain/errors.ts';
import type { Interval, StoreClock } from '../domain/store-clock.ts';
import type { MeteringCounts } from './counts.ts';
import type { RateLeaseRequest, RateLeaseResult, RateStore } from './ports.ts';
import { MAX_REQUESTS, RateBatch, windowSpanAt } from './rate-batch.ts';
import { RateNeeds } from './rate-needs.ts';
import { RecentSubjects } from './rate-recent.ts';
import { type RateState, rateState, unknownRate } from './rate-state.ts';
import type { RateSubject } from './rate-subject.ts';
import { RateSubjects, type SubjectKind } from './rate-subjects.ts';
import { consumeShare, isExhausted, learnGrant, type RateWindow } from './rate-window.ts';
import { rateSliceOf, SHORT_MS, SLICE_MS } from './slices.ts';

export interface RateParts {
  readonly store: RateStore;
  /** This process among those that share the limits. */
  readonly processId: string;
  readonly windowMs: number;
  readonly monotonicMs: () => number;
  /** Learns from each answer of the store. */
  readonly clock: StoreClock;
  /** The machine's own clock, milliseconds since the epoch; used until the store's clock is known. */
  readonly now: () => number;
  readonly maxSubjects: number;
  readonly counts: MeteringCounts;
  /** Told once each time the store goes away. */
  readonly onFault?: (error: unknown) => void;
}

export type RateResult =
  | { readonly kind: 'taken'; readonly state: RateState; readonly windows: readonly RateWindow[] }
  | { readonly kind: 'refused'; readonly state: RateState };

/** Subjects looked at in one tick for a slice of the next window. */
export const MAX_LOOKED_AHEAD = 2000;
/** Requests that a subject is expected to make in two seconds, to be given one. */
const LIKELY = 0.5;
/** Subjects looked at for one statement. */
const MAX_LOOKED = 5 * MAX_REQUESTS;
const MAX_ATTEMPTS = 4;
const MAX_WAITING = 10_000;
/** So often at least the store hears that this process lives, and this process what time it is there. */
const BEAT_MS = 5000;

interface Waiter {
  readonly subject: RateSubject;
  readonly limit: number;
  attempts: number;
  /** Its wish was in the batch that is under way. */
  isRequested: boolean;
  readonly resolve: (taken: RateResult) => void;
}

export class RateLeases {
  readonly #parts: RateParts;
  readonly #clock: StoreClock;
  readonly #subjects: RateSubjects;
  readonly #recent = new RecentSubjects();
  readonly #needs = new RateNeeds();
  /** Requests leased and not used, of all windows. */
  #held = 0;
  #lookedAt = 0;
  #waiting: Waiter[] = [];
  #running: Promise<void> | undefined;
  #isOffline = false;
  #processes = 1;
  #requestedAtMs = Number.NEGATIVE_INFINITY;
  #reachableSinceMs = Number.POSITIVE_INFINITY;

  constructor(parts: RateParts) {
    this.#parts = parts;
    this.#clock = parts.clock;
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

  /** Warm: the answer itself. Otherwise a promise, which never rejects. Throws a Fault when too many wait already. */
  take(
    kind: SubjectKind,
    id: string,
    limit: number,
    now = this.#parts.monotonicMs(),
  ): RateResult | Promise<RateResult> {
    const subject = this.#subjects.find(kind, id, now);
    subject.limit = limit;
    subject.used = true;
    subject.demand.note();
    this.#recent.note(subject, now);
    const taken = this.#try(subject, limit, now);
    if (taken !== undefined) return taken;
    if (this.#waiting.length >= MAX_WAITING)
      throw new Fault(`${MAX_WAITING} requests are already waiting for a rate lease`);
    this.#parts.counts.rateWaited += 1;
    return new Promise((resolve) => {
      this.#waiting.push({ subject, limit, attempts: 0, isRequested: false, resolve });
      this.#request();
    });
  }

  /** Undoes what `take` gave, when the request was refused for another reason before it could count. */
  release(windows: readonly RateWindow[]): void {
    for (const window of windows) {
      window.admitted -= 1;
      this.#hold(window, 1);
    }
  }

  /** Asks for what will be needed soon; to be called every 100 ms or so. Resolves when the store has answered. */
  tick(): Promise<void> {
    const now = this.#parts.monotonicMs();
    if (this.#clock.known && !this.#isOffline) this.#lookAhead(this.#clock.at(now), now);
    if (this.#needs.urgent || this.#isOffline || this.#beats(now)) this.#request();
    return this.#running ?? Promise.resolve();
  }

  /** Gives back what was leased and not used. */
  async stop(): Promise<void> {
    await this.#running;
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
      // The windows end soon, and with them what is stranded.
      this.#parts.onFault?.(error);
    }
  }

  /** Another server of the database answers, which has not heard of the other processes yet: `reachableSinceMs` counts from its next answer. */
  storeReplaced(): void {
    this.#reachableSinceMs = Number.POSITIVE_INFINITY;
  }

  /** Since when the store has answered every statement, by the monotonic clock; infinity while it does not. */
  get reachableSinceMs(): number {
    return this.#reachableSinceMs;
  }

  get stats() {
    return {
      subjects: this.#subjects.size,
      /** How often a subject was looked at for a statement since the process began. */
      lookedAt: this.#lookedAt,
      waiting: this.#waiting.length,
      held: this.#held,
      isOffline: this.#isOffline,
      processes: this.#processes,
    };
  }

  #beats(now: number): boolean {
    return now - this.#requestedAtMs >= BEAT_MS;
  }

  /** Undefined when only the store can say. */
  #try(subject: RateSubject, limit: number, now: number): RateResult | undefined {
    if (this.#isOffline) return this.#takeFairShare(subject, limit, now);
    if (!this.#clock.known) return undefined;
    const { windowMs } = this.#parts;
    const interval = this.#clock.at(now);
    const first = Math.floor(interval.earliestMs / windowMs);
    const last = Math.floor(interval.latestMs / windowMs);
    const window = subject.window(first);
    // A literal: an array that grows is given room for many.
    const windows = first === last ? [window] : [window, subject.window(last)];
    for (const each of windows) {
      if (isExhausted(each, limit)) return { kind: 'refused', state: this.#state(limit, each, interval) };
      if (each.left < 1) return undefined;
    }
    for (const each of windows) {
      each.admitted += 1;
      this.#hold(each, -1);
    }
    if (window.left < subject.demand.within(SHORT_MS, now)) this.#needs.note(subject, window, now);
    return { kind: 'taken', state: this.#state(limit, window, interval), windows };
  }

  #takeFairShare(subject: RateSubject, limit: number, now: number): RateResult {
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
    if (leased.length < windows.length) this.#needs.owesReport(subject);
    return { kind: 'taken', state: this.#state(limit, first, interval), windows: leased };
  }

  #state(limit: number, window: RateWindow, { earliestMs }: Interval): RateState {
    return rateState(limit, window, this.#parts.windowMs, earliestMs);
  }

  /** Gives a window more, or takes from it. A grant may come when the window is over. */
  #hold(window: RateWindow, requests: number): void {
    window.left += requests;
    if (window.dropped) this.#parts.counts.rateStranded += requests;
    else this.#held += requests;
  }

  /** Before a border, asks for the next window's first slice for subjects that are in use: some of them in each tick. */
  #lookAhead(interval: Interval, now: number): void {
    const { last, ahead } = windowSpanAt(interval, this.#parts.windowMs);
    if (ahead === last) return;
    for (const subject of this.#recent.next(ahead, MAX_LOOKED_AHEAD)) {
      this.#lookedAt += 1;
      if (subject.demand.within(SLICE_MS, now) < LIKELY) continue;
      const wanted = rateSliceOf(subject, this.#processes, now);
      if (wanted === 0) continue;
      const window = subject.window(ahead);
      if (!isExhausted(window, subject.limit) && window.left < wanted) this.#needs.add(subject);
    }
  }

  #request(): void {
    if (this.#running !== undefined) return;
    this.#running = this.#requestFromStore().finally(() => {
      this.#running = undefined;
      if (this.#waiting.length > 0) this.#request();
    });
  }

  async #requestFromStore(): Promise<void> {
    // Whoever comes in this turn of the loop comes along.
    await Promise.resolve();
    const { store, processId, counts, monotonicMs, onFault } = this.#parts;
    const batch = this.#collect();
    const requests = batch?.requests ?? [];
    const sentMs = monotonicMs();
    // A limit too small to slice runs low without there being anything to ask for.
    if (requests.length === 0 && this.#waiting.length === 0 && !this.#isOffline && !this.#beats(sentMs)) return;
    this.#requestedAtMs = sentMs;
    counts.statements += 1;
    try {
      const answer = await store.lease(processId, requests);
      this.#clock.learn(sentMs, monotonicMs(), answer.nowMs);
      this.#processes = Math.max(1, answer.processes);
      if (batch !== undefined) this.#learn(batch, answer);
      this.#isOffline = false;
      this.#reachableSinceMs = Math.min(this.#reachableSinceMs, sentMs);
    } catch (error) {
      if (!this.#isOffline) {
        counts.faults += 1;
        onFault?.(error);
      }
      this.#isOffline = true;
      this.#reachableSinceMs = Number.POSITIVE_INFINITY;
    }
    this.#serveWaiting();
  }

  /** Checks that wait come first, then what is to be reported, then windows that run low. */
  #collect(): RateBatch | undefined {
    if (!this.#clock.known) return undefined;
    const now = this.#parts.monotonicMs();
    const batch = new RateBatch(windowSpanAt(this.#clock.at(now), this.#parts.windowMs), this.#processes, now);
    const add = (subject: RateSubject, waits: number): boolean => {
      this.#lookedAt += 1;
      return batch.add(subject, waits);
    };
    for (const [subject, waiters] of Map.groupBy(this.#waiting, ({ subject }) => subject)) {
      // The others wait for the next statement, which follows at once.
      if (batch.isFull) return batch;
      if (add(subject, waiters.length)) for (const waiter of waiters) waiter.isRequested = true;
    }
    for (const subject of this.#needs.unreported()) {
      if (batch.isFull) return batch;
      // No windows but those of now are of interest to anybody.
      if (!batch.subjects.has(subject) && !add(subject, 0)) this.#needs.reported(subject);
    }
    if (batch.isFull) return batch;
    let looked = 0;
    for (const subject of this.#needs.taken()) {
      if (!batch.subjects.has(subject)) add(subject, 0);
      looked += 1;
      if (batch.isFull || looked >= MAX_LOOKED) break;
    }
    return batch;
  }

  #learn({ requests, windows, subjects }: RateBatch, answer: RateLeaseResult): void {
    for (const [i, request] of requests.entries()) {
      const window = windows[i];
      const grant = answer.grants[i];
      if (window === undefined || grant === undefined) continue;
      this.#parts.counts.rateLeased += grant.granted;
      learnGrant(window, request, grant);
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
      const taken = this.#try(waiter.subject, waiter.limit, now);
      if (waiter.isRequested) waiter.attempts += 1;
      waiter.isRequested = false;
      if (taken !== undefined) waiter.resolve(taken);
      else if (waiter.attempts < MAX_ATTEMPTS) this.#waiting.push(waiter);
      else waiter.resolve({ kind: 'refused', state: unknownRate(waiter.limit, this.#parts.windowMs) });
    }
  }
}
