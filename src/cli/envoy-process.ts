/** Runs one Envoy with a complete configuration. Its admin listener reports when it is ready. */

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 20;
const STOP_TIMEOUT_MS = 5000;
const READY_TIMEOUT_MS = 15_000;
const KEPT_OUTPUT_CHARS = 16_384;

export interface RunningEnvoy {
  readonly pid: number;
  /** `http://host:port` of Envoy's admin listener. */
  readonly adminUrl: string;
  /** The real address (`host:port`) of each listener, by name. */
  readonly listeners: ReadonlyMap<string, string>;
  /** Resolves when the process has ended. */
  readonly exited: Promise<void>;
  /** Ends the process and waits for it. Safe to call twice. */
  stop(): Promise<void>;
  /** Returns the end of its log, for messages. */
  output(): string;
}

/** Envoy did not start. The message is one sentence for the operator. */
class EnvoyError extends Error {
  override readonly name = 'EnvoyError';
}

interface EnvoyOptions {
  readonly binary: string;
  /** A complete configuration; its admin listener may have port 0. */
  readonly config: object;
  /** Worker threads. */
  readonly concurrency?: number;
}

/** Envoy ends with this process. */
const runningChildren = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of runningChildren) child.kill('SIGKILL');
});

/** Starts Envoy and waits until it serves. Rejects with an EnvoyError when it ends before or takes too long. */
export async function startEnvoy(options: EnvoyOptions): Promise<RunningEnvoy> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-envoy-'));
  const configFile = join(folder, 'envoy.json');
  const adminFile = join(folder, 'admin');
  await writeFile(configFile, JSON.stringify(options.config), { mode: 0o600 });
  const flags = [
    '-c',
    configFile,
    '--disable-hot-restart',
    '--log-level',
    'warning',
    '--admin-address-path',
    adminFile,
  ];
  const child = launch(options.binary, [...flags, '--concurrency', String(options.concurrency ?? 1)]);

  let log = '';
  const keep = (chunk: Buffer): void => {
    log = (log + chunk.toString()).slice(-KEPT_OUTPUT_CHARS);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);

  let ended = false;
  const exited = new Promise<void>((resolve) => {
    const end = (): void => {
      ended = true;
      resolve();
    };
    child.once('exit', end);
    child.once('error', (error) => {
      log += error.message;
      end();
    });
  }).then(() => rm(folder, { recursive: true, force: true }));
  const killNow = (): void => void child.kill('SIGKILL');
  runningChildren.add(child);
  void exited.then(() => runningChildren.delete(child));

  const stop = async (): Promise<void> => {
    if (!ended) {
      child.kill('SIGTERM');
      const timer = setTimeout(killNow, STOP_TIMEOUT_MS);
      await exited;
      clearTimeout(timer);
    }
    await exited;
  };

  const deadline = performance.now() + READY_TIMEOUT_MS;
  let adminUrl: string | undefined;
  while (!ended && performance.now() < deadline) {
    adminUrl ??= await readAdminAddress(adminFile);
    if (adminUrl !== undefined && (await answersOk(`${adminUrl}/ready`))) {
      const listeners = await readListeners(adminUrl);
      return { pid: child.pid ?? -1, adminUrl, listeners, exited, stop, output: () => log };
    }
    await sleep(POLL_MS);
  }
  const early = ended;
  await stop();
  throw new EnvoyError(explain(log, early));
}

/**
 * Starts Envoy in a process group of its own, so that Ctrl-C reaches only this process, which then stops Envoy in
 * order. With setpriv, if the system has it, the kernel ends Envoy even if this process is killed.
 */
function launch(binary: string, args: readonly string[]): ChildProcess {
  const setpriv = '/usr/bin/setpriv';
  const [command, all] =
    process.platform === 'linux' && existsSync(setpriv)
      ? [setpriv, ['--pdeathsig', 'TERM', binary, ...args]]
      : [binary, [...args]];
  return spawn(command, all, { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
}

function explain(log: string, early: boolean): string {
  const taken = /cannot bind '([^']+)': Address already in use/.exec(log)?.[1];
  if (taken !== undefined) return `Envoy cannot listen on ${taken}: the address is in use.`;
  const last = log.trim().split('\n').at(-1) ?? '';
  return early ? `Envoy ended at its start: ${last}` : `Envoy did not become ready in time: ${last}`;
}

async function readAdminAddress(file: string): Promise<string | undefined> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text === '' ? undefined : `http://${text.trim()}`;
}

async function answersOk(url: string): Promise<boolean> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(1000) });
    await answer.body?.cancel();
    return answer.status === 200;
  } catch {
    return false;
  }
}

/** Envoy's `/listeners` prints one line each: `name::address`. */
async function readListeners(adminUrl: string): Promise<ReadonlyMap<string, string>> {
  const text = await (await fetch(`${adminUrl}/listeners`, { signal: AbortSignal.timeout(5000) })).text();
  const found = new Map<string, string>();
  for (const line of text.split('\n')) {
    const cut = line.indexOf('::');
    if (cut > 0) found.set(line.slice(0, cut), line.slice(cut + 2).trim());
  }
  return found;
}
