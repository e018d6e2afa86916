/**
 * Runs before each test file: gives property tests their bounds, and measures the processor time that the file costs.
 */

import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll } from 'vitest';
import { runs, SEED } from './properties.ts';

declare module 'vitest' {
  interface TaskMeta {
    /**
     * Processor time of the worker and of the processes that ended while the file ran; absent on systems other than
     * Linux.
     */
    processorMs?: number;
  }
}

const FAST_CHECK_RUNS = 100;
/**
 * The unit of /proc/…/stat is a hundredth of a second on every architecture of Linux (proc(5), sysconf(_SC_CLK_TCK)).
 */
const TICK_MS = 10;

fc.configureGlobal({ numRuns: runs(FAST_CHECK_RUNS), ...(SEED === undefined ? {} : { seed: SEED }) });

const startedMs = processorMs();
// biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern which fixtures the hook uses.
afterAll(({}, { file }) => {
  if (startedMs !== undefined) file.meta.processorMs = (processorMs() ?? startedMs) - startedMs;
});

/** utime, stime, cutime and cstime: fields 14 to 17. */
function processorMs(): number | undefined {
  if (process.platform !== 'linux') return undefined;
  const stat = readFileSync('/proc/self/stat', 'utf8');
  // The name before it is in parentheses and may hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * TICK_MS, 0);
}
