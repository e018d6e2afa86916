import type { MeteringCounts } from '../telemetry/metering-counts.ts';

/** The common parameters of all parts of metering. */
export interface SharedParts {
  /** This process, see `processIdOf`. */
  readonly processId: string;
  readonly monotonicMs: () => number;
  readonly counts: MeteringCounts;
  /** Called at the beginning of each outage of the store, and for each statement that the store rejects. */
  readonly onFault?: (error: unknown) => void;
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

  /** Records a statement that failed. */
  failed(error: unknown): void {
    if (!this.#lasts) {
      this.#parts.counts.faults += 1;
      this.#parts.onFault?.(error);
    }
    this.#lasts = true;
  }

  /** Records a statement that the store answered. */
  answered(): void {
    this.#lasts = false;
  }
}
