/**
 * Counts decisions by the minute, tenant, code and route until somebody takes the counts to keep them. For the path of every check: it
 * adds one to a number. The counters are bounded: a decision that would need one more is not counted here, and that is counted.
 */

import type { Route } from '../decision/model.ts';
import { type CheckCode, type CheckOutcome, routeOf, tenantOf } from './check-outcome.ts';

/** How often something was decided in one minute. */
export interface DecisionCount {
  /** Milliseconds since the epoch at its start. */
  readonly minuteMs: number;
  /** Empty where nobody was known. */
  readonly tenant: string;
  readonly code: CheckCode;
  /** Method and template of a line of the route table; empty where none was matched, or needed. */
  readonly route: string;
  readonly decisions: number;
}

export interface DecisionTallyOptions {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Counters, at most; 20000 unless told. */
  readonly maxCounters?: number;
}

interface Counter {
  readonly code: CheckCode;
  decisions: number;
}

type ByRoute = Map<Route | undefined, Counter[]>;

const MINUTE_MS = 60_000;

export class DecisionTally {
  readonly #now: () => number;
  readonly #maxCounters: number;
  #minute = 0;
  #tenants = new Map<string, ByRoute>();
  /** Of minutes that are over, and those that were put back. */
  #waiting: DecisionCount[] = [];
  #counters = 0;
  #dropped = 0;

  constructor({ now, maxCounters = 20_000 }: DecisionTallyOptions) {
    this.#now = now;
    this.#maxCounters = maxCounters;
  }

  /** Decisions that found no counter. */
  get dropped(): number {
    return this.#dropped;
  }

  count({ code, decision }: Pick<CheckOutcome, 'code' | 'decision'>): void {
    const minute = Math.floor(this.#now() / MINUTE_MS);
    if (minute !== this.#minute) this.#begin(minute);
    const counter = this.#find(tenantOf(decision), routeOf(decision), code);
    if (counter === undefined) this.#dropped++;
    else counter.decisions++;
  }

  /** Hands out what was counted since the last time. */
  take(): readonly DecisionCount[] {
    this.#begin(this.#minute);
    const counts = this.#waiting;
    this.#waiting = [];
    this.#counters = 0;
    return counts;
  }

  /** Counts that could not be kept; they are handed out again. */
  putBack(counts: readonly DecisionCount[]): void {
    const room = Math.max(0, this.#maxCounters - this.#counters);
    this.#waiting.push(...counts.slice(0, room));
    this.#counters += Math.min(room, counts.length);
    for (const { decisions } of counts.slice(room)) this.#dropped += decisions;
  }

  #find(tenant: string, route: Route | undefined, code: CheckCode): Counter | undefined {
    let routes = this.#tenants.get(tenant);
    if (routes === undefined) {
      if (this.#counters >= this.#maxCounters) return undefined;
      routes = new Map();
      this.#tenants.set(tenant, routes);
    }
    const counters = routes.get(route) ?? [];
    // A route ends in a handful of codes.
    for (const counter of counters) if (counter.code === code) return counter;
    if (this.#counters >= this.#maxCounters) return undefined;
    this.#counters++;
    const counter = { code, decisions: 0 };
    counters.push(counter);
    routes.set(route, counters);
    return counter;
  }

  /** Another minute, or the rest of this one. */
  #begin(minute: number): void {
    for (const [tenant, routes] of this.#tenants) {
      for (const [route, counters] of routes) {
        const line = route === undefined ? '' : `${route.method} ${route.template}`;
        for (const { code, decisions } of counters) {
          this.#waiting.push({ minuteMs: this.#minute * MINUTE_MS, tenant, code, route: line, decisions });
        }
      }
    }
    this.#tenants = new Map();
    this.#minute = minute;
  }
}
