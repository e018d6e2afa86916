/** Runs of one piece of work, one at a time. */

/** A call while the work runs shares that run. */
export class SingleFlight {
  readonly #work: () => Promise<void>;
  readonly #again: () => boolean;
  #running: Promise<void> | undefined;

  /**
   * @param again called after each run: true begins another, for work that came when the run was too far to include it
   */
  constructor(work: () => Promise<void>, again: () => boolean = () => false) {
    this.#work = work;
    this.#again = again;
  }

  /** Runs the work, or joins the run that has begun. Settles as that run does. */
  run(): Promise<void> {
    this.#running ??= this.#work().finally(() => {
      this.#running = undefined;
      if (this.#again()) void this.run();
    });
    return this.#running;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Settles as the current run does; resolves at once if there is none. */
  idle(): Promise<void> {
    return this.#running ?? Promise.resolve();
  }
}

export interface PeriodicFlush {
  /** Runs the work now, or joins the run that has begun. Never rejects. */
  readonly flush: () => Promise<void>;
  /** Waits for the current run, runs the work one last time. For the end of the process. */
  readonly stop: () => Promise<void>;
}

/** @param work never rejects */
export function startPeriodicFlush(work: () => Promise<void>, intervalMs: number): PeriodicFlush {
  const flight = new SingleFlight(work);
  const timer = setInterval(() => void flight.run(), intervalMs);
  timer.unref();
  return {
    flush: () => flight.run(),
    stop: async () => {
      clearInterval(timer);
      await flight.idle();
      await flight.run();
    },
  };
}

/**
 * Runs `work` at an interval, one run at a time.
 * @param work never rejects. Its signal aborts when the runs are stopped.
 * @returns a function that stops the runs, and resolves when the current one has ended
 */
export function startPeriodicRuns(work: (stop: AbortSignal) => Promise<void>, intervalMs: number): () => Promise<void> {
  const stop = new AbortController();
  const flight = new SingleFlight(() => work(stop.signal));
  const timer = setInterval(() => void flight.run(), intervalMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    stop.abort();
    await flight.idle();
  };
}
