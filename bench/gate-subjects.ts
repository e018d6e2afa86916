/** The servers that the gate's benchmark compares, each on one core, and what a round of it measures. */

import { join } from 'node:path';
import type { ServerUnderTest } from './server-under-test.ts';
import {
  buildGo,
  freePort,
  isListening,
  type LoadResult,
  median,
  type Pinned,
  processorMs,
  runLoad,
  startPinned,
  startPinnedCommand,
} from './stack.ts';

const FLOORS = join(import.meta.dirname, 'floors');
const WARM = 4000;
const ALONE_CALLS = 8000;

export interface Subject {
  readonly name: string;
  readonly pid: number;
  readonly address: string;
  readonly frames: string;
  readonly isOwn: boolean;
  readonly throughput: LoadResult[];
  readonly alone: LoadResult[];
  /** For a check under load, in microseconds; round by round. */
  readonly processorUs: number[];
}

export interface Floor extends Pinned {
  readonly address: string;
  readonly pid: number;
}

/** An empty handler. @param answerBytes the length of its answer */
export async function startFloor(
  kind: 'grpc-js' | 'node-http2' | 'built-in' | 'grpc-go',
  answerBytes: number,
  directory: string,
): Promise<Floor> {
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const ready = (): Promise<boolean> => isListening(port);
  const server =
    kind === 'grpc-go'
      ? await startPinnedCommand(
          buildGo(join(FLOORS, 'go'), join(directory, 'floor-go')),
          ['-addr', address, '-bytes', String(answerBytes)],
          {},
          ready,
        )
      : await startPinned(join(FLOORS, `${kind}.ts`), [address, String(answerBytes)], {}, ready);
  const { pid } = server.process;
  if (pid === undefined) throw new Error(`${kind} has no process id`);
  return { ...server, address, pid };
}

export function subjectOf(
  name: string,
  server: Pick<Floor, 'address' | 'pid'> | ServerUnderTest,
  frames: string,
  isOwn: boolean,
): Subject {
  const address = 'address' in server ? server.address : server.grpc;
  return { name, pid: server.pid, address, frames, isOwn, throughput: [], alone: [], processorUs: [] };
}

/** One round of a subject: under load, and one call at a time. */
export function runRound(load: string, subject: Subject, calls: number): void {
  const { address, frames, throughput, alone, processorUs, pid } = subject;
  const usedMs = processorMs(pid);
  throughput.push(runLoad(load, address, frames, { calls, warm: WARM }));
  processorUs.push(((processorMs(pid) - usedMs) * 1000) / (calls + WARM));
  alone.push(runLoad(load, address, frames, { calls: ALONE_CALLS, connections: 1, streams: 1, warm: 500 }));
}

export type Figure = 'processor' | 'p50 alone' | 'p99 under load' | 'per second';

export function figuresOf(subject: Subject, figure: Figure): readonly number[] {
  switch (figure) {
    case 'processor':
      return subject.processorUs;
    case 'p50 alone':
      return subject.alone.map(({ p50_us }) => p50_us);
    case 'p99 under load':
      return subject.throughput.map(({ p99_us }) => p99_us);
    case 'per second':
      return subject.throughput.map(({ per_s }) => per_s);
    default:
      return figure satisfies never;
  }
}

/** The median of the ratios, round by round. */
export function ratio(subject: Subject, floor: Subject, figure: Figure): number {
  const floors = figuresOf(floor, figure);
  return median(figuresOf(subject, figure).map((value, i) => value / (floors[i] ?? Number.NaN)));
}

/** Calls that failed, or whose answer was not an allow. */
export function refusedOf({ throughput, alone }: Pick<Subject, 'throughput' | 'alone'>): number {
  return [...throughput, ...alone].reduce(
    (sum, { codes, failed }) =>
      sum +
      failed +
      Object.entries(codes).reduce((others, [code, count]) => (code === '0' ? others : others + count), 0),
    0,
  );
}
