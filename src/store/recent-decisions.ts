/**
 * Writes recorded decisions, in batches away from every check. A batch that the database could not take is written
 * again before another is taken, so a database that is away costs the memory of one batch. A batch that the database
 * rejects is dropped and counted.
 */

import { type PeriodicFlush, startPeriodicFlush } from '../concurrency/single-flight.ts';
import { Fault } from '../domain/errors.ts';
import type { RecentDecisionRow } from '../telemetry/recent-decision.ts';
import type { Database } from './database.ts';
import { statementError } from './faults.ts';

/** Holds decisions until they are written. */
export interface RecentDecisionSource {
  take(): readonly RecentDecisionRow[];
  /** Counts rows that were dropped. */
  lost(rows: readonly RecentDecisionRow[]): void;
}

export interface RecentDecisionWriterOptions {
  readonly db: Pick<Database, 'query'>;
  readonly source: RecentDecisionSource;
  /** Default: 1000. */
  readonly flushIntervalMs?: number;
  /** Called when writing fails after it had worked. Must not throw. */
  readonly onError?: (error: Error) => void;
}

/** The same batch may be written twice: a connection can break after the commit. */
const WRITE = {
  name: 'write_recent_decisions',
  text: `
    insert into recent_decisions
    select * from jsonb_to_recordset($1::jsonb) as t(request_id text, time timestamptz, tenant_id text, outcome text, code text,
      sampled boolean, principal_type text, principal_id text, method text, path text, route text, permission text, resources text[],
      client_ip text, policy text, detail text, facts jsonb)
    on conflict (request_id) do nothing`,
};

export class RecentDecisionWriter {
  readonly #options: Required<RecentDecisionWriterOptions>;
  readonly #flushing: PeriodicFlush;
  #pending: readonly RecentDecisionRow[] = [];
  #failing = false;

  constructor(options: RecentDecisionWriterOptions) {
    this.#options = { flushIntervalMs: 1000, onError: () => undefined, ...options };
    this.#flushing = startPeriodicFlush(() => this.#write(), this.#options.flushIntervalMs);
  }

  /** Writes what is recorded. Never rejects. */
  flush(): Promise<void> {
    return this.#flushing.flush();
  }

  /** Writes what is recorded now, and nothing after it; for the end of the process. */
  stop(): Promise<void> {
    return this.#flushing.stop();
  }

  async #write(): Promise<void> {
    const { db, source, onError } = this.#options;
    if (this.#pending.length === 0) this.#pending = source.take();
    if (this.#pending.length === 0) return;
    try {
      await db.query({ ...WRITE, values: [JSON.stringify(this.#pending)] });
      this.#pending = [];
      this.#failing = false;
    } catch (cause) {
      const error = statementError(cause);
      if (!(error instanceof Fault)) {
        source.lost(this.#pending);
        this.#pending = [];
      }
      if (!this.#failing) onError(error);
      this.#failing = true;
    }
  }
}
