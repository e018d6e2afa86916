/**
 * Holds decisions in shadow mode until a writer takes them: all of a trial, and the newest of a long one. Decisions
 * beyond a bound are counted.
 *
 * Each tenant has a queue and a budget of its own, and so do decisions without a tenant. A queue may take as much memory
 * as is free, so one flood leaves memory to other tenants.
 */

import { type CheckOutcome, outcomeKind, tenantOf } from './check-outcome.ts';
import { type RecentDecisionRow, rowOf, type TakenDecision, takeDecision } from './recent-decision.ts';

interface TrialDecisionsOptions {
  /** The memory of waiting decisions, in bytes. Default: 16 MiB. */
  readonly maxBytes?: number;
  /** The maximum number of tenants with waiting decisions. Default: 10,000. */
  readonly maxTenants?: number;
  /** The maximum number of rows of one `take`. Default: 512. */
  readonly maxRows?: number;
}

/** The recorded decisions of a tenant: `burst` at once, then `refill` after each `take`. */
const BURST = 20_000;
const REFILL = 4;

interface Queue {
  held: TakenDecision[];
  bytes: number;
  credit: number;
  /** Whether a decision was dropped since the last `take`. */
  isSampled: boolean;
}

export class TrialDecisions {
  readonly #maxBytes: number;
  readonly #maxTenants: number;
  readonly #maxRows: number;
  /** The tenant that was served longest ago is the first. */
  readonly #tenants = new Map<string, Queue>();
  #bytes = 0;
  #dropped = 0;

  constructor({ maxBytes = 16 * 1024 * 1024, maxTenants = 10_000, maxRows = 512 }: TrialDecisionsOptions = {}) {
    this.#maxBytes = maxBytes;
    this.#maxTenants = maxTenants;
    this.#maxRows = maxRows;
  }

  /** Decisions that were not recorded. */
  get dropped(): number {
    return this.#dropped;
  }

  offer(outcome: CheckOutcome): void {
    const kind = outcomeKind(outcome.code);
    if (kind === 'fault') return;
    const queue = this.#queueOf(tenantOf(outcome.decision));
    if (queue === undefined) {
      this.#dropped++;
      return;
    }
    const taken = queue.credit < 1 ? undefined : takeDecision(outcome, kind);
    if (taken === undefined || queue.bytes + taken.bytes > this.#maxBytes - this.#bytes) {
      queue.isSampled = true;
      this.#dropped++;
      return;
    }
    queue.credit--;
    queue.bytes += taken.bytes;
    this.#bytes += taken.bytes;
    queue.held.push(taken);
  }

  /** Counts rows that the writer could not store. */
  lost(rows: readonly RecentDecisionRow[]): void {
    this.#dropped += rows.length;
  }

  /** Returns the oldest waiting decisions. Each tenant has an equal share of the rows, and of those that others leave. */
  take(): readonly RecentDecisionRow[] {
    const rows: RecentDecisionRow[] = [];
    let waiting = 0;
    for (const { held } of this.#tenants.values()) if (held.length > 0) waiting++;
    for (const [tenant, queue] of [...this.#tenants]) {
      if (queue.held.length > 0) {
        const share = Math.ceil((this.#maxRows - rows.length) / waiting--);
        for (const taken of queue.held.splice(0, share)) {
          queue.bytes -= taken.bytes;
          this.#bytes -= taken.bytes;
          rows.push(rowOf(taken, queue.isSampled));
        }
        if (queue.held.length === 0) queue.isSampled = false;
        // The next call begins with the others.
        this.#tenants.delete(tenant);
        this.#tenants.set(tenant, queue);
      }
      queue.credit = Math.min(BURST, queue.credit + REFILL);
      if (queue.held.length === 0 && queue.credit >= BURST) this.#tenants.delete(tenant);
    }
    return rows;
  }

  #queueOf(tenant: string): Queue | undefined {
    const known = this.#tenants.get(tenant);
    if (known !== undefined) return known;
    if (this.#tenants.size >= this.#maxTenants) return undefined;
    const made: Queue = { held: [], bytes: 0, credit: BURST, isSampled: false };
    this.#tenants.set(tenant, made);
    return made;
  }
}
