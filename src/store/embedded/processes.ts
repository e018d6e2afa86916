/**
 * Finds the processes of a cluster. The working directory of every PostgreSQL process is the data directory, which
 * distinguishes it from another process with a reused id.
 */

import { execFile } from 'node:child_process';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { promisify } from 'node:util';
import { systemCode } from '../../domain/errors.ts';
import { readIfPresent } from './files.ts';
import type { ServerUser } from './server-user.ts';

const run = promisify(execFile);

export interface PidFile {
  readonly pid: number;
  /** Undefined while the server starts: it writes this line last. */
  readonly socketDir: string | undefined;
}

/** Returns what a server wrote when it started; undefined if there is no file. The server may no longer run. */
export async function readPidFile(cluster: string): Promise<PidFile | undefined> {
  const lines = (await readIfPresent(`${cluster}/postmaster.pid`))?.split('\n') ?? [];
  const pid = Number(lines[0]);
  return Number.isSafeInteger(pid) && pid > 0 ? { pid, socketDir: lines[4]?.trim() || undefined } : undefined;
}

/** `stranger`: the process runs, but is not the server of this cluster. */
export async function whoIs(pid: number, cluster: string): Promise<'server' | 'stranger' | 'gone'> {
  if (!exists(pid)) return 'gone';
  if (process.platform !== 'linux') {
    const { stdout } = await run('ps', ['-o', 'stat=,command=', '-p', String(pid)]).catch(() => ({ stdout: '' }));
    return stdout.trim() === '' || stdout.startsWith('Z') ? 'gone' : stdout.includes(cluster) ? 'server' : 'stranger';
  }
  if (await isZombie(pid)) return 'gone';
  const directory = await workingDirectory(pid);
  // Root in a container may not read the working directory of another user's process. The command line is public.
  const works = directory === 'hidden' ? (await commandLine(pid)).includes(cluster) : directory === cluster;
  return works ? 'server' : exists(pid) ? 'stranger' : 'gone';
}

/**
 * Returns the helper processes of a server whose main process has ended; always none except on Linux. Their command
 * lines begin with `postgres: `, unlike that of the main process.
 */
export async function helpersOf(cluster: string, user: ServerUser | undefined): Promise<readonly number[]> {
  if (process.platform !== 'linux') return [];
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const named = await which(pids, async (pid) => (await commandLine(pid))[0]?.startsWith('postgres: ') === true);
  const hidden = await which(named, async (pid) => (await workingDirectory(pid)) === 'hidden');
  const seen = await which(named, async (pid) => (await workingDirectory(pid)) === cluster);
  const readable = hidden.length > 0 && user !== undefined ? await workingIn(user, hidden, cluster) : [];
  return which([...seen, ...readable], async (pid) => !(await isZombie(pid)));
}

/** Sends a signal. Does nothing if the process has ended. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended, or this user may not end it: the caller waits for its end and detects that.
  }
}

async function which(pids: readonly number[], test: (pid: number) => Promise<boolean>): Promise<number[]> {
  const answers = await Promise.all(pids.map(test));
  return pids.filter((_, index) => answers[index]);
}

/** Reads the working directories as the server's user, which may read those of its own processes. */
async function workingIn(user: ServerUser, pids: readonly number[], cluster: string): Promise<number[]> {
  const script = 'want=$1; shift; for pid do test "$(readlink "/proc/$pid/cwd")" = "$want" && echo "$pid"; done; true';
  const { stdout } = await run('/bin/sh', ['-c', script, 'sh', cluster, ...pids.map(String)], { cwd: '/', ...user });
  return stdout.split('\n').filter(Boolean).map(Number);
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCode(error) === 'EPERM';
  }
}

async function workingDirectory(pid: number): Promise<string | undefined> {
  return readlink(`/proc/${pid}/cwd`).catch((error: unknown) =>
    systemCode(error) === 'EACCES' ? 'hidden' : undefined,
  );
}

async function commandLine(pid: number): Promise<readonly string[]> {
  return (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
}

async function isZombie(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The process name before it is in parentheses and may contain any character.
  return stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z');
}
