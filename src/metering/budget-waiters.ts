/** Checks that wait for the store's answer on some of their budgets, in the order of their arrival. */

import { Fault } from '../domain/errors.ts';
import { amountIn } from './account.ts';
import type { PeriodBudget } from './budget.ts';
import type { ReservationRequest } from './budgets.ts';
import type { Hold } from './hold.ts';
import { isLate } from './parts.ts';

interface Waiter {
  readonly request: ReservationRequest;
  /** The holds that the check still needs. It keeps what it has of the others, so that no later check takes it. */
  missing: readonly Hold[];
  readonly taken: Hold[];
  readonly resolve: (refused: Hold | undefined) => void;
  readonly reject: (error: unknown) => void;
  /** Whether the current statement has its requests. */
  isRequested: boolean;
  /** The number of answered statements that had its requests. */
  answers: number;
}

/**
 * Reserves the amount and returns true. Returns false if too little is left, and undefined if only the store can
 * decide. Throws a Fault if the store is unreachable and the process cannot decide.
 */
type TakeAttempt = (budget: PeriodBudget, amount: number) => boolean | undefined;

const MAX_WAITING = 10_000;
/**
 * Other processes may change a budget while a statement runs, so that its answer is not enough. After this number of
 * answers, a check is rejected.
 */
const MAX_ANSWERS = 4;

export class BudgetWaiters {
  #waiting: Waiter[] = [];

  get size(): number {
    return this.#waiting.length;
  }

  /**
   * Resolves to undefined if the whole request is reserved, otherwise to the hold for which too little is left. Rejects
   * with a Fault, and throws one if too many checks wait.
   * @param taken the holds that the check has reserved
   */
  add(request: ReservationRequest, taken: Hold[], missing: readonly Hold[]): Promise<Hold | undefined> {
    if (this.#waiting.length >= MAX_WAITING) throw new Fault(`${MAX_WAITING} requests are already waiting for budgets`);
    return new Promise((resolve, reject) => {
      join(missing, request);
      this.#waiting.push({ request, taken, missing, resolve, reject, isRequested: false, answers: 0 });
    });
  }

  budgets(): Set<PeriodBudget> {
    return new Set(this.#waiting.flatMap(({ missing }) => missing.map(({ budget }) => budget)));
  }

  /** @param requested the budgets for which the statement that is being sent requests amounts */
  markRequested(requested: ReadonlySet<PeriodBudget>): void {
    for (const waiter of this.#waiting)
      waiter.isRequested = waiter.missing.every(({ budget }) => requested.has(budget));
  }

  /**
   * Answers the checks that wait for a place and cannot wait longer, as during an outage.
   * @param take never returns undefined
   */
  serveLate(nowMs: number, take: TakeAttempt, onReserved: (request: ReservationRequest) => void): void {
    const { true: late, false: others = [] } = Object.groupBy(
      this.#waiting,
      ({ request, missing }) =>
        `${isLate(request.decideByMs, nowMs) && missing.some(({ budget }) => budget.unit === 'places')}` as const,
    );
    if (late === undefined) return;
    this.#waiting = late;
    this.serve(take, onReserved);
    this.#waiting.push(...others);
  }

  /** Answers the waiting checks that can be answered, after a statement has ended. */
  serve(take: TakeAttempt, onReserved: (request: ReservationRequest) => void): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const waiter of waiting) {
      if (waiter.isRequested) waiter.answers += 1;
      waiter.isRequested = false;
      try {
        const hasNoRoom = takeMissing(waiter, take);
        const [missing] = waiter.missing;
        if (hasNoRoom === undefined && missing !== undefined && waiter.answers < MAX_ANSWERS) {
          this.#waiting.push(waiter);
          continue;
        }
        const refused = hasNoRoom ?? missing;
        leave(waiter.missing, waiter.request);
        if (refused === undefined) onReserved(waiter.request);
        else releaseHolds(waiter.taken, waiter.request);
        waiter.resolve(refused);
      } catch (error) {
        leave(waiter.missing, waiter.request);
        releaseHolds(waiter.taken, waiter.request);
        waiter.reject(error);
      }
    }
  }
}

/**
 * Reserves each missing amount for which there is room. Returns the hold for which too little is left. A rate limit
 * refuses before a quota, so a quota does not refuse while the store may still report that no place is free.
 */
function takeMissing(waiter: Waiter, take: TakeAttempt): Hold | undefined {
  const { request, missing, taken } = waiter;
  let awaitsPlace = false;
  for (const hold of missing) {
    const outcome = take(hold.budget, amountIn(hold.budget.unit, request));
    const isPlace = hold.cause.kind === 'parallel';
    if (outcome === false && (isPlace || !awaitsPlace)) return hold;
    if (outcome === undefined && isPlace) awaitsPlace = true;
    if (outcome !== true) continue;
    leave([hold], request);
    taken.push(hold);
    waiter.missing = waiter.missing.filter((other) => other !== hold);
  }
  return undefined;
}

function join(missing: readonly Hold[], request: ReservationRequest): void {
  for (const { budget } of missing) {
    budget.waiting += 1;
    budget.waitingAmount += amountIn(budget.unit, request);
  }
}

function leave(missing: readonly Hold[], request: ReservationRequest): void {
  for (const { budget } of missing) {
    budget.waiting -= 1;
    budget.waitingAmount -= amountIn(budget.unit, request);
  }
}

export function releaseHolds(taken: readonly Hold[], request: ReservationRequest): void {
  for (const { budget } of taken) budget.release(amountIn(budget.unit, request), 0);
}
