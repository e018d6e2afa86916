/**
 * When API keys were last used: told in memory, and written in batches away from every request.
 *
 * What is told is written when what is stored is a minute older, so that several processes together write a key at most
 * once a minute, and none puts an earlier time over a later one. Whoever tells spares the work by not telling of each
 * use (credential-cache/noting.ts); then what is stored is never later than the true last use and never more than a
 * minute earlier, and `flushIntervalMs` late.
 *
 * The keys that wait to be written are bounded: one that finds no room is not noted and is counted. What could not be
 * written waits for the next time.
 */

import { type PeriodicFlush, startPeriodicFlush } from '../concurrency/single-flight.ts';
import type { KeyId } from '../domain/ids.ts';
import type { Database } from './database.ts';
import { statementError } from './faults.ts';

export interface KeyUsesOptions {
  readonly db: Pick<Database, 'query'>;
  /** Keys waiting, at most; 200000 unless told. */
  readonly maxKeys?: number;
  /** Keys in one statement at most; 1000 unless told. */
  readonly batchSize?: number;
  /** 5000 unless told. */
  readonly flushIntervalMs?: number;
  /** Writing failed after it had worked; told once, until it works again. Nothing here may throw. */
  readonly onError?: (error: Error) => void;
}

/**
 * Rows that somebody holds are left for the next time, so that this neither waits for a change of a key nor stands in a
 * circle with one. Answers with those.
 */
const WRITE = {
  name: 'write_key_uses',
  text: `
    with used as (
      select id, to_timestamp(ms / 1000) as at from unnest($1::text[], $2::float8[]) as t(id, ms)
    ), due as (
      select k.id, used.at from used join api_keys k on k.id = used.id
      where k.last_used_at is null or k.last_used_at <= used.at - interval '1 minute'
    ), held as (
      select k.id, due.at from due join api_keys k on k.id = due.id
      where k.last_used_at is null or k.last_used_at <= due.at - interval '1 minute'
      for no key update of k skip locked
    ), written as (
      update api_keys k set last_used_at = held.at from held where k.id = held.id
    )
    select id from due where id not in (select id from held)`,
};

export class KeyUses {
  readonly #db: Pick<Database, 'query'>;
  readonly #maxKeys: number;
  readonly #batchSize: number;
  readonly #onError: (error: Error) => void;
  /** The use last told of each key, milliseconds since the epoch. */
  readonly #waiting = new Map<KeyId, number>();
  readonly #flushing: PeriodicFlush;
  #failing = false;
  #dropped = 0;

  constructor(options: KeyUsesOptions) {
    const { db, maxKeys = 200_000, batchSize = 1000, flushIntervalMs = 5000, onError = () => undefined } = options;
    this.#db = db;
    this.#maxKeys = maxKeys;
    this.#batchSize = batchSize;
    this.#onError = onError;
    this.#flushing = startPeriodicFlush(() => this.#write(), flushIntervalMs);
  }

  /** Uses that found no room to wait. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Keys waiting to be written. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** A key proved itself. For the path of every request: it neither waits nor throws. False when there is no room. */
  note(key: KeyId, nowMs: number): boolean {
    if (this.#waiting.size >= this.#maxKeys && !this.#waiting.has(key)) {
      this.#dropped++;
      return false;
    }
    this.#waiting.set(key, nowMs);
    return true;
  }

  /** Writes what waits. Never rejects: what could not be written goes on waiting. */
  flush(): Promise<void> {
    return this.#flushing.flush();
  }

  /** Writes what is noted now, and nothing after it; for the end of the process. */
  stop(): Promise<void> {
    return this.#flushing.stop();
  }

  async #write(): Promise<void> {
    // One round over what waits now: what is put back, or comes meanwhile, is for the next.
    const batches = Math.ceil(this.#waiting.size / this.#batchSize);
    for (let batch = 0; batch < batches; batch++) {
      const uses = this.#take();
      try {
        const rows = await this.#db.query({ ...WRITE, values: [[...uses.keys()], [...uses.values()]] });
        this.#putBack(uses, new Set(rows.map((row) => row['id'])));
        this.#failing = false;
      } catch (error) {
        this.#putBack(uses, undefined);
        if (!this.#failing) this.#onError(statementError(error));
        this.#failing = true;
        return;
      }
    }
  }

  #take(): ReadonlyMap<KeyId, number> {
    const uses = new Map<KeyId, number>();
    for (const [key, usedMs] of this.#waiting) {
      if (uses.size === this.#batchSize) break;
      uses.set(key, usedMs);
      this.#waiting.delete(key);
    }
    return uses;
  }

  /** @param which undefined = all */
  #putBack(uses: ReadonlyMap<KeyId, number>, which: ReadonlySet<unknown> | undefined): void {
    for (const [key, usedMs] of uses) {
      if (which !== undefined && !which.has(key)) continue;
      // A later use may have been noted meanwhile.
      if (this.#waiting.has(key)) continue;
      if (this.#waiting.size >= this.#maxKeys) this.#dropped++;
      else this.#waiting.set(key, usedMs);
    }
  }
}
