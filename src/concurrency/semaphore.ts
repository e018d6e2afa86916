/**
 * A counting semaphore with a bounded queue. Waiters get permits in the order in which they came.
 *
 * A key groups acquirers, for example by tenant. A key takes a permit or a place in the queue only if more of them are
 * free than the key has. One key therefore leaves half of the permits and half of the queue to the others, the next
 * such key leaves half of the rest. An acquirer without a key may use all permits.
 */

export interface SemaphoreOptions {
  readonly permits: number;
  readonly maxWaiting: number;
}

/** Bounds the wait for a permit: rejects when the wait must end before `turn` resolves. */
type WaitBound = (turn: Promise<void>) => Promise<void>;

interface Waiter {
  readonly key: string | undefined;
  readonly admit: () => void;
}

export class Semaphore {
  readonly #permits: SharedCapacity;
  readonly #queue: SharedCapacity;
  readonly #waiters = new Set<Waiter>();

  constructor({ permits, maxWaiting }: SemaphoreOptions) {
    this.#permits = new SharedCapacity(permits);
    this.#queue = new SharedCapacity(maxWaiting);
  }

  /**
   * Runs `work` with a permit: at once if one is free, otherwise after a wait.
   * @returns undefined, without a run, if the queue is full. Rejects as `bound` or `work` does.
   */
  run<T>(work: () => Promise<T>, key?: string, bound?: WaitBound): Promise<T> | undefined {
    if (this.tryAcquire(key)) return this.#runAndRelease(work, key);
    return this.wait(key, bound)?.then(() => this.#runAndRelease(work, key));
  }

  /** Takes a permit, which the caller must release. Returns false if none is free for the key. */
  tryAcquire(key?: string): boolean {
    return this.#permits.take(key);
  }

  /**
   * Waits for a permit, which the caller must release.
   * @returns undefined if the queue is full. Rejects as `bound` does, without a permit.
   */
  wait(key?: string, bound: WaitBound = (turn) => turn): Promise<void> | undefined {
    return this.#queue.take(key) ? this.#wait(key, bound) : undefined;
  }

  /**
   * Gives a permit back. It may admit two waiters, because the key has fewer permits than before.
   * @returns true if it admitted a waiter
   */
  release(key?: string): boolean {
    this.#permits.giveBack(key);
    let admitted = false;
    for (const waiter of this.#waiters) {
      if (this.#permits.free === 0) break;
      if (!this.#permits.take(waiter.key)) continue;
      this.#leaveQueue(waiter);
      waiter.admit();
      admitted = true;
    }
    return admitted;
  }

  async #wait(key: string | undefined, bound: WaitBound): Promise<void> {
    const turn = Promise.withResolvers<void>();
    const waiter: Waiter = { key, admit: turn.resolve };
    this.#waiters.add(waiter);
    try {
      await bound(turn.promise);
    } catch (error) {
      // The permit may have come in the moment in which the wait ended.
      if (this.#waiters.has(waiter)) this.#leaveQueue(waiter);
      else this.release(key);
      throw error;
    }
  }

  async #runAndRelease<T>(work: () => Promise<T>, key: string | undefined): Promise<T> {
    try {
      return await work();
    } finally {
      this.release(key);
    }
  }

  #leaveQueue(waiter: Waiter): void {
    this.#waiters.delete(waiter);
    this.#queue.giveBack(waiter.key);
  }
}

/** A number of units, of which a key takes one only if more are free than the key has. */
class SharedCapacity {
  readonly #takenBy = new Map<string, number>();
  #free: number;

  constructor(units: number) {
    this.#free = units;
  }

  get free(): number {
    return this.#free;
  }

  /** Returns false if there is no unit for the key. */
  take(key: string | undefined): boolean {
    const own = key === undefined ? 0 : (this.#takenBy.get(key) ?? 0);
    if (this.#free <= own) return false;
    this.#free--;
    if (key !== undefined) this.#takenBy.set(key, own + 1);
    return true;
  }

  giveBack(key: string | undefined): void {
    this.#free++;
    if (key === undefined) return;
    const left = (this.#takenBy.get(key) ?? 0) - 1;
    if (left > 0) this.#takenBy.set(key, left);
    else this.#takenBy.delete(key);
  }
}
