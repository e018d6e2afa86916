import { setImmediate as turnOfLoop } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Semaphore } from '../../src/concurrency/semaphore.ts';

type Key = string | undefined;
type Step =
  | { readonly kind: 'run'; readonly key: Key }
  | { readonly kind: 'end'; readonly choice: number; readonly fails: boolean }
  | { readonly kind: 'give-up'; readonly choice: number };

interface Job {
  readonly id: number;
  readonly key: Key;
}

/** Two plain lists, counted each time. */
class NaiveSemaphore {
  readonly #permits: number;
  readonly #maxWaiting: number;
  running: readonly Job[] = [];
  waiting: readonly Job[] = [];

  constructor(permits: number, maxWaiting: number) {
    this.#permits = permits;
    this.#maxWaiting = maxWaiting;
  }

  run(job: Job): 'runs' | 'waits' | 'full' {
    if (hasUnit(this.running, this.#permits, job.key)) {
      this.running = [...this.running, job];
      return 'runs';
    }
    if (!hasUnit(this.waiting, this.#maxWaiting, job.key)) return 'full';
    this.waiting = [...this.waiting, job];
    return 'waits';
  }

  end(id: number): void {
    this.running = this.running.filter((job) => job.id !== id);
    for (const job of this.waiting) {
      if (!hasUnit(this.running, this.#permits, job.key)) continue;
      this.waiting = this.waiting.filter((other) => other !== job);
      this.running = [...this.running, job];
    }
  }

  giveUp(id: number): void {
    this.waiting = this.waiting.filter((job) => job.id !== id);
  }
}

function hasUnit(jobs: readonly Job[], units: number, key: Key): boolean {
  const own = key === undefined ? 0 : jobs.filter((job) => job.key === key).length;
  return units - jobs.length > own;
}

/** A semaphore whose work ends, and whose waits end, when the test says so. */
function controlled(permits: number, maxWaiting: number) {
  const semaphore = new Semaphore({ permits, maxWaiting });
  const running = new Map<number, PromiseWithResolvers<string>>();
  const bounds = new Map<number, PromiseWithResolvers<never>>();
  const outcomes = new Map<number, string>();
  return {
    running,
    outcomes,
    run({ id, key }: Job): boolean {
      const bound = Promise.withResolvers<never>();
      bounds.set(id, bound);
      const result = semaphore.run(
        () => {
          const work = Promise.withResolvers<string>();
          running.set(id, work);
          return work.promise;
        },
        key,
        (turn) => Promise.race([turn, bound.promise]),
      );
      result?.then(
        (value) => outcomes.set(id, value),
        (error: unknown) => outcomes.set(id, String(error)),
      );
      return result !== undefined;
    },
    end(id: number, fails: boolean): void {
      const work = running.get(id);
      running.delete(id);
      if (fails) work?.reject(new Error(`failed ${id}`));
      else work?.resolve(`done ${id}`);
    },
    giveUp: (id: number): void => bounds.get(id)?.reject(new Error('gave up')),
  };
}

const key = fc.constantFrom('a', 'b', undefined);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('run' as const), key }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('end' as const), choice: fc.nat(20), fails: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('give-up' as const), choice: fc.nat(20) }) },
);

function chosen(jobs: readonly Job[], choice: number): number | undefined {
  return jobs[choice % Math.max(1, jobs.length)]?.id;
}

describe('the semaphore', () => {
  test('runs, queues and rejects the same work as two plain lists that are counted each time', async () => {
    const bounds = fc.record({ permits: fc.integer({ min: 1, max: 5 }), maxWaiting: fc.nat(6) });
    await fc.assert(
      fc.asyncProperty(bounds, fc.array(step, { maxLength: 40 }), async ({ permits, maxWaiting }, steps) => {
        const semaphore = controlled(permits, maxWaiting);
        const naive = new NaiveSemaphore(permits, maxWaiting);
        const expected = new Map<number, string>();
        for (const [id, next] of steps.entries()) {
          if (next.kind === 'run') {
            expect(semaphore.run({ id, key: next.key })).toBe(naive.run({ id, key: next.key }) !== 'full');
          } else if (next.kind === 'end') {
            const ended = chosen(naive.running, next.choice);
            if (ended === undefined) continue;
            semaphore.end(ended, next.fails);
            naive.end(ended);
            expected.set(ended, next.fails ? `Error: failed ${ended}` : `done ${ended}`);
          } else {
            const left = chosen(naive.waiting, next.choice);
            if (left === undefined) continue;
            semaphore.giveUp(left);
            naive.giveUp(left);
            expected.set(left, 'Error: gave up');
          }
          await turnOfLoop();
          expect([...semaphore.running.keys()]).toEqual(naive.running.map(({ id: runs }) => runs));
          expect(semaphore.outcomes).toEqual(expected);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('a permit that comes in the moment in which the wait ends goes to the next waiter', async () => {
    const semaphore = controlled(1, 2);
    for (const id of [1, 2, 3]) semaphore.run({ id, key: undefined });
    semaphore.giveUp(2);
    semaphore.end(1, false);
    await turnOfLoop();
    expect([...semaphore.running.keys()]).toEqual([3]);
    expect(semaphore.outcomes.get(2)).toBe('Error: gave up');
  });

  test('work begins at once, before the next microtask, if a permit is free', () => {
    const semaphore = controlled(1, 1);
    semaphore.run({ id: 1, key: undefined });
    expect([...semaphore.running.keys()]).toEqual([1]);
  });
});
