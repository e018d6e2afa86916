/**
 * Collects denials, the first allow of each principal, route and model of a day, decisions that a report-only policy
 * would have changed, and a sample of the other allows, until a writer takes them. Every check calls it: an allow costs two lookups and a counter, and a denial one small object.
 *
 * Each tenant has its own budget for each of these kinds, a token bucket, and so do decisions without a tenant. So no flood of
 * a tenant, and no flood without credentials, displaces another tenant's decisions. All decisions of one budget in one
 * interval have the same chance of being recorded. Memory is bounded in bytes.
 */

import type { Allow } from '../decision/model.ts';
import { type CheckOutcome, outcomeKind, reportedEffect, tenantOf } from './check-outcome.ts';
import { FirstAllows } from './first-allows.ts';
import { type RecentDecisionRow, rowOf, type TakenDecision, takeDecision } from './recent-decision.ts';

interface RecentDecisionsOptions {
  /** Returns a number in [0, 1). Default: Math.random. */
  readonly random?: () => number;
  /** The memory of waiting decisions, in bytes. Default: 8 MiB. */
  readonly maxBytes?: number;
  /** The maximum number of tenants with decisions in one interval. Default: 10,000. */
  readonly maxTenants?: number;
  /** The maximum number of rows of one `take`. Default: 128. */
  readonly maxRows?: number;
  /** The first allows of the day. */
  readonly firsts?: FirstAllows;
}

/**
 * The recorded decisions of a tenant: `burst` at once, then `refill` in each interval. A first allow beyond its budget
 * is not remembered, so a later one of its kind is the first.
 */
const BUDGETS = {
  deny: { burst: 32, refill: 4 },
  first: { burst: 32, refill: 4 },
  report: { burst: 32, refill: 4 },
  allow: { burst: 4, refill: 0.1 },
} as const;
type Recorded = keyof typeof BUDGETS;
/** In the order in which they take the rows of a batch. */
const KINDS = ['deny', 'report', 'first', 'allow'] as const satisfies readonly Recorded[];
/** The share of the rows of a batch that a flood of denials and reports leaves to first allows. */
const SHARE_OF_FIRSTS = 0.25;
/** The share of the memory that waiting first allows take. The rest is for the others. */
const MEMORY_OF_FIRSTS = 0.125;

interface Slot {
  /** The decisions that may still be recorded, at most `burst`. */
  credit: number;
  /** Decisions since the last `take`, and the denials among them. */
  seen: number;
  denied: number;
  readonly held: TakenDecision[];
}

type Slots = Readonly<Record<Recorded, Slot>>;

export class RecentDecisions {
  readonly #random: () => number;
  readonly #maxBytes: number;
  readonly #maxTenants: number;
  readonly #maxRows: number;
  readonly #firsts: FirstAllows;
  readonly #tenants = new Map<string, Slots>();
  /** Of waiting first allows, and of the others. */
  #firstBytes = 0;
  #bytes = 0;
  #dropped = 0;

  constructor(options: RecentDecisionsOptions = {}) {
    this.#random = options.random ?? Math.random;
    this.#maxBytes = options.maxBytes ?? 8 * 1024 * 1024;
    this.#maxTenants = options.maxTenants ?? 10_000;
    this.#maxRows = options.maxRows ?? 128;
    this.#firsts = options.firsts ?? new FirstAllows();
  }

  /** Denials that were not recorded. */
  get dropped(): number {
    return this.#dropped;
  }

  offer(outcome: CheckOutcome): void {
    const kind = outcomeKind(outcome.code);
    if (kind === 'fault' || outcome.code === 'public') return;
    const { decision } = outcome;
    const slots = this.#slotsOf(tenantOf(decision));
    if (slots === undefined) {
      this.#drop(kind, 1);
      return;
    }
    if (decision?.kind === 'allow' && this.#holdFirst(slots.first, decision, outcome)) return;
    const slot = slots[reportedEffect(decision) === undefined ? kind : 'report'];
    slot.seen++;
    if (kind === 'deny') slot.denied++;
    const { held } = slot;
    if (held.length < Math.floor(slot.credit)) {
      this.#hold(slot, held.length, outcome, kind);
      return;
    }
    // Reservoir sampling: each of the decisions so far stays with the same chance.
    const at = held.length === 0 ? 0 : Math.floor(this.#random() * slot.seen);
    if (at < held.length) this.#hold(slot, at, outcome, kind);
  }

  /** Counts rows that the writer could not store. */
  lost(rows: readonly RecentDecisionRow[]): void {
    for (const { outcome } of rows) this.#drop(outcome, 1);
  }

  /**
   * Returns the recorded decisions since the last call, and starts another interval. First allows without a place in
   * this batch wait for the next one.
   */
  take(): readonly RecentDecisionRow[] {
    const chosen = this.#choose();
    const rows: RecentDecisionRow[] = [];
    this.#bytes = 0;
    this.#firstBytes = 0;
    for (const [tenant, slots] of this.#tenants) {
      const keptOf = (kind: Recorded): number => Math.min(slots[kind].held.length, chosen.get(slots[kind]) ?? 0);
      const isCut = (kind: Recorded): boolean => keptOf(kind) < slots[kind].seen;
      const isSampled = { deny: isCut('deny') || isCut('report'), allow: isCut('allow') || isCut('report') };
      let idle = true;
      for (const kind of KINDS) {
        const slot = slots[kind];
        const kept = keptOf(kind);
        let denials = 0;
        for (const taken of slot.held.slice(0, kept)) {
          rows.push(rowOf(taken, isSampled[taken.outcome]));
          if (taken.outcome === 'deny') denials++;
        }
        const { burst, refill } = BUDGETS[kind];
        idle &&= slot.seen === 0 && slot.credit >= burst && slot.held.length === kept;
        slot.credit = Math.min(burst, slot.credit - kept + refill);
        slot.held.splice(0, kind === 'first' ? kept : slot.held.length);
        for (const { bytes } of slot.held) this.#firstBytes += bytes;
        this.#drop('deny', slot.denied - denials);
        slot.seen = 0;
        slot.denied = 0;
      }
      if (idle) this.#tenants.delete(tenant);
    }
    return rows;
  }

  /** Holds the first allow of its kind. Returns false for any other, and for a first one beyond the bounds. */
  #holdFirst(slot: Slot, allow: Allow, outcome: CheckOutcome): boolean {
    const { held } = slot;
    if (held.length >= Math.floor(slot.credit) || !this.#firsts.isFirst(allow, outcome.startedAtMs)) return false;
    const taken = takeDecision(outcome, 'allow');
    if (this.#firstBytes + taken.bytes > this.#maxBytes * MEMORY_OF_FIRSTS) return false;
    this.#firstBytes += taken.bytes;
    held.push({ ...taken, first_of: this.#firsts.remember() });
    return true;
  }

  #slotsOf(tenant: string): Slots | undefined {
    const slots = this.#tenants.get(tenant);
    if (slots !== undefined) return slots;
    if (this.#tenants.size >= this.#maxTenants) return undefined;
    const made = {
      deny: newSlot('deny'),
      first: newSlot('first'),
      report: newSlot('report'),
      allow: newSlot('allow'),
    };
    this.#tenants.set(tenant, made);
    return made;
  }

  #hold(slot: Slot, at: number, outcome: CheckOutcome, kind: 'allow' | 'deny'): void {
    const taken = takeDecision(outcome, kind);
    const freed = slot.held[at]?.bytes ?? 0;
    if (this.#bytes + taken.bytes - freed > this.#maxBytes * (1 - MEMORY_OF_FIRSTS)) return;
    this.#bytes += taken.bytes - freed;
    slot.held[at] = taken;
  }

  /** Returns the number of rows of each slot: one of each slot in turn, denials first, starting at a random slot. */
  #choose(): ReadonlyMap<Slot, number> {
    const chosen = new Map<Slot, number>();
    const slotsOf = (kind: Recorded) =>
      Array.from(this.#tenants.values(), (each) => each[kind]).filter(({ held }) => held.length > 0);
    const waitingFirsts = slotsOf('first').reduce((sum, { held }) => sum + held.length, 0);
    const forFirsts = Math.min(waitingFirsts, Math.floor(this.#maxRows * SHARE_OF_FIRSTS));
    let left = this.#maxRows - forFirsts;
    for (const kind of KINDS) {
      if (kind === 'first') left += forFirsts;
      const slots = slotsOf(kind);
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

  #drop(outcome: 'deny' | 'allow', count: number): void {
    if (outcome === 'deny') this.#dropped += count;
  }
}

function newSlot(kind: Recorded): Slot {
  return { credit: BUDGETS[kind].burst, seen: 0, denied: 0, held: [] };
}
