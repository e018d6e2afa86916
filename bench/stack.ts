/** Shared by all benchmarks: processes pinned to one core each, the load generator, and a table. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { NODE_FLAGS } from '../scripts/lib/node-flags.mjs';

export const SERVER_CORE = '0';
export const LOAD_CORE = cpus().length > 1 ? '1' : '0';

export interface LoadResult {
  readonly per_s: number;
  readonly p50_us: number;
  readonly p99_us: number;
  readonly p999_us: number;
  readonly codes: Readonly<Record<string, number>>;
  readonly failed: number;
}

export interface LoadOptions {
  readonly calls: number;
  readonly connections?: number;
  readonly streams?: number;
  readonly warm?: number;
}

/** A folder that is removed when this process ends. PostgreSQL, which does not run as root, may go through it. */
export function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), 'postern-bench-'));
  chmodSync(directory, 0o711);
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Builds the load generator once a run. Needs Go; says so when it is missing. */
export function buildLoad(directory: string): string {
  return buildGo(join(import.meta.dirname, 'load'), join(directory, 'load'));
}

/** Builds a Go program of this folder. @returns `binary` */
export function buildGo(source: string, binary: string): string {
  try {
    execFileSync('go', ['build', '-o', binary, '.'], { cwd: source, stdio: ['ignore', 'ignore', 'inherit'] });
  } catch {
    throw new Error(`${source} could not be built: install Go (https://go.dev/dl) and run this again.`);
  }
  return binary;
}

export function runLoad(binary: string, address: string, frames: string, options: LoadOptions): LoadResult {
  const { calls, connections = 2, streams = 16, warm = 5000 } = options;
  const flags = { addr: address, frames, n: calls, conns: connections, streams, warm };
  const args = Object.entries(flags).flatMap(([name, value]) => [`-${name}`, String(value)]);
  return JSON.parse(execFileSync('taskset', ['-c', LOAD_CORE, binary, ...args], { encoding: 'utf8' })) as LoadResult;
}

export async function freePort(): Promise<number> {
  for (;;) {
    const server = createServer();
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const address = server.address();
    await new Promise<void>((done) => server.close(() => done()));
    if (address === null || typeof address === 'string') throw new Error('no port');
    if (givenPorts.has(address.port)) continue;
    givenPorts.add(address.port);
    return address.port;
  }
}

/** A port may be free again before the server that it was meant for listens on it. */
const givenPorts = new Set<number>();

export interface Pinned {
  readonly process: ChildProcess;
  /** Milliseconds from the start to readiness. */
  readonly readyMs: number;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Starts a Node program with the options of a server on the server's core, and waits until `ready` resolves true. */
export function startPinned(
  script: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  ready: () => Promise<boolean>,
): Promise<Pinned> {
  return startPinnedCommand(process.execPath, [...NODE_FLAGS, script, ...args], env, ready);
}

/** Reports whether something listens on a port of this machine. */
export function isListening(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      done(true);
    });
    socket.once('error', () => done(false));
  });
}

/** The same for any program. */
export async function startPinnedCommand(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  ready: () => Promise<boolean>,
): Promise<Pinned> {
  const started = performance.now();
  const child = spawn('taskset', ['-c', SERVER_CORE, command, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = new Promise<void>((done) => child.once('exit', () => done()));
  for (;;) {
    if (child.exitCode !== null)
      throw new Error(`${[command, ...args].join(' ')} ended with ${child.exitCode} before it was ready`);
    if (await ready().catch(() => false)) break;
    await new Promise((done) => setTimeout(done, 10));
  }
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<void> => {
    child.kill(signal);
    await ended;
  };
  return { process: child, readyMs: performance.now() - started, stop };
}

/** Ids of a process and of all processes below it: a server is a supervisor with its gates and its API. */
export function processTree(pid: number): readonly number[] {
  const parents = new Map<number, number[]>();
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    const parent = Number(statOf(Number(name))?.[1]);
    parents.set(parent, [...(parents.get(parent) ?? []), Number(name)]);
  }
  const below = (each: number): readonly number[] => [each, ...(parents.get(each) ?? []).flatMap(below)];
  return below(pid);
}

/** The fields of /proc/PID/stat from the state on; undefined if the process has ended. */
function statOf(pid: number): readonly string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

interface Memory {
  readonly now: number;
  readonly peak: number;
}

/**
 * Resident memory of a process and those below it, now and the sum of what each had at its highest, in MB. Shared pages
 * count in each.
 */
export function memory(pid: number): Memory {
  const sum = { now: 0, peak: 0 };
  for (const each of processTree(pid)) {
    const { now, peak } = ownMemory(each);
    sum.now += now;
    sum.peak += peak;
  }
  return sum;
}

/** The same without the processes below it; nothing if it has ended. */
export function ownMemory(pid: number): Memory {
  let status = '';
  try {
    status = readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return { now: 0, peak: 0 };
  }
  const read = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024;
  return { now: Math.round(read('VmRSS')), peak: Math.round(read('VmHWM')) };
}

const TICKS_PER_SECOND = 100;

/** Processor time that a process and those below it have used so far, in milliseconds, to a hundredth of a second. */
export function processorMs(pid: number): number {
  return processTree(pid).reduce((sum, each) => sum + ownProcessorMs(each), 0);
}

/** The same without the processes below it. */
export function ownProcessorMs(pid: number): number {
  const [user = 0, system = 0] = (statOf(pid) ?? []).slice(11, 13).map(Number);
  return ((user + system) * 1000) / TICKS_PER_SECOND;
}

/** The same in microseconds, to less than one. Threads that have ended do not count. */
export function preciseProcessorUs(pid: number): number {
  const spentNs = readdirSync(`/proc/${pid}/task`).map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
  );
  return spentNs.reduce((sum, ns) => sum + ns, 0) / 1000;
}

/**
 * The maximum share of processor time that other machines of the hypervisor take while this machine counts as quiet.
 */
const QUIET = 0.03;
/** How often a round is run for each that is wanted, before the quietest there were have to do. */
const TRIES = 4;

export interface Round<T> {
  readonly result: T;
  /** The share of all processor time that the hypervisor gave to others during the round. */
  readonly stolen: number;
}

/** Runs rounds until `wanted` of them were quiet, and returns the quietest in the order in which they ran. */
export async function quietRounds<T>(wanted: number, run: () => T | Promise<T>): Promise<readonly Round<T>[]> {
  const rounds: Round<T>[] = [];
  const quiet = (): number => rounds.filter(({ stolen }) => stolen < QUIET).length;
  while (quiet() < wanted && rounds.length < wanted * TRIES) {
    const before = processorTimes();
    const result = await run();
    const after = processorTimes();
    rounds.push({ result, stolen: (after.stolen - before.stolen) / Math.max(1, after.all - before.all) });
  }
  const kept = new Set(rounds.toSorted((left, right) => left.stolen - right.stolen).slice(0, wanted));
  return rounds.filter((round) => kept.has(round));
}

/** Of all processors together since the start, in the system's ticks. */
function processorTimes(): { readonly all: number; readonly stolen: number } {
  const [first = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  // User, nice, system, idle, iowait, irq, softirq and steal; what guests use is counted in the first two.
  const times = first.trim().split(/\s+/).slice(1, 9).map(Number);
  return { all: times.reduce((sum, time) => sum + time, 0), stolen: times[7] ?? 0 };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(q * (sorted.length - 1))] ?? 0;
}

export type Row = Readonly<Record<string, string | number>>;

/** Prints rows as a table, right-aligned except for the first column. */
export function printTable(title: string, rows: readonly Row[]): void {
  const columns = Object.keys(rows[0] ?? {});
  const cells = [columns, ...rows.map((row) => columns.map((column) => String(row[column] ?? '')))];
  const widths = columns.map((_, i) => Math.max(...cells.map((line) => line[i]?.length ?? 0)));
  const print = (line: readonly string[]): string =>
    `| ${line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join(' | ')} |`;
  console.log(`\n${title}\n`);
  for (const [i, line] of cells.entries()) {
    console.log(print(line));
    if (i === 0)
      console.log(
        `|${widths.map((width, n) => (n === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`,
      );
  }
}

export function writeResult(name: string, result: unknown): void {
  const directory = join(import.meta.dirname, 'results');
  mkdirSync(directory, { recursive: true });
  const file = join(directory, `${name}.json`);
  writeFileSync(file, `${JSON.stringify(result, undefined, 2)}\n`);
  console.log(`\nWritten to bench/results/${name}.json`);
}
