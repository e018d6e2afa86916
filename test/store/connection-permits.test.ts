import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Fault } from '../../src/domain/errors.ts';
import { createConnectionPermits } from '../../src/store/connection-permits.ts';

/** Work that runs until the test ends it. */
function work() {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  return { run: () => promise, end: resolve, fail: reject };
}

describe('connection permits', () => {
  test('bound the running work, and go to waiting work in order', async () => {
    const permits = createConnectionPermits({ permits: 2, maxWaiting: 10, maxWaitMs: 60_000 });
    const works = Array.from({ length: 5 }, work);
    const begun: number[] = [];
    const taken = works.map(({ run }, i) =>
      permits.run(() => {
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

  test('of failed work go to the next work, and its error passes through', async () => {
    const permits = createConnectionPermits({ permits: 1, maxWaiting: 10, maxWaitMs: 60_000 });
    const first = work();
    const failed = permits.run(first.run);
    const second = permits.run(() => Promise.resolve('done'));
    first.fail(new Error('no'));
    await expect(failed).rejects.toThrow('no');
    expect(await second).toBe('done');
    expect(await permits.run(() => Promise.resolve('again'))).toBe('again');
  });

  test('a full queue and a wait that takes too long are faults, and the work does not begin', async () => {
    const permits = createConnectionPermits({ permits: 1, maxWaiting: 1, maxWaitMs: 20 });
    const long = work();
    const running = permits.run(long.run);
    let begun = 0;
    const late = permits.run(() => Promise.resolve(begun++));
    const tooMany = permits.run(() => Promise.resolve(begun++));
    await expect(tooMany).rejects.toBeInstanceOf(Fault);
    await expect(late).rejects.toBeInstanceOf(Fault);
    long.end('done');
    expect(await running).toBe('done');
    expect(await permits.run(() => Promise.resolve('free'))).toBe('free');
    expect(begun).toBe(0);
  });

  test('of one tenant leave permits to the others, and its work keeps its order', async () => {
    const permits = createConnectionPermits({ permits: 4, maxWaiting: 10, maxWaitMs: 60_000 });
    const works = Array.from({ length: 6 }, work);
    const lanes = ['stuck', 'stuck', 'stuck', 'stuck', 'other', undefined];
    const begun: number[] = [];
    const taken = works.map(({ run }, i) =>
      permits.run(() => {
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

  test('of two tenants whose work is stuck leave a permit to a third', async () => {
    const permits = createConnectionPermits({ permits: 8, maxWaiting: 100, maxWaitMs: 60_000 });
    const stuck = work();
    const taken = ['a', 'b'].flatMap((lane) => Array.from({ length: 20 }, () => permits.run(stuck.run, lane)));
    expect(await permits.run(() => Promise.resolve('third'), 'c')).toBe('third');
    stuck.end('done');
    await Promise.all(taken);
  });

  test('of one tenant whose work is stuck leave half of the queue to the others', async () => {
    const permits = createConnectionPermits({ permits: 4, maxWaiting: 10, maxWaitMs: 60_000 });
    const stuck = work();
    const taken = Array.from({ length: 20 }, () => permits.run(stuck.run, 'a').catch((error: unknown) => error));
    const others = Array.from({ length: 5 }, (_, i) => permits.run(() => Promise.resolve(i), `other ${i}`));
    expect(await Promise.all(others)).toEqual([0, 1, 2, 3, 4]);
    stuck.end('done');
    const outcomes = await Promise.all(taken);
    expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(7);
    expect(outcomes.filter((outcome) => outcome instanceof Fault)).toHaveLength(13);
  });

  test('are never more than the limit of all or of a tenant, and all work is done', async () => {
    const job = fc.record({ lane: fc.option(fc.constantFrom('a', 'b', 'c'), { nil: undefined }), steps: fc.nat(3) });
    await fc.assert(
      fc.asyncProperty(fc.array(job, { maxLength: 40 }), async (jobs) => {
        const permits = createConnectionPermits({ permits: 4, maxWaiting: 100, maxWaitMs: 60_000 });
        const running: (string | undefined)[] = [];
        let most = 0;
        let mostOfLane = 0;
        const done = jobs.map(({ lane, steps }, i) =>
          permits.run(async () => {
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
