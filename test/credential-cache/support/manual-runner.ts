/** A runner of steps that continues when the test calls it. */

import type { Ran, StepRunner } from '../../../src/credential-cache/slices.ts';
import type { Steps } from '../../../src/domain/steps.ts';

interface Job {
  /** Takes one step, or abandons the work; reports whether it is over. */
  step(): boolean;
}

export class ManualRunner implements StepRunner {
  #jobs: Job[] = [];
  readonly #abandons: boolean;
  /** When set, work is done at once. */
  atOnce = false;

  /** @param abandons whether work that is not wanted any longer is abandoned, or taken to its end all the same */
  constructor(abandons: boolean) {
    this.#abandons = abandons;
  }

  get pending(): number {
    return this.#jobs.length;
  }

  run<T extends object>(steps: Steps<T>, wanted: () => boolean): Promise<Ran<T>> {
    const { promise, resolve, reject } = Promise.withResolvers<Ran<T>>();
    const over = (value: T | undefined): boolean => {
      resolve({ value, spentMs: 0 });
      return true;
    };
    const step = (): boolean => {
      try {
        if (this.#abandons && !wanted()) return over(undefined);
        const next = steps.next();
        return next.done === true ? over(next.value) : false;
      } catch (error) {
        reject(error);
        return true;
      }
    };
    this.#jobs.push({ step });
    if (this.atOnce) this.finish();
    return promise;
  }

  /** Runs one step of one unfinished job, for any index. */
  step(index: number): void {
    const job = this.#jobs[index % Math.max(1, this.#jobs.length)];
    if (job?.step() === true) this.#jobs = this.#jobs.filter((other) => other !== job);
  }

  finish(): void {
    while (this.#jobs.length > 0) this.step(0);
  }
}
