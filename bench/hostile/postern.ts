/**
 * `postern serve` as in production: a child process with a configuration file, TLS with client certificates on its gRPC
 * listener.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { NODE_FLAGS } from '../../scripts/lib/node-flags.mjs';
import { freePort } from '../stack.ts';
import type { Certificates } from './envoy.ts';
import { isAlive, treeOf } from './processes.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');
export const ADMINISTRATOR = { email: 'admin@localhost', password: 'a benchmark administrator' };
const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 20_000;
const POLL_MS = 50;
const LOG_CHARS = 800;

export interface PosternOptions {
  readonly folder: string;
  readonly databaseUrl: string;
  readonly certificates: Certificates;
  /** Words after `serve --config FILE`. */
  readonly words?: readonly string[];
  /** Default: 1. */
  readonly workers?: number;
}

export interface Postern {
  readonly pid: number;
  readonly grpc: string;
  readonly http: string;
  readonly isReady: () => Promise<boolean>;
  readonly isRunning: () => boolean;
  /** The last of its log. */
  readonly log: () => string;
  /** Ends all its processes. */
  stop(): Promise<void>;
}

/** Rejects if the server ends, or is not ready within 60 s. */
export async function startPostern(options: PosternOptions): Promise<Postern> {
  const { folder, databaseUrl, certificates, words = [], workers = 1 } = options;
  const [grpc, http, admin] = [
    `127.0.0.1:${await freePort()}`,
    `127.0.0.1:${await freePort()}`,
    `127.0.0.1:${await freePort()}`,
  ];
  const { certFile, keyFile, caFile } = certificates.postern;
  const config = {
    grpc: { listen: grpc, tls: { 'cert-file': certFile, 'key-file': keyFile, 'client-ca-file': caFile } },
    http: { listen: http, 'trusted-proxies': ['127.0.0.1'] },
    admin: { listen: admin },
    database: { url: databaseUrl },
    issuer: 'https://postern.example/benchmark',
    'secret-key': 'not a secret: the key of the benchmarks',
    bootstrap: ADMINISTRATOR,
    log: { level: 'warn' },
    workers,
  };
  const configFile = join(folder, 'postern.yaml');
  const logFile = join(folder, 'postern.log');
  writeFileSync(configFile, JSON.stringify(config), { mode: 0o600 });
  const output = openSync(logFile, 'w');
  const child = spawn(process.execPath, [...NODE_FLAGS, MAIN, 'serve', '--config', configFile, ...words], {
    stdio: ['ignore', output, output],
  });
  closeSync(output);
  const log = (): string => readFileSync(logFile, 'utf8').slice(-LOG_CHARS);
  const { pid } = child;
  if (pid === undefined) throw new Error('postern serve could not be started');
  const isRunning = (): boolean => isAlive(pid);
  const killNow = (): void => killTree(pid);
  process.once('exit', killNow);
  const stop = async (): Promise<void> => {
    await stopTree(child, pid);
    process.off('exit', killNow);
  };
  const deadline = performance.now() + READY_TIMEOUT_MS;
  while (!(await isReady(admin))) {
    if (!isRunning() || performance.now() > deadline) {
      await stop();
      throw new Error(`postern serve did not become ready: ${log()}`);
    }
    await sleep(POLL_MS);
  }
  return { pid, grpc, http, isReady: () => isReady(admin), isRunning, log, stop };
}

async function isReady(admin: string): Promise<boolean> {
  return fetch(`http://${admin}/readyz`).then(
    (answer) => answer.status === 200,
    () => false,
  );
}

async function stopTree(child: ChildProcess, pid: number): Promise<void> {
  const pids = treeOf(pid);
  const ended = child.exitCode !== null || child.signalCode !== null;
  const exit = new Promise<void>((done) => child.once('exit', () => done()));
  // A stopped process would not see SIGTERM.
  for (const each of pids) kill(each, 'SIGCONT');
  child.kill('SIGTERM');
  if (!ended) await Promise.race([exit, sleep(STOP_TIMEOUT_MS)]);
  for (const each of new Set([...pids, ...treeOf(pid)])) kill(each, 'SIGKILL');
  if (!ended) await exit;
}

function killTree(pid: number): void {
  for (const each of treeOf(pid)) kill(each, 'SIGKILL');
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}
