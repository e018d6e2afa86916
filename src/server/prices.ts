/** The prices in force, in memory: read at the start, and when the change feed reports another list. */

import { SingleFlight } from '../concurrency/single-flight.ts';
import type { Change, ChangeListener } from '../credential-cache/ports.ts';
import { compilePrices, NO_PRICES, type PriceTable } from '../decision/prices.ts';
import { readPrices } from '../store/price-lists.ts';
import type { WiringContext } from './wiring-context.ts';

const RETRY_MS = 1000;

export class Prices implements ChangeListener {
  readonly #parts: Pick<WiringContext, 'store' | 'telemetry'>;
  readonly #reads = new SingleFlight(
    () => this.#read(),
    () => this.#isOutdated,
  );
  /** Whether another list may be in force than the one that was read. */
  #isOutdated = false;
  #table = NO_PRICES;
  #retry: NodeJS.Timeout | undefined;

  constructor(parts: Pick<WiringContext, 'store' | 'telemetry'>) {
    this.#parts = parts;
  }

  get table(): PriceTable {
    return this.#table;
  }

  /** Rejects with a Fault if the store cannot answer. */
  async start(): Promise<void> {
    this.#table = compilePrices(await readPrices(this.#parts.store.db.knex));
  }

  close(): void {
    clearTimeout(this.#retry);
  }

  apply(batch: readonly Change[]): void {
    if (batch.some(({ kind }) => kind === 'prices')) this.#readAgain();
  }

  flush(): void {
    this.#readAgain();
  }

  #readAgain(): void {
    this.#isOutdated = true;
    void this.#reads.run();
  }

  /** The former prices stay in force until the store answers. */
  async #read(): Promise<void> {
    clearTimeout(this.#retry);
    this.#isOutdated = false;
    try {
      this.#table = compilePrices(await readPrices(this.#parts.store.db.knex));
    } catch (err) {
      this.#parts.telemetry.log.warn({ part: 'prices', err }, 'the prices could not be read');
      this.#retry = setTimeout(() => void this.#reads.run(), RETRY_MS);
      this.#retry.unref();
    }
  }
}
