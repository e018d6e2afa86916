/**
 * Notices that no proxy reports the ends of the requests that this process admits: reservations then expire, and usage is not booked.
 *
 * Counts what was admitted since the last report of any of it. Reports may reach another process, so before it draws the conclusion this
 * one asks the store whether another process settled any of its reservations lately. One report is enough to begin the count again: an
 * access log loses entries now and then, but one that is not configured reports nothing.
 */

import type { ReportStore } from './ports.ts';

export interface UnreportedEndsParts {
  readonly store: ReportStore;
  /** This process. */
  readonly processId: string;
  /** A request must be this old before a missing report counts, milliseconds: the life of a reservation. */
  readonly lifeMs: number;
  readonly monotonicMs: () => number;
  /** Called when the ends begin to be missing, with the number of requests, and with 0 when they are reported again. */
  readonly onChange?: (requests: number) => void;
}

/** Fewer requests without a report may be cancelled checks, or requests that take long. */
export const MIN_UNREPORTED = 10;

export class UnreportedEnds {
  readonly #parts: UnreportedEndsParts;
  /** Admitted since the last report: longer than a life ago, and in the two periods of one life each since then. */
  #old = 0;
  #previous = 0;
  #current = 0;
  #periodBeganMs: number;
  #missing = false;
  #running: Promise<void> | undefined;
  /** Raised with each report, so that an answer of the store from before a report changes nothing. */
  #reports = 0;

  constructor(parts: UnreportedEndsParts) {
    this.#parts = parts;
    this.#periodBeganMs = parts.monotonicMs();
  }

  /** Returns the number of requests older than a life whose ends are missing; 0 while ends are reported. */
  get requests(): number {
    return this.#missing ? this.#old : 0;
  }

  /** A request was admitted whose end changes something. */
  admitted(): void {
    this.#current += 1;
  }

  /** A check was cancelled: its request does not run, so no end follows. */
  released(): void {
    if (this.#current > 0) this.#current -= 1;
    else if (this.#previous > 0) this.#previous -= 1;
  }

  /** A proxy reported a request that this process admitted. */
  reported(): void {
    this.#reports += 1;
    this.#old = 0;
    this.#previous = 0;
    this.#current = 0;
    if (!this.#missing) return;
    this.#missing = false;
    this.#parts.onChange?.(0);
  }

  /** Asks the store if too many ends are missing. Never rejects: while the store cannot be reached, nothing is concluded. */
  tick(): Promise<void> {
    const now = this.#parts.monotonicMs();
    if (now - this.#periodBeganMs < this.#parts.lifeMs) return this.#running ?? Promise.resolve();
    this.#periodBeganMs = now;
    this.#old += this.#previous;
    this.#previous = this.#current;
    this.#current = 0;
    if (this.#old < MIN_UNREPORTED) return this.#running ?? Promise.resolve();
    this.#running ??= this.#request().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #request(): Promise<void> {
    const { store, processId, lifeMs, onChange } = this.#parts;
    const reports = this.#reports;
    // Ends of requests that are older than a life may be as old as these requests; two periods and the one under way cover them.
    const settled = await store.settledLately(processId, 3 * lifeMs).catch(() => undefined);
    if (settled === undefined || reports !== this.#reports) return;
    if (settled) this.reported();
    else if (!this.#missing) {
      this.#missing = true;
      onChange?.(this.#old);
    }
  }
}
