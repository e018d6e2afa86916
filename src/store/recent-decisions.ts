/**
 * Writes recorded decisions. While the database is unreachable, the writer repeats one batch and takes no other, so an
 * outage costs the memory of one batch. A batch that the database rejects is dropped and counted.
 */

import { Fault } from '../domain/errors.ts';
import type { RecentDecisionRow } from '../telemetry/recent-decision.ts';
import type { Database } from './database.ts';
import { statementError } from './faults.ts';
import { PeriodicWriter, type WriterOptions } from './periodic-writer.ts';

/** Holds decisions until they are written. */
export interface RecentDecisionSource {
  take(): readonly RecentDecisionRow[];
  /** Counts rows that were dropped. */
  lost(rows: readonly RecentDecisionRow[]): void;
}

export interface RecentDecisionWriterOptions extends WriterOptions {
  readonly db: Pick<Database, 'query'>;
  readonly source: RecentDecisionSource;
}

/**
 * The same batch may be written twice: a connection can break after the commit. Several gates may have the first allow
 * of a principal, route and model, and one of them is stored.
 */
const WRITE = {
  name: 'write_recent_decisions',
  text: `
    insert into recent_decisions
    select * from jsonb_to_recordset($1::jsonb) as t(request_id text, time timestamptz, tenant_id text, outcome text, code text,
      sampled boolean, principal_type text, principal_id text, method text, path text, route text, permission text, resources text[],
      client_ip text, policy text, detail text, facts jsonb, first_of text)
    on conflict do nothing`,
};

export class RecentDecisionWriter extends PeriodicWriter {
  readonly #db: Pick<Database, 'query'>;
  readonly #source: RecentDecisionSource;
  #pending: readonly RecentDecisionRow[] = [];

  constructor(options: RecentDecisionWriterOptions) {
    const { db, source, flushIntervalMs = 1000, onError = () => undefined } = options;
    super({ flushIntervalMs, onError });
    this.#db = db;
    this.#source = source;
  }

  protected override async write(): Promise<void> {
    if (this.#pending.length === 0) this.#pending = this.#source.take();
    if (this.#pending.length === 0) return;
    try {
      await this.#db.query({ ...WRITE, values: [JSON.stringify(this.#pending)] });
      this.#pending = [];
    } catch (error) {
      if (!(statementError(error) instanceof Fault)) {
        this.#source.lost(this.#pending);
        this.#pending = [];
      }
      throw error;
    }
  }
}
