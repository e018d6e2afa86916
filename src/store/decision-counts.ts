/**
 * Writes counts of decisions. Counts that could not be written are added to the next batch. If a connection is lost
 * during a write, the batch may count twice: the counts are statistics, and no decision uses them.
 */

import type { DecisionCount } from '../telemetry/decision-tally.ts';
import { PeriodicWriter, type WriterOptions } from './periodic-writer.ts';

/** Holds counts until they are written. */
export interface Tally {
  take(): readonly DecisionCount[];
  putBack(counts: readonly DecisionCount[]): void;
}

export interface DecisionCountsOptions extends WriterOptions {
  readonly tally: Tally;
  /** The table of the counts. Default: `decision_counts`. */
  readonly table?: CountsTable;
  /** The largest number of rows of one statement. Default: 2000. */
  readonly batchSize?: number;
}

type CountsTable = 'decision_counts' | 'shadow_decision_counts';

/** Locks rows in one order, so that two servers that add to the same rows cannot deadlock. */
const addTo = (table: CountsTable) => ({
  name: `add_${table}`,
  text: `
    insert into ${table} as counts (tenant_id, minute, code, route, decisions)
    select tenant, to_timestamp(minute_ms / 1000), code, route, sum(decisions)
    from unnest($1::text[], $2::float8[], $3::text[], $4::text[], $5::bigint[]) as t(tenant, minute_ms, code, route, decisions)
    group by tenant, minute_ms, code, route
    order by tenant collate "C", minute_ms, code collate "C", route collate "C"
    on conflict (tenant_id, minute, code, route) do update set decisions = counts.decisions + excluded.decisions`,
});

export class DecisionCounts extends PeriodicWriter {
  readonly #tally: Tally;
  readonly #statement: ReturnType<typeof addTo>;
  readonly #batchSize: number;

  constructor({ tally, table = 'decision_counts', batchSize = 2000, ...options }: DecisionCountsOptions) {
    super({ flushIntervalMs: 5000, ...options });
    this.#tally = tally;
    this.#statement = addTo(table);
    this.#batchSize = batchSize;
  }

  protected override async write(): Promise<void> {
    const counts = this.#tally.take();
    for (let at = 0; at < counts.length; at += this.#batchSize) {
      try {
        await this.db.query({ ...this.#statement, values: columnsOf(counts.slice(at, at + this.#batchSize)) });
      } catch (error) {
        this.#tally.putBack(counts.slice(at));
        throw error;
      }
    }
  }
}

function columnsOf(counts: readonly DecisionCount[]): readonly (readonly unknown[])[] {
  return [
    counts.map(({ tenant }) => tenant),
    counts.map(({ minuteMs }) => minuteMs),
    counts.map(({ code }) => code),
    counts.map(({ route }) => route),
    counts.map(({ decisions }) => decisions),
  ];
}
