/**
 * The gate's cost beside its floors in the same run, one core for the server and one for the load: empty handlers of
 * grpc-js, `node:http2` and grpc-go with an answer of the same size. Then the record of recent decisions;
 * BENCH_GATE=recording runs only that, BENCH_GATE=floors all but that.
 */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { barChart } from './bars.ts';
import { checker } from './checker.ts';
import { chatBody, encodeFrame, writeFrames } from './frames.ts';
import { type Added, addedByEnvoy } from './gate-envoy.ts';
import { recording } from './gate-recording.ts';
import {
  type Figure,
  figuresOf,
  ratio,
  refusedOf,
  runRound,
  type Subject,
  startFloor,
  subjectOf,
} from './gate-subjects.ts';
import { twoWorkers, type Workers } from './gate-workers.ts';
import { keyText } from './population.ts';
import { openWorld, type World } from './server-under-test.ts';
import { buildLoad, median, memory, printTable, type Row, runLoad, scratch, writeResult } from './stack.ts';

const KEYS = 10_000;
const TENANTS = 100;
const TOKENS = 1_000;
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 7);
const CALLS = Number(process.env['BENCH_CALLS'] ?? 60_000);
const CHART = join(import.meta.dirname, '../docs/gate.svg');

interface Target {
  readonly row: string;
  readonly measured: number;
  /** At most; undefined = it is printed and has no target. */
  readonly target: number | undefined;
}

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
  const fileOf = (name: string, frames: readonly Buffer[]): string => {
    const file = join(directory, `${name}.bin`);
    writeFrames(file, frames);
    return file;
  };
  const keys = Array.from({ length: KEYS }, (_, i) => keyText(i));
  const mixed = fileOf(
    'mixed',
    keys.map((key, i) => (i % 10 === 0 ? denied(key) : chat(key))),
  );
  if (process.env['BENCH_GATE'] !== 'recording') {
    const frames = {
      keys: fileOf('keys', keys.map(chat)),
      tokens: fileOf('tokens', (await world.tokens(TOKENS)).map(chat)),
      mixed,
    };
    await besideFloors(world, load, directory, frames, {
      frame: chat(keyText(0)),
      authorization: `Bearer ${keyText(0)}`,
      body,
    });
  }
  if (process.env['BENCH_GATE'] !== 'floors') finishRecording(await recording(world, load, mixed));
}

interface Frames {
  readonly keys: string;
  readonly tokens: string;
  readonly mixed: string;
}

interface Example {
  readonly frame: Buffer;
  readonly authorization: string;
  readonly body: string;
}

async function besideFloors(
  world: World,
  load: string,
  directory: string,
  frames: Frames,
  example: Example,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const postern = await world.start();
  stack.defer(() => postern.stop());
  const twin = await world.start({ settings: { POSTERN_GRPC_TRANSPORT: 'grpc-js' } });
  stack.defer(() => twin.stop());
  const signing = await world.start({ settings: { POSTERN_UPSTREAM_TOKEN_AUDIENCE: 'bench-platform' } });
  stack.defer(() => signing.stop());
  const client = checker(postern.grpc);
  const answerBytes = (await client.answer(example.frame)).length;
  client.close();
  const floor = async (kind: Parameters<typeof startFloor>[0]) => {
    const started = await startFloor(kind, answerBytes, directory);
    stack.defer(() => started.stop());
    return started;
  };
  const go = await floor('grpc-go');
  const grpcJs = subjectOf('empty grpc-js handler', await floor('grpc-js'), frames.keys, false);
  const nodeHttp2 = subjectOf('empty node:http2 handler', await floor('node-http2'), frames.keys, false);
  const grpcGo = subjectOf('empty grpc-go handler', go, frames.keys, false);
  const empty = subjectOf('empty method on the built-in transport', await floor('built-in'), frames.keys, false);
  const key = subjectOf('Postern, API key', postern, frames.keys, true);
  const token = subjectOf('Postern, access token', postern, frames.tokens, true);
  const mixed = subjectOf('Postern, API key, 1 in 10 denied', postern, frames.mixed, true);
  const keyOnGrpcJs = subjectOf('Postern, API key, grpc.transport: grpc-js', twin, frames.keys, true);
  const keyWithToken = subjectOf('Postern, API key, token for the upstream', signing, frames.keys, true);
  const subjects = [grpcJs, nodeHttp2, grpcGo, empty, key, token, mixed, keyOnGrpcJs, keyWithToken];

  for (const { address, frames: file } of subjects) runLoad(load, address, file, { calls: 2 * CALLS, warm: KEYS });
  for (let round = 0; round < ROUNDS; round++) for (const subject of subjects) runRound(load, subject, CALLS);

  const rows = subjects.map((subject) => rowOf(subject, [grpcJs, nodeHttp2, grpcGo]));
  printTable(
    `The gate: ${KEYS} keys, ${TENANTS} tenants, 5 policies each, answers of ${answerBytes} bytes; medians of ${ROUNDS} rounds`,
    rows,
  );
  const memoryMb = memory(postern.pid);
  console.log(`\nResident memory: ${memoryMb.now} MB (peak ${memoryMb.peak} MB).`);

  const added = await addedByEnvoy(postern.grpc, go.address, example.authorization, example.body);
  const workers = await twoWorkers(world, load, frames.keys);
  const targets = targetsOf({ grpcJs, nodeHttp2, grpcGo, key, token, mixed }, added, workers);
  printTable(
    'Targets: ratios of processor time where nothing else is said, medians of ratios round by round',
    targets.map(({ row, measured, target }) => ({
      row,
      measured: measured.toFixed(2),
      'at most': target === undefined ? '' : target.toFixed(2),
      '': target === undefined ? '' : measured <= target ? 'reached' : 'MISSED',
    })),
  );
  console.log(
    `\nThrough Envoy, p50 of one request at a time: ${added.plainUs.toFixed()} us without ext_authz, ${added.posternUs.toFixed()} with Postern, ${added.floorUs.toFixed()} with the empty grpc-go handler.`,
  );
  console.log(
    `2 workers on both cores, which the load shares: ${workers.throughput.toFixed(2)} times the checks of 1, at ${workers.processor.toFixed(2)} of its processor time per check.`,
  );
  writeFileSync(
    CHART,
    barChart(
      'Processor time of a call, one core',
      'us',
      subjects.map((subject) => ({ name: subject.name, value: median(subject.processorUs), isOwn: subject.isOwn })),
    ),
  );
  writeResult('gate', { rows, targets, added, workers, memoryMb, answerBytes, rounds: ROUNDS, subjects });
}

/** @param floors of the three columns of ratios */
function rowOf(subject: Subject, floors: readonly Subject[]): Row {
  const middle = (figure: Figure): number => median(figuresOf(subject, figure));
  const [grpcJs, nodeHttp2, grpcGo] = floors.map((floor) => ratio(subject, floor, 'processor').toFixed(2));
  return {
    'warm chat check, 1 KB body': subject.name,
    'processor us': middle('processor').toFixed(1),
    '/ grpc-js': grpcJs ?? '',
    '/ node:http2': nodeHttp2 ?? '',
    '/ grpc-go': grpcGo ?? '',
    'checks/s': Math.round(middle('per second')),
    'p99 us, 32 at once': Math.round(middle('p99 under load')),
    'p50 us, 1 at a time': Math.round(middle('p50 alone')),
    refused: refusedOf(subject),
  };
}

interface Compared {
  readonly grpcJs: Subject;
  readonly nodeHttp2: Subject;
  readonly grpcGo: Subject;
  readonly key: Subject;
  readonly token: Subject;
  readonly mixed: Subject;
}

function targetsOf(
  { grpcJs, nodeHttp2, grpcGo, key, token, mixed }: Compared,
  added: Added,
  workers: Workers,
): readonly Target[] {
  return [
    { row: 'API key / empty grpc-js handler', measured: ratio(key, grpcJs, 'processor'), target: 0.4 },
    { row: 'API key / empty node:http2 handler', measured: ratio(key, nodeHttp2, 'processor'), target: 0.7 },
    {
      row: 'API key / empty grpc-go handler (the aim is 1.00)',
      measured: ratio(key, grpcGo, 'processor'),
      target: 1.15,
    },
    {
      row: 'p50 of one call at a time / empty grpc-js handler',
      measured: ratio(key, grpcJs, 'p50 alone'),
      target: 0.55,
    },
    {
      row: 'p99 at 32 calls at once / empty grpc-go handler',
      measured: ratio(key, grpcGo, 'p99 under load'),
      target: 1.5,
    },
    { row: 'access token / API key', measured: ratio(token, key, 'processor'), target: 1.05 },
    { row: '1 in 10 denied / API key', measured: ratio(mixed, key, 'processor'), target: undefined },
    { row: 'checks/s of 2 workers / 1, on both cores with the load', measured: workers.throughput, target: undefined },
    { row: 'p50 added to Envoy by Postern / by the empty grpc-go handler', measured: added.ratio, target: 1.1 },
  ];
}

function finishRecording({ rows, held }: Awaited<ReturnType<typeof recording>>): void {
  writeResult('gate-recording', { rows, held });
  if (held) return;
  console.log('NOT HELD: the record of recent decisions costs more than it may.');
  process.exitCode = 1;
}
