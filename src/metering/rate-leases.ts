/**
 * Rate limits over all processes. A window is a fixed interval of the store's clock. The store grants each process
 * slices of a window ahead of need, so that a check consumes its units from memory: one of each limit of requests, and
 * the tokens that it may spend of each limit of tokens. A check consumes units of all its subjects, or of none:
 *
 * - If the process has enough units of all left, it admits the check at once.
 * - If the store has reported that a window is used up, the process rejects the check at once.
 * - Otherwise (the first check, a burst, or a limit too small to slice) the check waits for one statement, which
 *   carries the requests of all waiting checks.
 *
 * The end of a request corrects its tokens in the windows that it consumed them of. The process keeps what it needs of
 * the unspent ones, and returns the others to the store.
 *
 * Invariant: in a window, all processes together never admit more than the store granted, except what requests spent
 * beyond their tokens, and the store never grants more than the limit. If the store's clock is not known well enough to
 * distinguish two adjacent windows, a check consumes units of both.
 *
 * While the store is unreachable, each process continues with its fair share of the limit: the limit divided by the
 * number of processes last seen. So does a check that cannot wait longer for the store's answer. The process reports
 * the admitted units afterwards. In the window in which the outage begins,
 * a process keeps what it used beyond its share. In the window in which the outage ends, a process may lease units that
 * others have not reported yet. In these two windows, all processes together exceed the limit by at most the shares of
 * all processes except one.
 */

import { SingleFlight } from '../concurrency/single-flight.ts';
import { Fault } from '../domain/errors.ts';
import type { RateLimitMember } from '../domain/problem-details.ts';
import type { Interval, StoreClock } from '../domain/store-clock.ts';
import { isLate, Outage, type SharedParts } from './parts.ts';
import type { RateLeaseRequest, RateLeaseResult, RateStore } from './ports.ts';
import { MAX_REQUESTS, RateBatch, windowSpanAt } from './rate-batch.ts';
import { RateNeeds } from './rate-needs.ts';
import { RecentSubjects } from './rate-recent.ts';
import { type RateState, rateState, tighter, unknownRate } from './rate-state.ts';
import { RateSubject, RateSubjects, type SubjectKind } from './rate-subjects.ts';
import { applyGrant, isExhausted, type RateWindow } from './rate-window.ts';
import { rateSliceOf, rateSurplusOf, SHORT_MS, SLICE_SPAN_MS } from './slices.ts';

interface RateParts extends SharedParts {
  readonly store: RateStore;
  readonly windowMs: number;
  /** Learns from each answer of the store. */
  readonly clock: StoreClock;
  /** The machine's clock, milliseconds since the epoch. Used until the store's clock is known. */
  readonly now: () => number;
  readonly maxSubjects: number;
}

/** The states of the tighter limits; undefined if there is none. */
export interface RateStates {
  readonly rate: RateState | undefined;
  readonly tokenRate: RateState | undefined;
}

export type RateResult =
  | (RateStates & { readonly kind: 'consumed'; readonly windows: readonly RateWindow[] })
  | {
      readonly kind: 'refused';
      /** The subject without room. */
      readonly subject: RateSubject;
      readonly state: RateState;
    };

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
/** After this time without a statement, the process returns no tokens before the store has answered another one. */
const TRUST_MS = 1000;

/** The subjects of one check: at least one. */
export type Subjects = readonly [RateSubject, ...RateSubject[]];

interface Waiter {
  readonly subjects: Subjects;
  readonly tokens: number;
  readonly decideByMs: number | undefined;
  attempts: number;
  /** Whether the current batch has its requests. */
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
  /** Subjects with tokens to return after the store has answered: tokens that a lost statement returns stay unused. */
  readonly #unreturned = new Set<RateSubject>();
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
        this.#unreturned.delete(subject);
      },
      onStranded: ({ unit }, units) => {
        if (unit === 'tokens') return;
        this.#held -= units;
        parts.counts.rateStranded += units;
      },
    });
  }

  /** Returns a subject for the next check. @param id unique among the subjects of the kind */
  subject(kind: SubjectKind, id: string, label: RateLimitMember, limit: number, now: number): RateSubject {
    const subject = this.#subjects.find(kind, id, label, now);
    subject.limit = limit;
    return subject;
  }

  /**
   * Consumes one unit of the current window of each limit of requests, and the tokens of each limit of tokens.
   * @param tokens the tokens that the request may spend
   * @param decideByMs the monotonic time after which the check no longer waits for the store
   * @returns the result, or a promise if the check must wait for the store. The promise never rejects. Throws a Fault
   *   if too many wait.
   */
  consume(
    subjects: Subjects,
    tokens: number,
    now = this.#parts.monotonicMs(),
    decideByMs?: number,
  ): RateResult | Promise<RateResult> {
    for (const subject of subjects) {
      const amount = subject.amountOf(tokens);
      subject.used = true;
      this.#recent.record(subject, now);
      // A request that no window can admit must not take the slices of the others.
      if (amount > subject.limit) continue;
      subject.lastAmount = amount;
      subject.demand.record(amount);
    }
    const result = this.#try(subjects, tokens, now);
    if (!(result instanceof RateSubject)) return result;
    if (this.#waiting.length >= MAX_WAITING)
      throw new Fault(`${MAX_WAITING} requests are already waiting for a rate lease`);
    this.#parts.counts.rateWaited += 1;
    return new Promise((resolve) => {
      this.#waiting.push({ subjects, tokens, decideByMs, attempts: 0, isRequested: false, resolve });
      void this.#statements.run();
    });
  }

  /**
   * Returns tokens that a request consumed of the windows and did not spend, or consumes those that it spent beyond
   * them: then `tokens` is negative. Windows that have ended stay as they are.
   */
  correct(windows: readonly RateWindow[], tokens: number): void {
    for (const window of windows) {
      if (window.dropped) continue;
      if (tokens >= 0) this.#give(window, tokens);
      else this.#take(window, -tokens);
      this.#returnSurplus(window.subject);
    }
  }

  /** Leases what will be needed soon. Call it about every 100 ms. Resolves when the store has answered. */
  tick(): Promise<void> {
    const now = this.#parts.monotonicMs();
    this.#serveLate(now);
    if (this.#clock.known && !this.#outage.lasts) this.#lookAhead(this.#clock.at(now), now);
    if (this.#needs.urgent || this.#outage.lasts || this.#beatIsDue(now)) return this.#statements.run();
    return this.#statements.idle();
  }

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
    return now - this.#requestedAtMs >= BEAT_MS || this.#unreturned.size > 0;
  }

  /** Returns the subject that lacks units if the check must wait for the store. */
  #try(subjects: Subjects, tokens: number, now: number, offline = this.#outage.lasts): RateResult | RateSubject {
    if (!this.#clock.known && !offline) return subjects[0];
    const interval = this.#interval(now);
    const { windowMs } = this.#parts;
    const first = Math.floor(interval.earliestMs / windowMs);
    const last = Math.floor(interval.latestMs / windowMs);
    const windows: RateWindow[] = [];
    let short: RateSubject | undefined;
    for (const subject of subjects) {
      const amount = subject.amountOf(tokens);
      for (let number = first; ; number = last) {
        const window = subject.window(number);
        const room = this.#roomIn(window, amount, now, offline);
        if (room === false) return this.#refused(window, interval);
        if (room === undefined) short ??= subject;
        windows.push(window);
        if (number === last) break;
      }
    }
    if (short !== undefined) return short;
    let requests: RateWindow | undefined;
    let ofTokens: RateWindow | undefined;
    for (const window of windows) {
      const { subject } = window;
      this.#take(window, subject.amountOf(tokens));
      if (window.number !== first) continue;
      if (subject.unit === 'tokens') ofTokens = tighter(ofTokens, window);
      else requests = tighter(requests, window);
      if (window.left < subject.demand.expectedIn(SHORT_MS, now)) this.#needs.add(subject, window, now);
    }
    return {
      kind: 'consumed',
      rate: requests && rateState(requests, windowMs, interval.earliestMs),
      tokenRate: ofTokens && rateState(ofTokens, windowMs, interval.earliestMs),
      windows,
    };
  }

  /** Reports whether a window has room for the amount; undefined: the store must answer first. */
  #roomIn(window: RateWindow, amount: number, now: number, offline: boolean): boolean | undefined {
    const { limit } = window.subject;
    if (amount > limit) return false;
    if (window.left >= amount) return true;
    if (offline) return window.admitted + amount <= Math.floor(limit / this.#processes);
    return isExhausted(window, amount, now) ? false : undefined;
  }

  #refused(window: RateWindow, { earliestMs }: Interval): RateResult {
    return { kind: 'refused', subject: window.subject, state: rateState(window, this.#parts.windowMs, earliestMs) };
  }

  /** The store's clock, or that of the machine if the store has not answered yet. */
  #interval(now: number): Interval {
    if (this.#clock.known) return this.#clock.at(now);
    const nowMs = this.#parts.now();
    return { earliestMs: nowMs, latestMs: nowMs };
  }

  /** Consumes units of a window: first leased ones, then others, which the store learns of later. */
  #take(window: RateWindow, amount: number): void {
    const leased = Math.min(window.left, amount);
    window.admitted += amount;
    this.#hold(window, -leased);
    if (leased === amount) return;
    window.unreported += amount - leased;
    if (window.subject.unit === 'requests') this.#parts.counts.rateUnleased += amount - leased;
    this.#needs.addReport(window.subject);
  }

  /** Undoes `#take`: first for units that the store does not know yet. */
  #give(window: RateWindow, amount: number): void {
    const unreported = Math.min(amount, Math.max(0, window.unreported));
    window.admitted -= amount;
    window.unreported -= unreported;
    this.#hold(window, amount - unreported);
  }

  /** Has the next statement return tokens that the process does not need. */
  #returnSurplus(subject: RateSubject): void {
    if (subject.unit !== 'tokens' || subject.forgotten) return;
    const now = this.#parts.monotonicMs();
    const slice = rateSliceOf(subject, this.#processes, now);
    if (!subject.windows.some((window) => rateSurplusOf(window, slice, slice) > 0)) return;
    if (this.#outage.lasts || now - this.#requestedAtMs >= TRUST_MS) this.#unreturned.add(subject);
    else this.#needs.addUrgent(subject);
  }

  /** Adds units to a window, or removes them. A grant may arrive after the window has ended. */
  #hold(window: RateWindow, units: number): void {
    window.left += units;
    if (window.subject.unit === 'tokens') return;
    if (window.dropped) this.#parts.counts.rateStranded += units;
    else this.#held += units;
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
      if (window.left < slice && !isExhausted(window, slice, now)) this.#needs.addUrgent(subject);
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
    // If the answer is lost, the returned tokens stay unused until their window ends.
    for (const { window, returned } of batch?.windows ?? []) this.#hold(window, -returned);
    try {
      const result = await store.lease(processId, requests);
      this.#clock.learn(sentMs, monotonicMs(), result.nowMs);
      this.#processes = Math.max(1, result.processes);
      if (batch !== undefined) this.#apply(batch, result);
      this.#outage.answered();
      for (const subject of this.#unreturned) this.#needs.addUrgent(subject);
      this.#unreturned.clear();
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
    const span = windowSpanAt(this.#clock.at(now), this.#parts.windowMs);
    const returns = !this.#outage.lasts && this.#unreturned.size === 0;
    const batch = new RateBatch(span, this.#processes, now, returns);
    const add = (subject: RateSubject, waits: number): boolean => {
      this.#examined += 1;
      return batch.add(subject, waits);
    };
    const waits = new Map<RateSubject, number>();
    for (const { subjects, tokens } of this.#waiting) {
      for (const subject of subjects) waits.set(subject, (waits.get(subject) ?? 0) + subject.amountOf(tokens));
    }
    const examined = new Set<RateSubject>();
    for (const [subject, units] of waits) {
      // The other waiters get the next statement, which follows at once.
      if (batch.isFull) break;
      add(subject, units);
      examined.add(subject);
    }
    for (const waiter of this.#waiting) waiter.isRequested = waiter.subjects.every((subject) => examined.has(subject));
    for (const subject of this.#needs.unreported()) {
      if (batch.isFull) return batch;
      // Only the current windows matter, so a subject without a request for them has nothing to report.
      if (!examined.has(subject) && !add(subject, 0)) this.#needs.reported(subject);
    }
    if (batch.isFull) return batch;
    let count = 0;
    for (const subject of this.#needs.taken()) {
      if (!examined.has(subject) && !batch.subjects.has(subject)) add(subject, 0);
      count += 1;
      if (batch.isFull || count >= MAX_EXAMINED) break;
    }
    return batch;
  }

  #apply({ requests, windows, subjects }: RateBatch, result: RateLeaseResult): void {
    const now = this.#parts.monotonicMs();
    for (const [i, request] of requests.entries()) {
      const { window, returned } = windows[i] ?? {};
      const grant = result.grants[i];
      if (window === undefined || returned === undefined || grant === undefined) continue;
      if (window.subject.unit === 'requests') this.#parts.counts.rateLeased += grant.granted;
      applyGrant(window, request, grant, returned, now);
      this.#hold(window, grant.granted);
    }
    for (const subject of subjects)
      if (!subject.windows.some(({ unreported }) => unreported > 0)) this.#needs.reported(subject);
  }

  /** Answers checks for which a statement takes too long, as during an outage. */
  #serveLate(now: number): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const waiter of waiting) {
      const result = isLate(waiter.decideByMs, now) && this.#try(waiter.subjects, waiter.tokens, now, true);
      if (result === false || result instanceof RateSubject) this.#waiting.push(waiter);
      else waiter.resolve(result);
    }
  }

  #serveWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    const now = this.#parts.monotonicMs();
    for (const waiter of waiting) {
      const { subjects, tokens, isRequested } = waiter;
      const result = this.#try(subjects, tokens, now);
      if (isRequested) waiter.attempts += 1;
      waiter.isRequested = false;
      if (!(result instanceof RateSubject)) waiter.resolve(result);
      else if (waiter.attempts < MAX_ATTEMPTS) this.#waiting.push(waiter);
      else waiter.resolve({ kind: 'refused', subject: result, state: unknownRate(result.limit, this.#parts.windowMs) });
    }
    for (const { subjects } of waiting) for (const subject of subjects) this.#returnSurplus(subject);
  }
}
