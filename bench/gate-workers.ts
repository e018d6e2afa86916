/**
 * Two gate workers beside one, on all cores together with the load: two cores cannot show more than what the load
 * leaves.
 */

import { execFileSync } from 'node:child_process';
import type { World } from './server-under-test.ts';
import { type LoadResult, median, processorMs, processTree, runLoad } from './stack.ts';

const ROUNDS = 5;
const CALLS = 30_000;
const ALL_CORES = '0,1';

export interface Workers {
  /** Checks per second of two workers over those of one. */
  readonly throughput: number;
  /** Processor time of a check with two workers over that with one. */
  readonly processor: number;
}

export async function twoWorkers(world: World, load: string, frames: string): Promise<Workers> {
  await using stack = new AsyncDisposableStack();
  const start = async (workers: number) => {
    const server = await world.start({ settings: { POSTERN_WORKERS: String(workers) } });
    stack.defer(() => server.stop());
    for (const pid of processTree(server.pid)) execFileSync('taskset', ['-a', '-p', '-c', ALL_CORES, String(pid)]);
    const results: LoadResult[] = [];
    const processorUs: number[] = [];
    return { server, results, processorUs };
  };
  const subjects = [await start(1), await start(2)];
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { server, results, processorUs } of subjects) {
      const usedMs = processorMs(server.pid);
      // Enough connections that both workers get some.
      results.push(runLoad(load, server.grpc, frames, { calls: CALLS, connections: 8, streams: 4, warm: 2000 }));
      processorUs.push(((processorMs(server.pid) - usedMs) * 1000) / (CALLS + 2000));
      if (round === 0) results.length = processorUs.length = 0;
    }
  }
  const [one, two] = subjects;
  const ratios = (of: (subject: (typeof subjects)[number]) => readonly number[]): number =>
    median(
      (two === undefined ? [] : of(two)).map(
        (value, i) => value / ((one === undefined ? [] : of(one))[i] ?? Number.NaN),
      ),
    );
  return {
    throughput: ratios(({ results }) => results.map(({ per_s }) => per_s)),
    processor: ratios(({ processorUs }) => processorUs),
  };
}
