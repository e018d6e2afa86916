import { afterEach, expect, test, vi } from 'vitest';
import { pauses } from '../../src/concurrency/pauses.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

test('long work lets other work run when 5 ms have passed since its last pause, and not before', async () => {
  let nowMs = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  const pause = pauses();
  const runsOtherWork = async (): Promise<boolean> => {
    let hasRun = false;
    const other = setImmediate(() => {
      hasRun = true;
    });
    await pause();
    clearImmediate(other);
    return hasRun;
  };
  expect(await runsOtherWork()).toBe(false);
  nowMs += 5;
  expect(await runsOtherWork()).toBe(false);
  nowMs += 1;
  expect(await runsOtherWork()).toBe(true);
  nowMs += 5;
  expect(await runsOtherWork()).toBe(false);
});
