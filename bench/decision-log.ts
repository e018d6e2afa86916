/**
 * The cost of the decision log and of traces for a warm check: servers on one database, one core each and one at a
 * time, in short rounds in turns, because the machine's speed changes slowly. BENCH_BEFORE=FOLDER adds the server of
 * another checkout, such as one from before traces.
 */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { chatBody, encodeFrame, writeFrames } from './frames.ts';
import { keyText } from './population.ts';
import { openWorld, type ServerUnderTest } from './server-under-test.ts';
import {
  buildLoad,
  type LoadResult,
  median,
  printTable,
  processorMs,
  type Row,
  runLoad,
  scratch,
  writeResult,
} from './stack.ts';

const KEYS = 10_000;
const TENANTS = 100;
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 20);
const CALLS = Number(process.env['BENCH_CALLS'] ?? 20_000);
const WARM = 4000;

interface Variant {
  readonly name: string;
  readonly settings: NodeJS.ProcessEnv;
  /**
   * The minimum share of the throughput, and of the checks in the same processor time, of the first variant; undefined:
   * no goal.
   */
  readonly least: number | undefined;
  readonly main?: string;
}

interface Subject extends Variant {
  readonly server: ServerUnderTest;
  readonly results: LoadResult[];
  readonly processorUs: number[];
}

const OFF = { POSTERN_LOG_DECISIONS_TO: 'off' };

function variants(file: string): readonly Variant[] {
  const every = { POSTERN_LOG_DECISIONS_ALLOW_ONE_IN: '1' };
  const before = process.env['BENCH_BEFORE'];
  return [
    { name: 'no decision log, no traces', settings: OFF, least: undefined },
    { name: 'the same again', settings: OFF, least: undefined },
    ...(before === undefined
      ? []
      : [{ name: `the server in ${before}`, settings: {}, least: undefined, main: join(before, 'src/main.ts') }]),
    { name: 'one allow in 1,000, to a file', settings: fileAt(file), least: 0.98 },
    { name: 'every allow, to a file', settings: { ...fileAt(file), ...every }, least: 0.9 },
    { name: 'every allow, to standard output', settings: { POSTERN_LOG_LEVEL: 'info', ...every }, least: 0.9 },
    {
      name: 'traces on, no request sampled',
      settings: { ...OFF, POSTERN_TRACES_SAMPLE: 'parent', POSTERN_OTLP_ENDPOINT: 'http://127.0.0.1:9' },
      least: 0.97,
    },
  ];
}

function fileAt(path: string): NodeJS.ProcessEnv {
  return { POSTERN_LOG_DECISIONS_TO: 'file', POSTERN_LOG_DECISIONS_FILE: path };
}

export async function decisionLog(): Promise<void> {
  const directory = scratch();
  const load = buildLoad(directory);
  const frames = join(directory, 'frames.bin');
  const body = chatBody('llama-3-8b');
  writeFrames(
    frames,
    Array.from({ length: KEYS }, (_, i) =>
      encodeFrame({ method: 'POST', path: '/v1/chat/completions', authorization: `Bearer ${keyText(i)}`, body }),
    ),
  );
  await using world = await openWorld(directory, { tenants: TENANTS, keys: KEYS, usable: KEYS, sessions: 0 });
  await using stack = new AsyncDisposableStack();
  const file = join(directory, 'decisions.ndjson');
  const subjects: Subject[] = [];
  for (const variant of variants(file)) {
    const { settings, main } = variant;
    const server = await world.start({ settings, ...(main === undefined ? {} : { main }) });
    stack.defer(() => server.stop());
    subjects.push({ ...variant, server, results: [], processorUs: [] });
  }
  for (const { server } of subjects) runLoad(load, server.grpc, frames, { calls: 2 * CALLS, warm: KEYS });
  for (let round = 0; round < ROUNDS; round++) {
    for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) runRound(load, subject, frames);
    // The path then names no file, and the servers begin another: the disk does not fill.
    rmSync(file, { force: true });
  }
  finish(subjects);
}

function runRound(load: string, { server, results, processorUs }: Subject, frames: string): void {
  const usedMs = processorMs(server.pid);
  results.push(runLoad(load, server.grpc, frames, { calls: CALLS, warm: WARM }));
  processorUs.push(((processorMs(server.pid) - usedMs) * 1000) / (CALLS + WARM));
}

function finish(subjects: readonly Subject[]): void {
  const [first] = subjects;
  if (first === undefined) throw new Error('there is no variant');
  const rows = subjects.map((subject) => {
    const throughput = median(subject.results.map(({ per_s }, i) => per_s / (first.results[i]?.per_s ?? Number.NaN)));
    const processor = median(first.processorUs.map((us, i) => us / (subject.processorUs[i] ?? Number.NaN)));
    const missed = subject.least !== undefined && !(Math.min(throughput, processor) >= subject.least);
    return { subject, throughput, processor, missed };
  });
  const table = rows.map(
    ({ subject, throughput, processor, missed }): Row => ({
      'warm chat check, all allowed': subject.name,
      'checks/s': Math.round(median(subject.results.map(({ per_s }) => per_s))),
      'of the first': throughput.toFixed(3),
      'processor us per check': median(subject.processorUs).toFixed(1),
      'of the first ': processor.toFixed(3),
      'p99 us': Math.round(median(subject.results.map(({ p99_us }) => p99_us))),
      'at least': subject.least?.toFixed(2) ?? '',
      '': subject.least === undefined ? '' : missed ? 'MISSED' : 'reached',
    }),
  );
  printTable(`The decision log and traces: medians of ${ROUNDS} rounds of ${CALLS}, ratios round by round`, table);
  writeResult('decision-log', { rows: table, rounds: ROUNDS, calls: CALLS });
  if (rows.some(({ missed }) => missed)) {
    console.log('MISSED: the decision log or traces cost more than they may.');
    process.exitCode = 1;
  }
}
