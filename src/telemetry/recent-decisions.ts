/**
 * Collects denials and a sample of allows until a writer takes them. Every check calls it: an allow costs a lookup and
 * a counter, and a denial one small object.
 *
 * Each tenant has its own budget for each outcome, a token bucket, and so do decisions without a tenant. So no flood of
 * a tenant, and no flood without credentials, displaces another tenant's decisions. All decisions of one budget in one
 * interval have the same chance of being recorded. Memory is bounded in bytes.
 */

import { type CheckOutcome, outcomeKind, tenantOf } from './check-outcome.ts';
import { type RecentDecisionRow, rowOf, type TakenDecision, takeDecision } from './recent-decision.ts';

export interface RecentDecisionsOptions {
  /** Returns a number in [0, 1). Default: Math.random. */
  readonly random?: () => number;
  /** The memory of waiting decisions, in bytes. Default: 8 MiB. */
  readonly maxBytes?: number;
  /** The maximum number of tenants with decisions in one interval. Default: 10,000. */
  readonly maxTenants?: number;
  /** The maximum number of rows of one `take`. Default: 128. */
  readonly maxRows?: number;
}

/** The recorded decisions of a tenant and outcome: `burst` at once, then `refill` in each interval. */
const BUDGETS = { deny: { burst: 32, refill: 4 }, allow: { burst: 4, refill: 0.1 } } as const;
type Recorded = keyof typeof BUDGETS;
const OUTCOMES = ['deny', 'allow'] as const satisfies readonly Recorded[];

interface Slot {
  readonly outcome: Recorded;
  /** The decisions that may still be recorded, at most `burst`. */
  credit: number;
  /** Decisions since the last `take`. */
  seen: number;
  readonly held: TakenDecision[];
}

type Slots = Readonly<Record<Recorded, Slot>>;

export class RecentDecisions {
  readonly #random: () => number;
  readonly #maxBytes: number;
  readonly #maxTenants: number;
  readonly #maxRows: number;
  readonly #tenants = new Map<string, Slots>();
  #bytes = 0;
  #dropped = 0;

  constructor(options: RecentDecisionsOptions = {}) {
    this.#random = options.random ?? Math.random;
    this.#maxBytes = options.maxBytes ?? 8 * 1024 * 1024;
    this.#maxTenants = options.maxTenants ?? 10_000;
    this.#maxRows = options.maxRows ?? 128;
  }

  /** Denials that were not recorded. */
  get dropped(): number {
    return this.#dropped;
  }

  offer(outcome: CheckOutcome): void {
    const kind = outcomeKind(outcome.code);
    if (kind === 'fault' || outcome.code === 'public') return;
    const slot = this.#slotOf(tenantOf(outcome.decision), kind);
    if (slot === undefined) {
      this.#drop(kind, 1);
      return;
    }
    slot.seen++;
    const { held } = slot;
    if (held.length < Math.floor(slot.credit)) {
      this.#hold(slot, held.length, outcome);
      return;
    }
    // Reservoir sampling: each of the decisions so far stays with the same chance.
    const at = held.length === 0 ? 0 : Math.floor(this.#random() * slot.seen);
    if (at < held.length) this.#hold(slot, at, outcome);
  }

  /** Counts rows that the writer could not store. */
  lost(rows: readonly RecentDecisionRow[]): void {
    for (const { outcome } of rows) this.#drop(outcome, 1);
  }

  /** Returns the recorded decisions since the last call, and starts another interval. */
  take(): readonly RecentDecisionRow[] {
    const chosen = this.#choose();
    const rows: RecentDecisionRow[] = [];
    for (const [tenant, slots] of this.#tenants) {
      let idle = true;
      for (const outcome of OUTCOMES) {
        const slot = slots[outcome];
        const kept = Math.min(slot.held.length, chosen.get(slot) ?? 0);
        for (let i = 0; i < kept; i++) {
          const taken = slot.held[i];
          if (taken !== undefined) rows.push(rowOf(taken, kept < slot.seen));
        }
        this.#drop(outcome, slot.seen - kept);
        const { burst, refill } = BUDGETS[outcome];
        idle &&= slot.seen === 0 && slot.credit >= burst;
        slot.credit = Math.min(burst, slot.credit - kept + refill);
        slot.seen = 0;
        slot.held.length = 0;
      }
      if (idle) this.#tenants.delete(tenant);
    }
    this.#bytes = 0;
    return rows;
  }

  #slotOf(tenant: string, kind: Recorded): Slot | undefined {
    const slots = this.#tenants.get(tenant);
    if (slots !== undefined) return slots[kind];
    if (this.#tenants.size >= this.#maxTenants) return undefined;
    const made = { deny: newSlot('deny'), allow: newSlot('allow') };
    this.#tenants.set(tenant, made);
    return made[kind];
  }

  #hold(slot: Slot, at: number, outcome: CheckOutcome): void {
    const taken = takeDecision(outcome, slot.outcome);
    const freed = slot.held[at]?.bytes ?? 0;
    if (this.#bytes + taken.bytes - freed > this.#maxBytes) return;
    this.#bytes += taken.bytes - freed;
    slot.held[at] = taken;
  }

  /** Returns the number of rows of each slot: one of each slot in turn, denials first, starting at a random slot. */
  #choose(): ReadonlyMap<Slot, number> {
    const chosen = new Map<Slot, number>();
    let left = this.#maxRows;
    for (const outcome of OUTCOMES) {
      const slots = Array.from(this.#tenants.values(), (each) => each[outcome]).filter(({ held }) => held.length > 0);
      const first = Math.floor(this.#random() * slots.length);
      let waiting = [...slots.slice(first), ...slots.slice(0, first)];
      for (let round = 1; left > 0 && waiting.length > 0; round++) {
        for (const slot of waiting.slice(0, left)) chosen.set(slot, round);
        left -= Math.min(left, waiting.length);
        waiting = waiting.filter(({ held }) => held.length > round);
      }
    }
    return chosen;
  }

  #drop(outcome: Recorded, count: number): void {
    if (outcome === 'deny') this.#dropped += count;
  }
}

function newSlot(outcome: Recorded): Slot {
  return { outcome, credit: BUDGETS[outcome].burst, seen: 0, held: [] };
}
