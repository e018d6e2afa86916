import type { MeteringCounts } from '../telemetry/metering-counts.ts';

export interface SharedParts {
  /** This process, see `processIdOf`. */
  readonly processId: string;
  readonly monotonicMs: () => number;
  readonly counts: MeteringCounts;
  /** Called at the beginning of each outage of the store, and for each statement that the store rejects. */
  readonly onFault?: (error: unknown) => void;
}

/** A check that must be decided within this time cannot wait for another tick. */
const LATE_MS = 150;

/** Reports whether a waiting check must be decided without the store's answer. */
export function isLate(decideByMs: number | undefined, nowMs: number): boolean {
  return decideByMs !== undefined && decideByMs - nowMs < LATE_MS;
}

/** Counts and reports the beginning of each outage of the store, as one kind of statement sees it. */
export class Outage {
  readonly #parts: Pick<SharedParts, 'counts' | 'onFault'>;
  #lasts = false;

  constructor(parts: Pick<SharedParts, 'counts' | 'onFault'>) {
    this.#parts = parts;
  }

  get lasts(): boolean {
    return this.#lasts;
  }

  failed(error: unknown): void {
    if (!this.#lasts) {
      this.#parts.counts.faults += 1;
      this.#parts.onFault?.(error);
    }
    this.#lasts = true;
  }

  answered(): void {
    this.#lasts = false;
  }
}
