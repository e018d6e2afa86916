import { type PeriodicFlush, startPeriodicFlush } from '../concurrency/single-flight.ts';
import type { Database } from './database.ts';
import { statementError } from './faults.ts';

export interface WriterOptions {
  readonly db: Pick<Database, 'query'>;
  readonly flushIntervalMs?: number;
  /** Called when writing fails after it had worked. Must not throw. */
  readonly onError?: (error: Error) => void;
}

/** Writes waiting data in batches, away from requests. */
export abstract class PeriodicWriter {
  protected readonly db: WriterOptions['db'];
  readonly #flush: PeriodicFlush;

  constructor({ db, flushIntervalMs = 1000, onError = () => undefined }: WriterOptions) {
    this.db = db;
    let isFailing = false;
    this.#flush = startPeriodicFlush(async () => {
      try {
        await this.write();
        isFailing = false;
      } catch (error) {
        if (!isFailing) onError(statementError(error));
        isFailing = true;
      }
    }, flushIntervalMs);
  }

  /** Rejects if data could not be written. The subclass keeps that data for the next call, or counts it as lost. */
  protected abstract write(): Promise<void>;

  /** Writes the waiting data. Never rejects. */
  flush(): Promise<void> {
    return this.#flush.flush();
  }

  /** Writes the waiting data a last time. For the end of the process. */
  stop(): Promise<void> {
    return this.#flush.stop();
  }
}
