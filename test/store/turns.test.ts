import { describe, expect, test } from 'vitest';
import { Fault } from '../../src/domain/errors.ts';
import { makeTurns } from '../../src/store/turns.ts';

/** Work that goes on until it is told to end. */
function work() {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  return { run: () => promise, end: resolve, fail: reject };
}

describe('turns', () => {
  test('are taken in order, so many at a time', async () => {
    const turns = makeTurns({ places: 2, maxWaiting: 10, maxWaitMs: 60_000 });
    const works = Array.from({ length: 5 }, work);
    const begun: number[] = [];
    const taken = works.map(({ run }, i) =>
      turns.take(() => {
        begun.push(i);
        return run();
      }),
    );
    await Promise.resolve();
    expect(begun).toEqual([0, 1]);
    works[1]?.end('b');
    expect(await taken[1]).toBe('b');
    await expect.poll(() => begun).toEqual([0, 1, 2]);
    for (const { end } of works) end('x');
    await Promise.all(taken);
    expect(begun).toEqual([0, 1, 2, 3, 4]);
  });

  test('of work that fails are given on, and its error passes through', async () => {
    const turns = makeTurns({ places: 1, maxWaiting: 10, maxWaitMs: 60_000 });
    const first = work();
    const failed = turns.take(first.run);
    const second = turns.take(() => Promise.resolve('done'));
    first.fail(new Error('no'));
    await expect(failed).rejects.toThrow('no');
    expect(await second).toBe('done');
    expect(await turns.take(() => Promise.resolve('again'))).toBe('again');
  });

  test('that do not come in time, or that too many wait for, are faults; nothing of the work is begun', async () => {
    const turns = makeTurns({ places: 1, maxWaiting: 1, maxWaitMs: 20 });
    const long = work();
    const running = turns.take(long.run);
    let begun = 0;
    const late = turns.take(() => Promise.resolve(begun++));
    const tooMany = turns.take(() => Promise.resolve(begun++));
    await expect(tooMany).rejects.toBeInstanceOf(Fault);
    await expect(late).rejects.toBeInstanceOf(Fault);
    long.end('done');
    expect(await running).toBe('done');
    expect(await turns.take(() => Promise.resolve('free'))).toBe('free');
    expect(begun).toBe(0);
  });
});
