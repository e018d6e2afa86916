/**
 * Writes the times at which API keys were last used.
 *
 * A time is written if the stored one is a minute older. Several processes therefore write a key at most once a minute
 * together, and none replaces a later time by an earlier one. Callers do not report every use
 * (credential-cache/noting.ts). The stored time is never later than the true last use, and at most a minute and
 * `flushIntervalMs` earlier.
 *
 * The number of waiting keys is bounded. A use beyond it is not written and is counted. Uses that could not be written
 * wait for the next batch.
 */

import type { KeyId } from '../domain/ids.ts';
import { PeriodicWriter, type WriterOptions } from './periodic-writer.ts';

export interface KeyUsesOptions extends WriterOptions {
  /** The largest number of waiting keys. Default: 200000. */
  readonly maxKeys?: number;
  /** The largest number of keys of one statement. Default: 1000. */
  readonly batchSize?: number;
}

/**
 * Skips locked rows, so that it neither waits for a change of a key nor takes part in a deadlock. Returns the ids of
 * the skipped rows.
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

export class KeyUses extends PeriodicWriter {
  readonly #maxKeys: number;
  readonly #batchSize: number;
  /** The last use of each key, milliseconds since the epoch. */
  readonly #waiting = new Map<KeyId, number>();
  #dropped = 0;

  constructor({ maxKeys = 200_000, batchSize = 1000, ...options }: KeyUsesOptions) {
    super({ flushIntervalMs: 5000, ...options });
    this.#maxKeys = maxKeys;
    this.#batchSize = batchSize;
  }

  /** Number of uses beyond `maxKeys`. */
  get dropped(): number {
    return this.#dropped;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Records a use. On the path of every request: it neither waits nor throws. Returns false if too many keys wait. */
  note(key: KeyId, nowMs: number): boolean {
    if (this.#waiting.size >= this.#maxKeys && !this.#waiting.has(key)) {
      this.#dropped++;
      return false;
    }
    this.#waiting.set(key, nowMs);
    return true;
  }

  protected override async write(): Promise<void> {
    // Uses that come or are put back during this run wait for the next one.
    const batches = Math.ceil(this.#waiting.size / this.#batchSize);
    for (let batch = 0; batch < batches; batch++) {
      const uses = this.#take();
      try {
        const rows = await this.db.query({ ...WRITE, values: [[...uses.keys()], [...uses.values()]] });
        this.#putBack(uses, new Set(rows.map((row) => row['id'])));
      } catch (error) {
        this.#putBack(uses, undefined);
        throw error;
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
      // A later use was recorded during the write.
      if (this.#waiting.has(key)) continue;
      if (this.#waiting.size >= this.#maxKeys) this.#dropped++;
      else this.#waiting.set(key, usedMs);
    }
  }
}
