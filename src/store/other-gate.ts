/**
 * Writes the requests that another gate denied, as Envoy's access log reports them. Their number in memory and in one
 * statement is bounded. Reports beyond the bound are dropped and counted.
 */

import type { Database } from './database.ts';
import { putMeta } from './meta.ts';
import { PeriodicWriter, type WriterOptions } from './periodic-writer.ts';

/** The name in `meta` of the time of the last report, to the minute. */
export const OTHER_GATE_REPORTED_AT = 'other_gate_reported_at';

const MAX_WAITING = 20_000;
const BATCH = 1_000;
const MINUTE_MS = 60_000;

const ADD = {
  name: 'add_other_gate_denials',
  text: `insert into other_gate_denials (client_request_id)
    select id from unnest($1::text[]) as t(id) order by id collate "C" on conflict do nothing`,
};

interface OtherGateOptions extends WriterOptions {
  readonly db: Pick<Database, 'query' | 'knex'>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

export class OtherGateDenials extends PeriodicWriter {
  readonly #knex: Database['knex'];
  readonly #now: () => number;
  readonly #waiting = new Set<string>();
  #reportedMinute = 0;
  #writtenMinute = 0;
  #dropped = 0;

  constructor(options: OtherGateOptions) {
    super(options);
    this.#knex = options.db.knex;
    this.#now = options.now;
  }

  /** Denials that were not stored. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Notes that the log reports requests. */
  reported(): void {
    this.#reportedMinute = Math.floor(this.#now() / MINUTE_MS);
  }

  /** @param requestId Envoy's `x-request-id` */
  denied(requestId: string): void {
    if (this.#waiting.size >= MAX_WAITING) this.#dropped++;
    else this.#waiting.add(requestId);
  }

  protected override async write(): Promise<void> {
    const minute = this.#reportedMinute;
    if (minute !== this.#writtenMinute) {
      await putMeta(this.#knex, OTHER_GATE_REPORTED_AT, new Date(minute * MINUTE_MS).toISOString());
      this.#writtenMinute = minute;
    }
    const ids = [...this.#waiting].slice(0, BATCH);
    if (ids.length === 0) return;
    await this.db.query({ ...ADD, values: [ids] });
    for (const id of ids) this.#waiting.delete(id);
  }
}
