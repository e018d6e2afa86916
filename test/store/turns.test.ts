import fc from 'fast-check';
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

  test('of one lane leave places to the others, and keep their own order', async () => {
    const turns = makeTurns({ places: 4, maxWaiting: 10, maxWaitMs: 60_000 });
    const works = Array.from({ length: 6 }, work);
    const lanes = ['stuck', 'stuck', 'stuck', 'stuck', 'other', undefined];
    const begun: number[] = [];
    const taken = works.map(({ run }, i) =>
      turns.take(() => {
        begun.push(i);
        return run();
      }, lanes[i]),
    );
    await expect.poll(() => begun).toEqual([0, 1, 4, 5]);
    works[4]?.end('other');
    await taken[4];
    expect(begun).toEqual([0, 1, 4, 5]);
    works[1]?.end('stuck');
    await taken[1];
    await expect.poll(() => begun).toEqual([0, 1, 4, 5, 2]);
    for (const { end } of works) end('x');
    await Promise.all(taken);
    expect(begun).toEqual([0, 1, 4, 5, 2, 3]);
  });

  test('of two lanes that are stuck leave a place to a third', async () => {
    const turns = makeTurns({ places: 8, maxWaiting: 100, maxWaitMs: 60_000 });
    const stuck = work();
    const taken = ['a', 'b'].flatMap((lane) => Array.from({ length: 20 }, () => turns.take(stuck.run, lane)));
    expect(await turns.take(() => Promise.resolve('third'), 'c')).toBe('third');
    stuck.end('done');
    await Promise.all(taken);
  });

  test('of one lane that is stuck leave half of the waiting room to the others', async () => {
    const turns = makeTurns({ places: 4, maxWaiting: 10, maxWaitMs: 60_000 });
    const stuck = work();
    const taken = Array.from({ length: 20 }, () => turns.take(stuck.run, 'a').catch((error: unknown) => error));
    const others = Array.from({ length: 5 }, (_, i) => turns.take(() => Promise.resolve(i), `other ${i}`));
    expect(await Promise.all(others)).toEqual([0, 1, 2, 3, 4]);
    stuck.end('done');
    const outcomes = await Promise.all(taken);
    expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(7);
    expect(outcomes.filter((outcome) => outcome instanceof Fault)).toHaveLength(13);
  });

  test('never exceed the places of all or of a lane, and all work is done', async () => {
    const job = fc.record({ lane: fc.option(fc.constantFrom('a', 'b', 'c'), { nil: undefined }), steps: fc.nat(3) });
    await fc.assert(
      fc.asyncProperty(fc.array(job, { maxLength: 40 }), async (jobs) => {
        const turns = makeTurns({ places: 4, maxWaiting: 100, maxWaitMs: 60_000 });
        const running: (string | undefined)[] = [];
        let most = 0;
        let mostOfLane = 0;
        const done = jobs.map(({ lane, steps }, i) =>
          turns.take(async () => {
            running.push(lane);
            most = Math.max(most, running.length);
            if (lane !== undefined) mostOfLane = Math.max(mostOfLane, running.filter((other) => other === lane).length);
            for (let step = 0; step < steps; step++) await Promise.resolve();
            running.splice(running.indexOf(lane), 1);
            return i;
          }, lane),
        );
        expect(await Promise.all(done)).toEqual(jobs.map((_, i) => i));
        expect(most).toBeLessThanOrEqual(4);
        expect(mostOfLane).toBeLessThanOrEqual(2);
      }),
    );
  });
});
