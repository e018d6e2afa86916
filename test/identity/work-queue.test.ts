import { setImmediate as turnOfLoop } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { makeWorkQueue } from '../../src/identity/work-queue.ts';

/** A queue whose tasks end when the test says so. */
function queueOf(maxRunning: number, maxWaiting: number) {
  const queue = makeWorkQueue(maxRunning, maxWaiting);
  const begun: number[] = [];
  const running = new Map<number, (fails: boolean) => void>();
  const results = new Map<number, string>();
  const taskOf = (id: number) => () =>
    new Promise<string>((resolve, reject) => {
      begun.push(id);
      running.set(id, (fails) => (fails ? reject(new Error(`failed ${id}`)) : resolve(`done ${id}`)));
    });
  return {
    begun,
    results,
    running: () => [...running.keys()],
    /** False when the queue was full. */
    add(id: number): boolean {
      const result = queue.run(taskOf(id));
      result?.then(
        (value) => results.set(id, value),
        (error: unknown) => results.set(id, String(error)),
      );
      return result !== undefined;
    },
    async end(id: number, fails = false): Promise<void> {
      running.get(id)?.(fails);
      running.delete(id);
      await turnOfLoop();
    },
  };
}

describe('a work queue', () => {
  it('delivers a result at once while no task waits', async () => {
    const queue = queueOf(2, 2);
    for (const id of [1, 2]) queue.add(id);
    await queue.end(1);
    expect([...queue.results]).toEqual([[1, 'done 1']]);
  });

  it('hands results over two at a time while tasks wait, and the last with the one that it was held for', async () => {
    const queue = queueOf(1, 4);
    for (const id of [1, 2, 3, 4]) queue.add(id);
    await queue.end(1);
    expect([...queue.results.keys()]).toEqual([]);
    await queue.end(2);
    expect([...queue.results.keys()]).toEqual([1, 2]);
    await queue.end(3);
    expect([...queue.results.keys()]).toEqual([1, 2]);
    await queue.end(4);
    expect(new Set(queue.results.keys())).toEqual(new Set([1, 2, 3, 4]));
  });

  it('hands a result over although the task that it was held for failed, and that one its failure', async () => {
    const queue = queueOf(1, 4);
    for (const id of [1, 2, 3]) queue.add(id);
    await queue.end(1);
    await queue.end(2, true);
    expect([...queue.results]).toEqual([
      [1, 'done 1'],
      [2, 'Error: failed 2'],
    ]);
  });

  it('never exceeds its bounds on running and waiting tasks, runs them in order, and holds at most one result, and none without a running task', async () => {
    const steps = fc.array(fc.oneof({ weight: 2, arbitrary: fc.constant('add' as const) }, fc.nat(8)), {
      maxLength: 60,
    });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.nat(5),
        steps,
        fc.func(fc.boolean()),
        async (maxRunning, maxWaiting, todo, fails) => {
          const queue = queueOf(maxRunning, maxWaiting);
          const taken: number[] = [];
          const ended: number[] = [];
          const endOne = async (choice: number): Promise<void> => {
            const ids = queue.running();
            const id = ids[choice % ids.length];
            if (id === undefined) return;
            const waiting = taken.length > queue.begun.length;
            ended.push(id);
            await queue.end(id, fails(id));
            const held = ended.length - queue.results.size;
            expect(held).toBeLessThanOrEqual(waiting ? 1 : 0);
          };
          for (const [id, step] of todo.entries()) {
            const outstanding = taken.length - ended.length;
            if (step !== 'add') await endOne(step);
            else if (queue.add(id)) taken.push(id);
            else expect(outstanding).toBe(maxRunning + maxWaiting);
            expect(queue.running().length).toBe(Math.min(taken.length - ended.length, maxRunning));
          }
          while (queue.running().length > 0) await endOne(0);
          expect(queue.begun).toEqual(taken);
          expect(queue.results).toEqual(
            new Map(taken.map((id) => [id, fails(id) ? `Error: failed ${id}` : `done ${id}`])),
          );
        },
      ),
    );
  });
});
