/**
 * Limits what one address of clients, or one IPv6 network, costs without a login: logins that it begins, and logout
 * tokens that are rejected.
 */

import { networkOf } from '../../decision/address.ts';
import { ByteRates } from '../../domain/byte-rates.ts';

/** Many people may share an address. */
const PER_SECOND = 2;
const BURST = 120;

/** One for each process and purpose. */
export class SourceRate {
  readonly #rates = new ByteRates({ bytesPerSecond: PER_SECOND, burstMs: (BURST / PER_SECOND) * 1000 });

  /** Returns the seconds that the address must wait; 0: it need not wait. @param source undefined: unknown */
  waitSeconds(source: string | undefined): number {
    return Math.max(0, Math.ceil(this.#rates.waitMs(networkOf(source) ?? '', performance.now()) / 1000));
  }

  count(source: string | undefined): void {
    this.#rates.take(networkOf(source) ?? '', 1, performance.now());
  }
}
