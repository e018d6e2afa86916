/** Work under way to fill a cache: one piece per key, a bounded number in all. */

import { Fault } from '../domain/errors.ts';

/** How many fills may be under way at once, in all the maps that share it. */
export class FillGate {
  readonly #max: number;
  #open = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get inFlight(): number {
    return this.#open;
  }

  enter(): boolean {
    if (this.#open >= this.#max) return false;
    this.#open++;
    return true;
  }

  leave(): void {
    this.#open--;
  }
}

/** One fill. What happens to its key meanwhile is noted here, for the landing rule. */
export interface Fill {
  /** The highest number of a change of this key that was applied since the load began; -1 = none. */
  overtakenBy: number;
}

/** The fills of one map. Whoever asks for a key that is being filled waits for that fill. */
export class Fills {
  readonly #gate: FillGate;
  readonly #running = new Map<string, { readonly fill: Fill; readonly done: Promise<boolean> }>();

  constructor(gate: FillGate) {
    this.#gate = gate;
  }

  get(key: string): Fill | undefined {
    return this.#running.get(key)?.fill;
  }

  /**
   * @param work resolves to whether its value landed; runs only when none is under way for the key
   * @returns the same promise for all who share the fill. Rejects with a Fault; a failed fill leaves nothing behind.
   */
  join(key: string, work: (fill: Fill) => Promise<boolean>): Promise<boolean> {
    const running = this.#running.get(key);
    if (running !== undefined) return running.done;
    if (!this.#gate.enter()) return Promise.reject(new Fault('too many loads of the live cache are under way'));
    const fill: Fill = { overtakenBy: -1 };
    const done = this.#run(key, fill, work);
    this.#running.set(key, { fill, done });
    return done;
  }

  async #run(key: string, fill: Fill, work: (fill: Fill) => Promise<boolean>): Promise<boolean> {
    try {
      return await work(fill);
    } catch (error) {
      throw error instanceof Fault ? error : new Fault('a load of the live cache failed', { cause: error });
    } finally {
      this.#running.delete(key);
      this.#gate.leave();
    }
  }
}
