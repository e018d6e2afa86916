import type { MeteringCounts } from '../telemetry/metering-counts.ts';

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
