/** Counts and bounds the resolutions that wait: those of unseen credentials apart from all others, and by client. */

import { Fault } from '../domain/errors.ts';
import type { CacheStats } from '../telemetry/cache-metrics.ts';

const MAX_WAITING_KNOWN = 10_000;
/** Resolutions of credentials that were never valid in this process that may wait. */
const MAX_WAITING_UNSEEN = 20_000;
/** The part of MAX_WAITING_UNSEEN that one client may use. */
const MAX_WAITING_OF_CLIENT = 10_000;

export class WaitingResolutions {
  readonly #ofClient = new Map<string, number>();
  #known = 0;
  #unseen = 0;
  #rejectedKnown = 0;
  #rejectedUnseen = 0;

  get size(): number {
    return this.#known + this.#unseen;
  }

  stats(): CacheStats['rejectedResolutions'] {
    return { known: this.#rejectedKnown, unseen: this.#rejectedUnseen };
  }

  /**
   * @returns the call that ends the waiting
   * @throws Fault if too many resolutions wait
   */
  enter(unseen: boolean, client: string): () => void {
    return unseen ? this.#enterUnseen(client) : this.#enterKnown();
  }

  #enterKnown(): () => void {
    if (this.#known >= MAX_WAITING_KNOWN) {
      this.#rejectedKnown++;
      throw new Fault('too many requests are waiting for the credential cache');
    }
    this.#known++;
    return () => {
      this.#known--;
    };
  }

  #enterUnseen(client: string): () => void {
    const ofClient = this.#ofClient.get(client) ?? 0;
    if (this.#unseen >= MAX_WAITING_UNSEEN || ofClient >= MAX_WAITING_OF_CLIENT) {
      this.#rejectedUnseen++;
      throw new Fault('too many requests with unknown credentials are waiting for the credential cache');
    }
    this.#unseen++;
    this.#ofClient.set(client, ofClient + 1);
    return () => {
      this.#unseen--;
      const left = (this.#ofClient.get(client) ?? 1) - 1;
      if (left === 0) this.#ofClient.delete(client);
      else this.#ofClient.set(client, left);
    };
  }
}
