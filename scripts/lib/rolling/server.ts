/** One `postern serve` on addresses that stay the same, so that another process can take its place. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { NODE_FLAGS } from '../node-flags.mjs';

const READY_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 30_000;
const POLL_MS = 25;
const KEPT_OUTPUT_CHARS = 32_768;

export interface Place {
  readonly grpc: string;
  readonly http: string;
  readonly admin: string;
}

export interface ServerProcess {
  readonly place: Place;
  /** Sends SIGTERM; resolves with the exit code, or with the signal that had to end it. */
  stop(): Promise<number | NodeJS.Signals>;
  kill(): void;
  /** The last of what it wrote. */
  output(): string;
}

/** Whatever ends this process, no server outlives it. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/**
 * Starts the server of a folder that is laid out like the repository, and resolves when /readyz answers 200. Rejects if
 * it ends before.
 * @param env its whole environment, beside PATH and its addresses
 */
export async function startServer(
  root: string,
  cwd: string,
  place: Place,
  env: NodeJS.ProcessEnv,
): Promise<ServerProcess> {
  const child = spawn(process.execPath, [...NODE_FLAGS, join(root, 'src/main.ts'), 'serve'], {
    cwd,
    env: {
      PATH: process.env['PATH'],
      // Half of a start is compiling the same files again.
      NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/test-compile-cache'),
      POSTERN_GRPC_LISTEN: place.grpc,
      POSTERN_HTTP_LISTEN: place.http,
      POSTERN_ADMIN_LISTEN: place.admin,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  let output = '';
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-KEPT_OUTPUT_CHARS);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  let ended: number | NodeJS.Signals | undefined;
  const exited = once(child, 'close').then(() => {
    running.delete(child);
    ended = child.exitCode ?? child.signalCode ?? 'SIGKILL';
    return ended;
  });
  const server: ServerProcess = {
    place,
    async stop() {
      child.kill('SIGTERM');
      const kill = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
      return await exited.finally(() => clearTimeout(kill));
    },
    kill: () => void child.kill('SIGKILL'),
    output: () => output,
  };
  for (const deadline = performance.now() + READY_LIMIT_MS; performance.now() < deadline; await sleep(POLL_MS)) {
    if (ended !== undefined) throw new ServerEnded(ended, output);
    if (await isReady(place)) return server;
  }
  child.kill('SIGKILL');
  throw new Error(`the server was not ready within ${READY_LIMIT_MS} ms: ${output}`);
}

/** The server ended before it was ready. */
export class ServerEnded extends Error {
  override readonly name = 'ServerEnded';
  readonly outcome: number | NodeJS.Signals;

  constructor(outcome: number | NodeJS.Signals, output: string) {
    super(`the server ended with ${outcome} before it was ready: ${output}`);
    this.outcome = outcome;
  }
}

async function isReady({ admin }: Place): Promise<boolean> {
  const answer = await fetch(`http://${admin}/readyz`).catch(() => undefined);
  await answer?.body?.cancel();
  return answer?.status === 200;
}

/** The sum over the samples of /metrics whose line begins so. */
export async function metric({ admin }: Place, start: string): Promise<number> {
  const text = await (await fetch(`http://${admin}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(start));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}
