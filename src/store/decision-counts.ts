/**
 * Writes what was decided, in batches away from every check. What could not be written is added the next time; a
 * connection that is lost amid a write may count that batch twice, for these are figures to look at, and decide
 * nothing.
 */

import { type PeriodicFlush, startPeriodicFlush } from '../concurrency/single-flight.ts';
import type { DecisionCount } from '../telemetry/decision-tally.ts';
import type { Database } from './database.ts';
import { statementError } from './faults.ts';

/** What is counted until it is written. */
export interface Tally {
  take(): readonly DecisionCount[];
  putBack(counts: readonly DecisionCount[]): void;
}

export interface DecisionCountsOptions {
  readonly db: Pick<Database, 'query'>;
  readonly tally: Tally;
  /** Rows in one statement at most; 2000 unless told. */
  readonly batchSize?: number;
  /** 5000 unless told. */
  readonly flushIntervalMs?: number;
  /** Writing failed after it had worked; told once, until it works again. Nothing here may throw. */
  readonly onError?: (error: Error) => void;
}

/** In one order, so that two servers that add to the same rows wait for each other and never in a circle. */
const ADD = {
  name: 'add_decision_counts',
  text: `
    insert into decision_counts (tenant_id, minute, code, route, decisions)
    select tenant, to_timestamp(minute_ms / 1000), code, route, sum(decisions)
    from unnest($1::text[], $2::float8[], $3::text[], $4::text[], $5::bigint[]) as t(tenant, minute_ms, code, route, decisions)
    group by tenant, minute_ms, code, route
    order by tenant collate "C", minute_ms, code collate "C", route collate "C"
    on conflict (tenant_id, minute, code, route) do update set decisions = decision_counts.decisions + excluded.decisions`,
};

export class DecisionCounts {
  readonly #options: Required<DecisionCountsOptions>;
  readonly #flushing: PeriodicFlush;
  #failing = false;

  constructor(options: DecisionCountsOptions) {
    this.#options = { batchSize: 2000, flushIntervalMs: 5000, onError: () => undefined, ...options };
    this.#flushing = startPeriodicFlush(() => this.#write(), this.#options.flushIntervalMs);
  }

  /** Writes what was counted. Never rejects: what could not be written is counted again. */
  flush(): Promise<void> {
    return this.#flushing.flush();
  }

  /** Writes what is counted now, and nothing after it; for the end of the process. */
  stop(): Promise<void> {
    return this.#flushing.stop();
  }

  async #write(): Promise<void> {
    const { db, tally, batchSize, onError } = this.#options;
    const counts = tally.take();
    for (let at = 0; at < counts.length; at += batchSize) {
      try {
        await db.query({ ...ADD, values: columnsOf(counts.slice(at, at + batchSize)) });
        this.#failing = false;
      } catch (error) {
        tally.putBack(counts.slice(at));
        if (!this.#failing) onError(statementError(error));
        this.#failing = true;
        return;
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
