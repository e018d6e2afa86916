/**
 * Detects that no proxy reports the ends of the requests that this process admits, so that reservations expire and
 * usage is not booked.
 *
 * It counts the admitted requests since the last report of any of them. Another process may receive the reports, so
 * before it concludes that they are missing, it asks the store whether another process recently settled a reservation
 * of this one. A single report resets the count: an access log loses some entries, but an access log that is not
 * configured reports none.
 */

import { SingleFlight } from '../concurrency/single-flight.ts';
import type { SharedParts } from './parts.ts';
import type { ReportStore } from './ports.ts';

interface UnreportedEndsParts extends Pick<SharedParts, 'processId' | 'monotonicMs'> {
  readonly store: ReportStore;
  /** A missing report counts if the request is older than this: the lifetime of a reservation. */
  readonly lifeMs: number;
  /** Called with the number of requests when reports begin to be missing, and with 0 when they arrive again. */
  readonly onChange?: (requests: number) => void;
}

/** Fewer requests without a report may be cancelled checks, or requests that run for a long time. */
export const MIN_UNREPORTED = 10;

export class UnreportedEnds {
  readonly #parts: UnreportedEndsParts;
  readonly #check = new SingleFlight(() => this.#askStore());
  /**
   * Requests admitted since the last report: those older than a lifetime, and those of the last two periods of one
   * lifetime each.
   */
  #old = 0;
  #previous = 0;
  #current = 0;
  #periodBeganMs: number;
  #missing = false;
  /** The number of reports. An answer of the store from before a report is ignored. */
  #reports = 0;

  constructor(parts: UnreportedEndsParts) {
    this.#parts = parts;
    this.#periodBeganMs = parts.monotonicMs();
  }

  /** Returns the number of requests older than a lifetime whose ends are missing; 0 while ends are reported. */
  get requests(): number {
    return this.#missing ? this.#old : 0;
  }

  /** Counts an admitted request whose end must be reported. */
  admitted(): void {
    this.#current += 1;
  }

  /** Uncounts the request of a cancelled check: it does not run, so no report follows. */
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

  /**
   * Asks the store if too many reports are missing. Never rejects: while the store is unreachable, it draws no
   * conclusion.
   */
  tick(): Promise<void> {
    const now = this.#parts.monotonicMs();
    if (now - this.#periodBeganMs < this.#parts.lifeMs) return this.#check.idle();
    this.#periodBeganMs = now;
    this.#old += this.#previous;
    this.#previous = this.#current;
    this.#current = 0;
    return this.#old < MIN_UNREPORTED ? this.#check.idle() : this.#check.run();
  }

  async #askStore(): Promise<void> {
    const { store, processId, lifeMs, onChange } = this.#parts;
    const reports = this.#reports;
    // Three lifetimes: the two complete periods and the current one.
    const settled = await store.settledLately(processId, 3 * lifeMs).catch(() => undefined);
    if (settled === undefined || reports !== this.#reports) return;
    if (settled) this.reported();
    else if (!this.#missing) {
      this.#missing = true;
      onChange?.(this.#old);
    }
  }
}
