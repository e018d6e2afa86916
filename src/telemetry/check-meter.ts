/**
 * Counts checks by code and by route in plain numbers. A route is an entry of the route table, never text of a client.
 */

import { BODY_SETTING } from '../decision/body.ts';
import type { Deny, Route } from '../decision/model.ts';
import type { RateLimitMember } from '../domain/problem-details.ts';
import { type CheckCode, type OutcomeKind, outcomeKind } from './check-outcome.ts';
import { DurationHistogram } from './histogram.ts';

interface CodeCount {
  readonly outcome: OutcomeKind;
  readonly code: CheckCode;
  count: number;
}

type RouteCount = Record<OutcomeKind, number>;

/** More than any route table has. Checks of further routes are counted by code only. */
const MAX_ROUTES = 2000;

export class CheckMeter {
  readonly #codes = new Map<CheckCode, CodeCount>();
  readonly #routes = new Map<Route, RouteCount>();
  readonly #notSent = new Map<Route, number>();
  readonly #modelLimits = new Map<string, { readonly limit: RateLimitMember; count: number }>();
  readonly durations = new DurationHistogram();
  /** Checks whose outcome a report-only policy would have changed, by the effect of the policy. */
  readonly reported = { allow: 0, deny: 0 };
  /** Checks that a budget refused. */
  refusedByBudget = 0;

  record(code: CheckCode, route: Route | undefined, tookMs: number): void {
    const slot = this.#codes.get(code) ?? this.#newCode(code);
    slot.count++;
    if (route !== undefined) {
      const counts = this.#routes.get(route) ?? this.#newRoute(route);
      counts[slot.outcome]++;
    }
    this.durations.observe(tookMs);
  }

  bodyNotSent(route: Route): void {
    const count = this.#notSent.get(route);
    if (count !== undefined || this.#notSent.size < MAX_ROUTES) this.#notSent.set(route, (count ?? 0) + 1);
  }

  /** Counts the budget or the limit by model that refused a check. */
  refused({ budgetId, modelLimit }: Pick<Deny, 'budgetId' | 'modelLimit'>): void {
    if (budgetId !== undefined) this.refusedByBudget++;
    if (modelLimit === undefined) return;
    const name = `${modelLimit.level} ${modelLimit.dimension}`;
    this.#modelLimits.getOrInsert(name, { limit: modelLimit, count: 0 }).count++;
  }

  refusedByModelLimit(): readonly (readonly [level: string, dimension: string, number])[] {
    return Array.from(this.#modelLimits.values(), ({ limit, count }) => [limit.level, limit.dimension, count]);
  }

  byCode(): readonly (readonly [outcome: string, code: string, number])[] {
    return Array.from(this.#codes.values(), ({ outcome, code, count }) => [outcome, code, count]);
  }

  byRoute(): readonly (readonly [method: string, template: string, outcome: string, number])[] {
    return [...this.#routes].flatMap(([{ method, template }, counts]) =>
      Object.entries(counts)
        .filter(([, count]) => count > 0)
        .map(([outcome, count]) => [method, template, outcome, count] as const),
    );
  }

  /** Returns the requests whose body Envoy did not send, by route. */
  bodiesNotSent(): readonly (readonly [method: string, template: string, setting: string, number])[] {
    return Array.from(this.#notSent, ([{ method, template }, count]) => [method, template, BODY_SETTING, count]);
  }

  #newCode(code: CheckCode): CodeCount {
    const slot = { outcome: outcomeKind(code), code, count: 0 };
    this.#codes.set(code, slot);
    return slot;
  }

  #newRoute(route: Route): RouteCount {
    const counts = { allow: 0, deny: 0, fault: 0 };
    if (this.#routes.size < MAX_ROUTES) {
      this.#routes.set(route, counts);
    }
    return counts;
  }
}
