/** The time by which an answer must arrive, for all servers and operations together. */

import { Fault } from '../domain/errors.ts';

export class Deadline implements Disposable {
  readonly timeoutMs: number;
  readonly #endsAt: number;
  readonly #waiting = new Set<() => void>();
  readonly #timer: NodeJS.Timeout;
  #passed = false;

  /** @param elapsedMs the part of the time that has already passed */
  constructor(timeoutMs: number, elapsedMs = 0) {
    const leftMs = Math.max(0, timeoutMs - elapsedMs);
    this.timeoutMs = timeoutMs;
    this.#endsAt = performance.now() + leftMs;
    this.#timer = setTimeout(() => {
      this.#passed = true;
      for (const wake of [...this.#waiting]) wake();
    }, leftMs);
  }

  get passed(): boolean {
    return this.#passed;
  }

  /** Never negative. */
  remainingMs(): number {
    return Math.max(0, this.#endsAt - performance.now());
  }

  /** Returns whole seconds, at least one, because servers count in seconds. */
  remainingSeconds(): number {
    return Math.max(1, Math.ceil(this.remainingMs() / 1000));
  }

  /** Calls `wake` when the deadline passes; at once if it has passed. Returns a function that cancels the call. */
  onPassing(wake: () => void): () => void {
    if (this.#passed) {
      wake();
      return () => undefined;
    }
    this.#waiting.add(wake);
    return () => this.#waiting.delete(wake);
  }

  /**
   * Settles as the work does, or rejects with a Fault if the deadline passes first. A later outcome of the work is
   * ignored.
   */
  async within<T>(work: Promise<T>): Promise<T> {
    let cancel = (): unknown => undefined;
    const passing = new Promise<never>((_, reject) => {
      cancel = this.onPassing(() => reject(this.fault()));
    });
    try {
      return await Promise.race([work, passing]);
    } finally {
      cancel();
      work.catch(() => undefined);
      passing.catch(() => undefined);
    }
  }

  fault(): Fault {
    return new Fault(`the directory did not answer within ${Math.round(this.timeoutMs)} ms`);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#waiting.clear();
  }
}
