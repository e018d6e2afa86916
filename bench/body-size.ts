/**
 * The cost of a check by the size of its body: chat requests of 1 KB, with an image of 100 KB, 1 MiB and 10 MiB, and
 * with 1 MiB of the content that costs most to read. The server has an `inspect.max-body` of 16 MiB and no effective
 * rates of bodies. The floor is an empty method on the same transport, which only reads the bytes.
 */

import { join } from 'node:path';
import { SHAPES, withImage, withText } from './body-shapes.ts';
import { chatBody, encodeFrame, writeFrames } from './frames.ts';
import { refusedOf, startFloor } from './gate-subjects.ts';
import { keyText } from './population.ts';
import { openWorld } from './server-under-test.ts';
import {
  buildLoad,
  type LoadResult,
  median,
  memory,
  printTable,
  processorMs,
  type Row,
  runLoad,
  scratch,
  writeResult,
} from './stack.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
/** As many bytes in each round, so that rounds take about as long. */
const BYTES_PER_ROUND = 400 * MIB;
const MOST_CALLS = Number(process.env['BENCH_CALLS'] ?? 20_000);
const KEYS = 8;
const ANSWER_BYTES = 400;
const NO_RATES = { POSTERN_INSPECT_CALLER_RATE: '1000 MiB', POSTERN_INSPECT_TENANT_RATE: '1000 MiB' };

const BODIES: readonly (readonly [name: string, body: string])[] = [
  ['1 KB', chatBody('llama-3-8b')],
  ['100 KB, an image', withImage(100 * KIB)],
  ['1 MiB, an image', withImage(MIB)],
  ['10 MiB, an image', withImage(10 * MIB)],
  ['100 KB, lines of text', withText(100 * KIB)],
  ...SHAPES.map(([name, of]) => [`1 MiB, ${name}`, of(MIB)] as const),
];

export async function bodySize(): Promise<void> {
  const directory = scratch();
  const load = buildLoad(directory);
  await using world = await openWorld(directory, { tenants: KEYS, keys: KEYS, usable: KEYS, sessions: 1 });
  await using stack = new AsyncDisposableStack();
  const postern = await world.start({ settings: { POSTERN_INSPECT_MAX_BODY: '16 MiB', ...NO_RATES } });
  stack.defer(() => postern.stop());
  const floor = await startFloor('built-in', ANSWER_BYTES, directory);
  stack.defer(() => floor.stop());
  const rows: Row[] = [];
  for (const [name, body] of BODIES) {
    const file = join(directory, 'frames.bin');
    const frames = Array.from({ length: KEYS }, (_, i) =>
      encodeFrame({ method: 'POST', path: '/v1/chat/completions', authorization: `Bearer ${keyText(i)}`, body }),
    );
    writeFrames(file, frames);
    const calls = Math.max(20, Math.min(MOST_CALLS, Math.floor(BYTES_PER_ROUND / body.length)));
    const warm = Math.ceil(calls / 10);
    const measured = { postern: [] as number[], floor: [] as number[] };
    const throughput: LoadResult[] = [];
    const run = (pid: number, address: string): readonly [microseconds: number, result: LoadResult] => {
      const usedMs = processorMs(pid);
      const result = runLoad(load, address, file, { calls, warm, streams: 4 });
      return [((processorMs(pid) - usedMs) * 1000) / (calls + warm), result];
    };
    run(postern.pid, postern.grpc);
    for (let round = 0; round < ROUNDS; round++) {
      const [us, result] = run(postern.pid, postern.grpc);
      measured.postern.push(us);
      throughput.push(result);
      const [floorUs, { failed }] = run(floor.pid, floor.address);
      if (failed > 0) throw new Error(`${failed} calls of the empty method failed`);
      measured.floor.push(floorUs);
    }
    rows.push({
      'chat body': name,
      bytes: Buffer.byteLength(body),
      'processor us per check': median(measured.postern).toFixed(0),
      'of that the transport (empty method)': median(measured.floor).toFixed(0),
      'checks/s': Math.round(median(throughput.map(({ per_s }) => per_s))),
      'p99 ms, 8 at once': (median(throughput.map(({ p99_us }) => p99_us)) / 1000).toFixed(1),
      'peak MB': memory(postern.pid).peak,
      refused: refusedOf({ throughput, alone: [] }),
    });
  }
  printTable(`The size of the body: medians of ${ROUNDS} rounds; peak memory since the start`, rows);
  writeResult('body-size', { rows, rounds: ROUNDS });
}
