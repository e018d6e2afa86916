/**
 * Servers as child processes in folders of their own: watched while they start, and gone with everything they wrote in
 * the end.
 */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const READY_LIMIT_MS = 60_000;
const POLL_MS = 20;
const STOP_LIMIT_MS = 5_000;

/** The user that runs a program; undefined: the user that runs the tests. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

export interface Daemon {
  readonly pid: number;
  /** Returns its output until now. */
  output(): string;
  hasEnded(): boolean;
  stop(): Promise<void>;
}

const children = new Set<ChildProcess>();
const folders = new Set<string>();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A folder that other users can pass through. */
export async function makeFolder(name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `postern-${name}-`));
  await chmod(folder, 0o711);
  folders.add(folder);
  return folder;
}

export async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  folders.delete(folder);
}

/** Runs a tool to its end. Rejects with what it wrote when it fails. */
export async function tool(command: string, args: readonly string[], options: ToolOptions = {}): Promise<string> {
  try {
    const { stdout, stderr } = await run(command, args, { maxBuffer: 1 << 26, ...options.owner, ...settings(options) });
    return stdout + stderr;
  } catch (error) {
    const output =
      error instanceof Error && 'stderr' in error && 'stdout' in error ? `${error.stdout}\n${error.stderr}` : '';
    throw new Error(`${command} ${args.join(' ')} failed: ${output.slice(-2_000)}`, { cause: error });
  }
}

export interface ToolOptions {
  readonly owner?: Owner | undefined;
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
}

function settings({ cwd, env }: ToolOptions) {
  return {
    ...(cwd === undefined ? {} : { cwd }),
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8', ...env },
  };
}

export function startDaemon(command: string, args: readonly string[], options: ToolOptions = {}): Daemon {
  // So that it ends with this process, however that ends.
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', command, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...options.owner,
    ...settings(options),
  });
  children.add(child);
  let output = '';
  const keep = (text: string): void => {
    output += text;
  };
  child.stdout.setEncoding('utf8').on('data', keep);
  child.stderr.setEncoding('utf8').on('data', keep);
  child.once('error', (error) => keep(error.message));
  let ended = false;
  const end = new Promise<void>((resolve) => {
    child.once('close', () => {
      ended = true;
      children.delete(child);
      resolve();
    });
  });
  return {
    pid: child.pid ?? 0,
    output: () => output,
    hasEnded: () => ended,
    async stop() {
      child.kill('SIGTERM');
      const giveUp = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
      await end;
      clearTimeout(giveUp);
    },
  };
}

/** Resolves when the daemon takes connections there. Rejects with what it wrote when it ends instead. */
export async function untilListening(daemon: Daemon, host: string, port: number): Promise<void> {
  const limit = performance.now() + READY_LIMIT_MS;
  for (;;) {
    const accepted = await accepts(host, port);
    // After the process has ended, another process may accept connections on the port.
    if (daemon.hasEnded() || performance.now() > limit) {
      throw new Error(`nothing listens on ${host}:${port}: ${daemon.output().slice(-4_000)}`);
    }
    if (accepted) return;
    await wait(POLL_MS);
  }
}

function accepts(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => end(true)).once('error', () => end(false));
  });
}
