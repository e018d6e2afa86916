/** Work that is done every so often, one at a time, and once more at the end. */

export interface Flushing {
  /** Does it now; whoever asks while it is done shares that. Never rejects, as `work` never does. */
  readonly flush: () => Promise<void>;
  /** Waits for what is under way, does it once more, and never again; for the end of the process. */
  readonly stop: () => Promise<void>;
}

/** @param work never rejects */
export function startFlushing(work: () => Promise<void>, everyMs: number): Flushing {
  let running: Promise<void> | undefined;
  const flush = (): Promise<void> => {
    running ??= work().finally(() => {
      running = undefined;
    });
    return running;
  };
  const timer = setInterval(() => void flush(), everyMs);
  timer.unref();
  return {
    flush,
    stop: async () => {
      clearInterval(timer);
      await running;
      await flush();
    },
  };
}
