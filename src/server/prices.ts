/** The prices in force, in memory: read at the start, and when the change feed reports another list. */

import { SingleFlight } from '../concurrency/single-flight.ts';
import type { Change, ChangeListener } from '../credential-cache/ports.ts';
import { compilePrices, NO_PRICES, type PriceTable } from '../decision/prices.ts';
import type { Database } from '../store/database.ts';
import { readPrices } from '../store/price-lists.ts';

const RETRY_MS = 1000;

interface PricesParts {
  readonly db: Pick<Database, 'knex'>;
  readonly onFault: (error: unknown) => void;
}

export class Prices implements ChangeListener {
  readonly #parts: PricesParts;
  readonly #reads = new SingleFlight(
    () => this.#read(),
    () => this.#seen !== this.#changes,
  );
  /** The changes that the feed has reported, those before the last read began, and those before the list was read. */
  #changes = 0;
  #seen = 0;
  #included = 0;
  #table = NO_PRICES;
  #retry: NodeJS.Timeout | undefined;

  constructor(parts: PricesParts) {
    this.#parts = parts;
  }

  get table(): PriceTable {
    return this.#table;
  }

  get isCurrent(): boolean {
    return this.#included === this.#changes;
  }

  async settled(): Promise<void> {
    let seen: number;
    do {
      seen = this.#seen;
      await this.#reads.idle();
    } while (seen !== this.#seen);
  }

  /** Rejects with a Fault if the store cannot answer. */
  async start(): Promise<void> {
    this.#table = compilePrices(await readPrices(this.#parts.db.knex));
  }

  close(): void {
    clearTimeout(this.#retry);
  }

  apply(batch: readonly Change[]): void {
    if (batch.some(({ kind }) => kind === 'prices')) this.flush();
  }

  flush(): void {
    this.#changes++;
    void this.#reads.run();
  }

  /** The former prices stay in force until the store answers. */
  async #read(): Promise<void> {
    clearTimeout(this.#retry);
    const changes = this.#changes;
    this.#seen = changes;
    try {
      this.#table = compilePrices(await readPrices(this.#parts.db.knex));
      this.#included = changes;
    } catch (error) {
      this.#parts.onFault(error);
      this.#retry = setTimeout(() => void this.#reads.run(), RETRY_MS);
      this.#retry.unref();
    }
  }
}
