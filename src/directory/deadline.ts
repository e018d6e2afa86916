/** The one moment by which an answer must be there, however many servers and operations it takes. */

import { Fault } from '../domain/errors.ts';

export class Deadline implements Disposable {
  readonly timeoutMs: number;
  readonly #endsAt: number;
  readonly #waiting = new Set<() => void>();
  readonly #timer: NodeJS.Timeout;
  #passed = false;

  /** @param elapsedMs how much of the time is over already */
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

  /** For servers, which count in seconds; at least one. */
  remainingSeconds(): number {
    return Math.max(1, Math.ceil(this.remainingMs() / 1000));
  }

  /** Calls back once when the moment comes; at once when it has passed. Gives what takes the call back. */
  onPassing(wake: () => void): () => void {
    if (this.#passed) {
      wake();
      return () => undefined;
    }
    this.#waiting.add(wake);
    return () => this.#waiting.delete(wake);
  }

  /** The work's outcome, or a Fault when the moment comes first; what the work does then is nobody's concern. */
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
