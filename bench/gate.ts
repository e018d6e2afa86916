/**
 * The gate's speed beside its floor: an empty raw-buffer grpc-js handler in the same run, one core for the server and one for the load. Then
 * with and without the record of recent decisions; BENCH_GATE=recording runs only that.
 */

import { join } from 'node:path';
import { chatBody, encodeFrame, writeFrames } from './frames.ts';
import { recording } from './gate-recording.ts';
import { keyText } from './population.ts';
import { openWorld } from './server-under-test.ts';
import {
  buildLoad,
  freePort,
  type LoadResult,
  median,
  memory,
  printTable,
  type Row,
  runLoad,
  scratch,
  startPinned,
  writeResult,
} from './stack.ts';

const KEYS = 10_000;
const TENANTS = 100;
const TOKENS = 1_000;
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 7);
const CALLS = Number(process.env['BENCH_CALLS'] ?? 60_000);

interface Figures {
  readonly throughput: LoadResult[];
  readonly alone: LoadResult[];
}

const median2 = (results: readonly LoadResult[], figure: 'per_s' | 'p50_us' | 'p99_us'): number =>
  median(results.map((result) => result[figure]));

export async function gate(): Promise<void> {
  const directory = scratch();
  const load = buildLoad(directory);
  const body = chatBody('llama-3-8b');
  const chat = (credential: string): Buffer =>
    encodeFrame({ method: 'POST', path: '/v1/chat/completions', authorization: `Bearer ${credential}`, body });
  /** No key may write models. */
  const denied = (credential: string): Buffer =>
    encodeFrame({ method: 'POST', path: '/v1/models', authorization: `Bearer ${credential}`, body });

  await using world = await openWorld(directory, { tenants: TENANTS, keys: KEYS, usable: KEYS, sessions: TOKENS });
  const keyFrames = join(directory, 'keys.bin');
  writeFrames(
    keyFrames,
    Array.from({ length: KEYS }, (_, i) => chat(keyText(i))),
  );
  const mixedFrames = join(directory, 'mixed.bin');
  writeFrames(
    mixedFrames,
    Array.from({ length: KEYS }, (_, i) => (i % 10 === 0 ? denied(keyText(i)) : chat(keyText(i)))),
  );
  if (process.env['BENCH_GATE'] === 'recording') {
    finish(await recording(world, load, mixedFrames));
    return;
  }
  const tokenFrames = join(directory, 'tokens.bin');
  writeFrames(tokenFrames, (await world.tokens(TOKENS)).map(chat));

  const floorPort = await freePort();
  const floorAddress = `127.0.0.1:${floorPort}`;
  const floor = await startPinned(join(import.meta.dirname, 'floors/grpc-js.ts'), [floorAddress], {}, () => answers(floorPort));
  const postern = await world.start();
  const subjects = [
    { name: 'empty raw-buffer handler', address: floorAddress, frames: keyFrames },
    { name: 'Postern, API key', address: postern.grpc, frames: keyFrames },
    { name: 'Postern, access token', address: postern.grpc, frames: tokenFrames },
    { name: 'Postern, API key, 1 in 10 denied', address: postern.grpc, frames: mixedFrames },
  ].map((subject) => ({ ...subject, figures: { throughput: [], alone: [] } as Figures }));

  for (const { address, frames } of subjects) runLoad(load, address, frames, { calls: 2 * CALLS, warm: KEYS });
  for (let round = 0; round < ROUNDS; round++) {
    for (const { address, frames, figures } of subjects) {
      figures.throughput.push(runLoad(load, address, frames, { calls: CALLS, warm: 4000 }));
      figures.alone.push(runLoad(load, address, frames, { calls: 8000, connections: 1, streams: 1, warm: 500 }));
    }
  }
  const pid = postern.pid;
  const floorFigures = subjects[0]?.figures;
  const rows: Row[] = subjects.map(({ name, figures }) => {
    const ratios = (kind: keyof Figures, figure: 'per_s' | 'p50_us'): number =>
      median(figures[kind].map((result, i) => result[figure] / (floorFigures?.[kind][i]?.[figure] ?? Number.NaN)));
    return {
      'warm chat check, 1 KB body': name,
      'checks/s': Math.round(median2(figures.throughput, 'per_s')),
      'of the floor': ratios('throughput', 'per_s').toFixed(2),
      'p99 us under load': Math.round(median2(figures.throughput, 'p99_us')),
      'p50 us alone': Math.round(median2(figures.alone, 'p50_us')),
      'of the floor ': ratios('alone', 'p50_us').toFixed(2),
      'p99 us alone': Math.round(median2(figures.alone, 'p99_us')),
      refused: figures.throughput.concat(figures.alone).reduce((sum, { codes, failed }) => sum + failed + refusedOf(codes), 0),
    };
  });
  const [, key, token, mixed] = subjects;
  const toKey = (subject: typeof key): number =>
    median(
      (subject?.figures.throughput ?? []).map((result, i) => result.per_s / (key?.figures.throughput[i]?.per_s ?? Number.NaN)),
    );
  const [tokenToKey, mixedToKey] = [toKey(token), toKey(mixed)];
  printTable(
    `The gate: ${KEYS} keys, ${TENANTS} tenants, 5 policies each; medians of ${ROUNDS} rounds, ratios round by round`,
    rows,
  );
  console.log(
    `\nAccess token to API key: ${tokenToKey.toFixed(2)}. 1 in 10 denied to API key: ${mixedToKey.toFixed(2)} (goal: 0.97). Resident memory: ${memory(pid).now} MB (peak ${memory(pid).peak} MB).`,
  );
  writeResult('gate', { rows, tokenToKey, mixedToKey, memoryMb: memory(pid), rounds: ROUNDS, subjects });
  await postern.stop();
  await floor.stop();
  finish(await recording(world, load, mixedFrames));
}

function finish({ rows, held }: Awaited<ReturnType<typeof recording>>): void {
  writeResult('gate-recording', { rows, held });
  if (held) return;
  console.log('NOT HELD: the record of recent decisions costs more than it may.');
  process.exitCode = 1;
}

/** Calls whose answer was not an allow. */
function refusedOf(codes: Readonly<Record<string, number>>): number {
  return Object.entries(codes).reduce((sum, [code, count]) => (code === '0' ? sum : sum + count), 0);
}

async function answers(port: number): Promise<boolean> {
  const { connect } = await import('node:net');
  return new Promise((done) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      done(true);
    });
    socket.once('error', () => done(false));
  });
}
