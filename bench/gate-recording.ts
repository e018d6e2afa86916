/**
 * What recent decisions cost the gate: one server that records them beside one that does not, on one database, with one
 * check in ten denied. Short rounds in turns, each begun by the other, because the machine's speed changes slowly.
 */

import { join } from 'node:path';
import type { ServerUnderTest, World } from './server-under-test.ts';
import { type LoadResult, median, printTable, processorMs, type Row, runLoad } from './stack.ts';

const ROUNDS = Number(process.env['BENCH_RECORDING_ROUNDS'] ?? 30);
const CALLS = Number(process.env['BENCH_RECORDING_CALLS'] ?? 10_000);
const WARM = 4000;
/** Of the throughput without the record, and of the checks in the same processor time. */
const LEAST = 0.97;

interface Subject {
  readonly name: string;
  readonly server: ServerUnderTest;
  readonly results: LoadResult[];
  /** Of the server for a check, in microseconds: other programs on the machine change it less. */
  readonly processorUs: number[];
}

/** @param frames checks of which one in ten is denied */
export async function recording(
  world: World,
  load: string,
  frames: string,
): Promise<{ readonly rows: readonly Row[]; readonly held: boolean }> {
  await using stack = new AsyncDisposableStack();
  const start = async (name: string, settings: NodeJS.ProcessEnv): Promise<Subject> => {
    const server = await world.start({ settings });
    stack.defer(() => server.stop());
    return { name, server, results: [], processorUs: [] };
  };
  const without = await start('not recorded', {
    NODE_OPTIONS: `--import ${join(import.meta.dirname, 'gate-unrecorded.ts')}`,
  });
  const recorded = await start('recorded', {});
  const run = ({ server, results, processorUs }: Subject): void => {
    const usedMs = processorMs(server.pid);
    results.push(runLoad(load, server.grpc, frames, { calls: CALLS, warm: WARM }));
    processorUs.push(((processorMs(server.pid) - usedMs) * 1000) / (CALLS + WARM));
  };
  for (const each of [without, recorded]) {
    runLoad(load, each.server.grpc, frames, { calls: 2 * CALLS, warm: WARM });
    run(each);
    each.results.length = 0;
    each.processorUs.length = 0;
  }
  for (let round = 0; round < ROUNDS; round++)
    for (const each of round % 2 === 0 ? [without, recorded] : [recorded, without]) run(each);
  const throughput = median(recorded.results.map(({ per_s }, i) => per_s / (without.results[i]?.per_s ?? Number.NaN)));
  const processor = median(without.processorUs.map((us, i) => us / (recorded.processorUs[i] ?? Number.NaN)));
  const rows = [without, recorded].map(
    (each): Row => ({
      'warm chat check, 1 in 10 denied': each.name,
      'checks/s': Math.round(median(each.results.map(({ per_s }) => per_s))),
      'of the first': each === without ? '1' : throughput.toFixed(3),
      'processor us per check': median(each.processorUs).toFixed(1),
      'of the first ': each === without ? '1' : processor.toFixed(3),
      refused: each.results.reduce((sum, { codes, failed }) => sum + failed + refusedOf(codes), 0),
    }),
  );
  printTable(`Recent decisions: medians of ${ROUNDS} rounds of ${CALLS}, ratios round by round. Goal: ${LEAST}`, rows);
  return { rows, held: Math.min(throughput, processor) >= LEAST };
}

function refusedOf(codes: Readonly<Record<string, number>>): number {
  return Object.entries(codes).reduce((sum, [code, count]) => (code === '0' ? sum : sum + count), 0);
}
