import { expect, test } from 'vitest';
import { SingleFlight, startPeriodicFlush, startPeriodicRuns } from '../../src/concurrency/single-flight.ts';

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

test('a periodic flush that is stopped during a run runs one last time after it, and then never again', async () => {
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

test('a flight whose work came too late for a run begins another, without a further call', async () => {
  const { runs, work } = controlled();
  let waiting = 0;
  const flight = new SingleFlight(work, () => waiting > 0);
  const first = flight.run();
  // Joins the first run after its work has ended, which the flight has not noticed yet.
  runs[0]?.resolve();
  waiting = 1;
  void flight.run();
  await first;
  await expect.poll(() => runs.length).toBe(2);
  waiting = 0;
  runs[1]?.resolve();
  await flight.idle();
  expect(runs).toHaveLength(2);
});

test('runs at an interval do not overlap, and the stop aborts and awaits the current one', async () => {
  const { runs, work } = controlled();
  const signals: AbortSignal[] = [];
  const stop = startPeriodicRuns((signal) => {
    signals.push(signal);
    return work();
  }, 1);
  await expect.poll(() => runs.length).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(runs).toHaveLength(1);
  let stopped = false;
  const stopping = stop().then(() => {
    stopped = true;
  });
  expect(signals[0]?.aborted).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(stopped).toBe(false);
  runs[0]?.resolve();
  await stopping;
  expect(runs).toHaveLength(1);
});
