/**
 * A log of decisions that never holds one up: every fault, denials up to a rate, one allow in many. What is to be logged goes into a
 * bounded ring as it is; lines are made of it later, a batch at a time. When the ring is full the newest is dropped and counted.
 */

import type { Principal } from '../decision/model.ts';
import { type CheckOutcome, outcomeKind, routeOf } from './check-outcome.ts';

export interface DecisionLogParts {
  /** Takes one line's members. */
  readonly write: (members: Readonly<Record<string, unknown>>) => void;
  readonly monotonicMs: () => number;
  /** One allow in so many is logged; 0 = none. */
  readonly allowOneIn?: number;
  readonly denialsPerSecond?: number;
  /** Entries held until they are written. */
  readonly capacity?: number;
  /** Lines written in one go, ten times a second. */
  readonly batch?: number;
}

const WRITE_EVERY_MS = 100;
const SECOND_MS = 1000;
const MAX_TEXT = 256;

export class DecisionLog {
  readonly #write: DecisionLogParts['write'];
  readonly #monotonicMs: () => number;
  readonly #allowOneIn: number;
  readonly #denialsPerSecond: number;
  readonly #batch: number;
  readonly #ring: (CheckOutcome | undefined)[];
  #first = 0;
  #held = 0;
  #allowsToSkip: number;
  #denialsLeft: number;
  #windowStartMs = Number.NEGATIVE_INFINITY;
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: DecisionLogParts) {
    this.#write = parts.write;
    this.#monotonicMs = parts.monotonicMs;
    this.#allowOneIn = parts.allowOneIn ?? 1000;
    this.#denialsPerSecond = parts.denialsPerSecond ?? 50;
    this.#batch = parts.batch ?? 200;
    this.#ring = new Array<CheckOutcome | undefined>(parts.capacity ?? 1024).fill(undefined);
    this.#allowsToSkip = this.#allowOneIn - 1;
    this.#denialsLeft = this.#denialsPerSecond;
  }

  /** Denials over the rate and whatever found the ring full. Allows that were not sampled are not among them. */
  get dropped(): number {
    return this.#dropped;
  }

  offer(outcome: CheckOutcome): void {
    if (!this.#wants(outcome)) {
      return;
    }
    if (this.#held === this.#ring.length) {
      this.#dropped++;
      return;
    }
    this.#ring[(this.#first + this.#held) % this.#ring.length] = outcome;
    this.#held++;
    this.#schedule();
  }

  /** Writes everything that is held; for the end of the process. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#drain(this.#held);
  }

  #wants({ code }: CheckOutcome): boolean {
    const kind = outcomeKind(code);
    switch (kind) {
      case 'fault':
        return true;
      case 'allow':
        return this.#isSampled();
      case 'deny':
        return this.#isWithinRate();
      default:
        return kind satisfies never;
    }
  }

  #isSampled(): boolean {
    if (this.#allowsToSkip > 0 || this.#allowOneIn === 0) {
      this.#allowsToSkip--;
      return false;
    }
    this.#allowsToSkip = this.#allowOneIn - 1;
    return true;
  }

  #isWithinRate(): boolean {
    const nowMs = this.#monotonicMs();
    if (nowMs - this.#windowStartMs >= SECOND_MS) {
      this.#windowStartMs = nowMs;
      this.#denialsLeft = this.#denialsPerSecond;
    }
    if (this.#denialsLeft === 0) {
      this.#dropped++;
      return false;
    }
    this.#denialsLeft--;
    return true;
  }

  #schedule(): void {
    if (this.#timer === undefined) {
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this.#drain(this.#batch);
        if (this.#held > 0) {
          this.#schedule();
        }
      }, WRITE_EVERY_MS);
      this.#timer.unref();
    }
  }

  #drain(lines: number): void {
    for (let left = Math.min(lines, this.#held); left > 0; left--) {
      const outcome = this.#ring[this.#first];
      this.#ring[this.#first] = undefined;
      this.#first = (this.#first + 1) % this.#ring.length;
      this.#held--;
      if (outcome !== undefined) {
        this.#write(lineOf(outcome));
      }
    }
  }
}

function lineOf(outcome: CheckOutcome): Record<string, unknown> {
  const { decision, code } = outcome;
  const route = routeOf(decision);
  const principal = decision === undefined || decision.kind === 'public' ? undefined : decision.principal;
  return {
    outcome: outcomeKind(code),
    code,
    request_id: outcome.requestId,
    client_request_id: outcome.clientRequestId?.slice(0, MAX_TEXT),
    route: route && `${route.method} ${route.template}`,
    ...subjectOf(principal),
    ...(decision?.kind === 'allow' ? { tenant: decision.tenant.id, model: decision.model?.slice(0, MAX_TEXT) } : {}),
    ...(decision?.kind === 'deny'
      ? {
          reason: decision.reason,
          policy: decision.policy,
          permission: decision.permission,
          detail: decision.detail.slice(0, MAX_TEXT),
        }
      : {}),
    took_ms: Math.round(outcome.tookMs * 1000) / 1000,
    ...(outcome.error === undefined ? {} : { err: outcome.error }),
  };
}

function subjectOf(principal: Principal | undefined): Record<string, unknown> {
  return principal === undefined ? {} : { subject: principal.id, subject_type: principal.kind, tenant: principal.tenantId };
}
