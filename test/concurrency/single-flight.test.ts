import { expect, test } from 'vitest';
import { SingleFlight, startPeriodicFlush } from '../../src/concurrency/single-flight.ts';

/** Work whose runs end when the test says so. */
function controlled() {
  const runs: PromiseWithResolvers<void>[] = [];
  const work = (): Promise<void> => {
    const run = Promise.withResolvers<void>();
    runs.push(run);
    return run.promise;
  };
  return { runs, work };
}

test('calls during a run share it, and the next call after its end begins another', async () => {
  const { runs, work } = controlled();
  const flight = new SingleFlight(work);
  const [first, second] = [flight.run(), flight.run()];
  expect(runs).toHaveLength(1);
  runs[0]?.resolve();
  await Promise.all([first, second, flight.idle()]);
  const failing = flight.run();
  expect(runs).toHaveLength(2);
  runs[1]?.reject(new Error('failed'));
  await expect(failing).rejects.toThrow('failed');
  await flight.idle();
  void flight.run();
  expect(runs).toHaveLength(3);
});

test('a stopped periodic flush runs once more after the current run, and then no more', async () => {
  const { runs, work } = controlled();
  const periodic = startPeriodicFlush(work, 1);
  await expect.poll(() => runs.length).toBe(1);
  const stopped = periodic.stop();
  runs[0]?.resolve();
  await expect.poll(() => runs.length).toBe(2);
  runs[1]?.resolve();
  await stopped;
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(runs).toHaveLength(2);
});
