/**
 * Does a check's cost depend on how many keys there are? 1,000 keys beside 1,000,000 keys in 10,000 tenants, of which
 * 100,000 are in use.
 */

import { join } from 'node:path';
import { chatBody, encodeFrame, writeFrames } from './frames.ts';
import { keyText } from './population.ts';
import { openWorld } from './server-under-test.ts';
import { buildLoad, median, memory, printTable, type Row, runLoad, scratch, writeResult } from './stack.ts';

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 7);
const CALLS = 100_000;

const WORLDS = [
  { name: '1,000 keys, 100 tenants', tenants: 100, keys: 1_000, usable: 1_000 },
  { name: '1,000,000 keys, 10,000 tenants, 100,000 keys warm', tenants: 10_000, keys: 1_000_000, usable: 100_000 },
];

export async function population(): Promise<void> {
  const directory = scratch();
  const load = buildLoad(directory);
  const body = chatBody('llama-3-8b');
  await using stack = new AsyncDisposableStack();
  const subjects = [];
  for (const [i, shape] of WORLDS.entries()) {
    const world = stack.use(await openWorld(join(directory, `world-${i}`), { ...shape, sessions: 0 }));
    const frames = join(directory, `frames-${i}.bin`);
    writeFrames(
      frames,
      scattered(shape.usable, (key) => chat(body, keyText(key))),
    );
    const server = await world.start();
    stack.defer(() => server.stop());
    runLoad(load, server.grpc, frames, { calls: shape.usable, warm: shape.usable });
    subjects.push({ ...shape, frames, server, perSecond: [] as number[], refused: 0, p99: [] as number[] });
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const subject of subjects) {
      const result = runLoad(load, subject.server.grpc, subject.frames, { calls: CALLS, warm: 4000 });
      subject.perSecond.push(result.per_s);
      subject.p99.push(result.p99_us);
      subject.refused += CALLS - (result.codes['0'] ?? 0);
    }
  }
  const base = subjects[0]?.perSecond ?? [];
  const rows: Row[] = subjects.map((subject) => ({
    population: subject.name,
    'checks/s': Math.round(median(subject.perSecond)),
    'of the first': median(subject.perSecond.map((value, i) => value / (base[i] ?? Number.NaN))).toFixed(2),
    'p99 us': Math.round(median(subject.p99)),
    'ready after ms': Math.round(subject.server.readyMs),
    'RSS MB': memory(subject.server.pid).now,
    'peak MB': memory(subject.server.pid).peak,
    refused: subject.refused,
  }));
  printTable(`Cost and population: medians of ${ROUNDS} rounds`, rows);
  writeResult('population', { rows });
}

function chat(body: string, credential: string): Buffer {
  return encodeFrame({ method: 'POST', path: '/v1/chat/completions', authorization: `Bearer ${credential}`, body });
}

/** Each number once, in an order without locality, so that neighbours in the file are not neighbours in memory. */
function* scattered(count: number, make: (i: number) => Buffer): Iterable<Buffer> {
  const step = 611_953;
  for (let i = 0; i < count; i++) yield make((i * step) % count);
}
