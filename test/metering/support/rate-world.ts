/** Several processes and one store with a simulated clock, for limits that hold in any order of events. */

import { StoreClock } from '../../../src/domain/store-clock.ts';
import type { RateLeaseRequest, RateLeaseResult, RateStore } from '../../../src/metering/ports.ts';
import { RateLeases, type RateResult } from '../../../src/metering/rate-leases.ts';
import type { SubjectKind } from '../../../src/metering/rate-subjects.ts';
import { type MeteringCounts, newCounts } from '../../../src/telemetry/metering-counts.ts';

export const WINDOW_MS = 1000;
const KINDS: Readonly<Record<string, SubjectKind>> = { tenant: 'tenant', key: 'key' };

/** A limit of requests, as a refusal names it. */
export const REQUESTS = { level: 'key', models: ['*'], dimension: 'requests_per_minute' } as const;

interface Delivery {
  readonly atMs: number;
  readonly run: () => void;
}

export interface Process {
  readonly leases: RateLeases;
  readonly counts: MeteringCounts;
  /** Leased requests that it used. */
  used: number;
  alive: boolean;
}

export interface Admission {
  readonly subject: string;
  /** The window of the store's clock at the admission. */
  readonly window: number;
  readonly process: number;
}

export class RateWorld {
  /** The store's clock, unless it is set. */
  nowMs = 1_800_000_000_000;
  /** How far the store's clock was set. */
  storeShiftMs = 0;
  storeUp = true;
  readonly admitted: Admission[] = [];
  refused = 0;
  statements = 0;
  readonly granted = new Map<string, number>();
  readonly processes: Process[];
  #deliveries: Delivery[] = [];
  #latency: () => number;

  /** @param latency milliseconds that one way of a statement takes */
  constructor(processes: number, latency: () => number) {
    this.#latency = latency;
    // Each has a monotonic clock with its own start, and a rate that differs by 0.01 %.
    this.processes = Array.from({ length: processes }, (_, i) => {
      const beganMs = this.nowMs - 1000 * (i + 1);
      const pace = 1 + (i - 1) * 0.0001;
      const monotonicMs = (): number => (this.nowMs - beganMs) * pace;
      const store = this.#storeOf(i);
      const counts = newCounts();
      const leases = new RateLeases({
        store,
        processId: `p${i}`,
        windowMs: WINDOW_MS,
        clock: new StoreClock(),
        monotonicMs,
        now: () => this.nowMs,
        maxSubjects: 100,
        counts,
      });
      return { leases, counts, used: 0, alive: true };
    });
  }

  #storeOf(process: number): RateStore {
    return {
      lease: (_holder, requests) =>
        new Promise((resolve, reject) => {
          this.statements += 1;
          this.#later(() => {
            if (!this.storeUp) {
              this.#later(() => this.#deliver(process, () => reject(new Error('away'))));
              return;
            }
            const answer = this.#grant(requests);
            this.#later(() => this.#deliver(process, () => resolve(answer)));
          });
        }),
    };
  }

  #deliver(process: number, run: () => void): void {
    if (this.processes[process]?.alive === true) run();
  }

  #later(run: () => void): void {
    this.#deliveries.push({ atMs: this.nowMs + this.#latency(), run });
  }

  #grant(requests: readonly RateLeaseRequest[]): RateLeaseResult {
    const grants = requests.map(({ subject, window, limit, requested, report }) => {
      const key = `${subject} ${window}`;
      const before = (this.granted.get(key) ?? 0) + report;
      const granted = Math.max(0, Math.min(requested, limit - before));
      this.granted.set(key, before + granted);
      return { granted, total: before + granted };
    });
    return {
      grants,
      nowMs: this.nowMs + this.storeShiftMs,
      processes: this.processes.filter(({ alive }) => alive).length,
    };
  }

  take(process: number, subject: string, limit: number): void {
    const { leases, alive } = this.processes[process] ?? {};
    if (leases === undefined || alive !== true) return;
    const [kind = '', id = ''] = subject.split(':');
    const taken = leases.consume([leases.subject(KINDS[kind] ?? 'tenant', id, REQUESTS, limit, this.nowMs)], 1);
    if (taken instanceof Promise) void taken.then((result) => this.#note(process, subject, result));
    else this.#note(process, subject, taken);
  }

  #note(process: number, subject: string, taken: RateResult): void {
    const taker = this.processes[process];
    if (taker?.alive !== true) return;
    if (taken.kind === 'consumed') taker.used += taken.windows.length;
    if (taken.kind === 'consumed') this.admitted.push({ subject, window: Math.floor(this.nowMs / WINDOW_MS), process });
    else this.refused += 1;
  }

  /** Time passes in steps, and with it what is under way arrives. */
  async advance(ms: number): Promise<void> {
    const endMs = this.nowMs + ms;
    await settle();
    for (;;) {
      const next = this.#deliveries.filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) break;
      this.#deliveries = this.#deliveries.filter((delivery) => delivery !== next);
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.run();
      await settle();
    }
    this.nowMs = endMs;
  }

  async tick(process: number): Promise<void> {
    const { leases, alive } = this.processes[process] ?? {};
    if (alive === true) void leases?.tick();
    await settle();
  }

  admittedIn(subject: string): Map<number, number> {
    const counts = new Map<number, number>();
    for (const admission of this.admitted) {
      if (admission.subject === subject) counts.set(admission.window, (counts.get(admission.window) ?? 0) + 1);
    }
    return counts;
  }
}

/** Lets everything that is ready run. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 12; i++) await Promise.resolve();
}
