/**
 * Counts decisions by minute, tenant, code and route until a writer takes the counts. Every check calls it: it
 * increments one number. The number of counters is bounded. A decision that needs another counter is dropped and
 * counted as such.
 */

import type { Route } from '../decision/model.ts';
import { type CheckCode, type CheckOutcome, routeOf, tenantOf } from './check-outcome.ts';

/** The number of equal decisions in one minute. */
export interface DecisionCount {
  /** The start of the minute, in milliseconds since the epoch. */
  readonly minuteMs: number;
  /** Empty if no tenant is known. */
  readonly tenant: string;
  readonly code: CheckCode;
  /** Method and template of a route. Empty if no route matched or was needed. */
  readonly route: string;
  readonly decisions: number;
}

interface DecisionTallyOptions {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** The maximum number of counters. Default: 20,000. */
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
  /** Counts of past minutes, and counts that a writer put back. */
  #waiting: DecisionCount[] = [];
  #counters = 0;
  #dropped = 0;

  constructor({ now, maxCounters = 20_000 }: DecisionTallyOptions) {
    this.#now = now;
    this.#maxCounters = maxCounters;
  }

  /** Decisions beyond the bound of counters. */
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

  take(): readonly DecisionCount[] {
    this.#begin(this.#minute);
    const counts = this.#waiting;
    this.#waiting = [];
    this.#counters = 0;
    return counts;
  }

  /** Puts counts back that the writer could not store. The next `take` returns them again. */
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
    // The codes of one route, mostly fewer than ten.
    for (const counter of counters) if (counter.code === code) return counter;
    if (this.#counters >= this.#maxCounters) return undefined;
    this.#counters++;
    const counter = { code, decisions: 0 };
    counters.push(counter);
    routes.set(route, counters);
    return counter;
  }

  /** Starts the counts of another minute, or of the rest of this one. */
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
