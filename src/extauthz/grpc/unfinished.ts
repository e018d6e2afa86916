/**
 * Bounds the memory of unfinished messages, per connection and in the process. A complete message does not count,
 * because its method gets it at once.
 *
 * Beyond a bound, the server rejects the largest unfinished message: of the connection itself, or of the connection
 * with the most memory in the process. A peer that sends large messages and does not finish them loses these messages,
 * and no small message beside them is rejected.
 */

/** A call with an unfinished message. */
export interface Refusable {
  /** Ends the call as `resourceExhausted` and frees its memory. Never throws. */
  refuse(): void;
}

export interface UnfinishedBounds {
  readonly connectionBytes: number;
  readonly processBytes: number;
}

/**
 * The bounds for bodies of at most 1 MiB: 32 of them per connection, which is one worker of one Envoy, and 128 per
 * process.
 */
export const UNFINISHED_BOUNDS: UnfinishedBounds = {
  connectionBytes: 32 * 1024 * 1024,
  processBytes: 128 * 1024 * 1024,
};

interface Share {
  bytes: number;
  readonly calls: Map<Refusable, number>;
}

export class UnfinishedMessages {
  readonly #bounds: UnfinishedBounds;
  /** The shares by the transport's object for a connection. */
  readonly #connections = new Map<object, Share>();
  #bytes = 0;
  #calls = 0;
  #refused = 0;

  constructor(bounds: UnfinishedBounds = UNFINISHED_BOUNDS) {
    this.#bounds = bounds;
  }

  /** The memory of all unfinished messages, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The number of calls with an unfinished message. */
  get calls(): number {
    return this.#calls;
  }

  /** The number of calls that were rejected since the process began. */
  get refused(): number {
    return this.#refused;
  }

  /** Records the bytes that a call holds. It may reject calls, including this one. A call that is over sets 0. */
  set(connection: object, call: Refusable, bytes: number): void {
    const share = this.#count(connection, call, bytes);
    if (share === undefined) return;
    while (share.bytes > this.#bounds.connectionBytes) this.#refuseLargest(connection, share);
    while (this.#bytes > this.#bounds.processBytes) {
      const fullest = this.#fullest();
      if (fullest === undefined) return;
      this.#refuseLargest(...fullest);
    }
  }

  /** @returns the connection's share if it may be too large now */
  #count(session: object, call: Refusable, bytes: number): Share | undefined {
    let share = this.#connections.get(session);
    const before = share?.calls.get(call);
    const change = bytes - (before ?? 0);
    if (change === 0) return undefined;
    if (share === undefined) {
      share = { bytes: 0, calls: new Map() };
      this.#connections.set(session, share);
    }
    if (bytes > 0) share.calls.set(call, bytes);
    else share.calls.delete(call);
    if (before === undefined) this.#calls += 1;
    else if (bytes === 0) this.#calls -= 1;
    share.bytes += change;
    this.#bytes += change;
    if (share.calls.size === 0) this.#connections.delete(session);
    return change > 0 ? share : undefined;
  }

  #fullest(): [object, Share] | undefined {
    let fullest: [object, Share] | undefined;
    for (const entry of this.#connections)
      if (fullest === undefined || entry[1].bytes > fullest[1].bytes) fullest = entry;
    return fullest;
  }

  #refuseLargest(session: object, share: Share): void {
    let largest: Refusable | undefined;
    let most = 0;
    for (const [call, bytes] of share.calls) {
      if (bytes <= most) continue;
      largest = call;
      most = bytes;
    }
    if (largest === undefined) return;
    // Removed from the counts first, so that the loop ends even if the call does nothing.
    this.#count(session, largest, 0);
    this.#refused += 1;
    largest.refuse();
  }
}
