/**
 * Which processes belong to a cluster. Every process of a PostgreSQL server works in its data directory, which tells it
 * from a stranger that got its number.
 */

import { execFile } from 'node:child_process';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { promisify } from 'node:util';
import { systemCode } from './error.ts';
import { readIfThere } from './files.ts';
import type { ServerUser } from './server-user.ts';

const run = promisify(execFile);

export interface PidFile {
  readonly pid: number;
  readonly socketDir: string;
}

/** What a server wrote when it started; it may be long dead. Undefined when there is none. */
export async function readPidFile(cluster: string): Promise<PidFile | undefined> {
  const lines = (await readIfThere(`${cluster}/postmaster.pid`))?.split('\n') ?? [];
  const pid = Number(lines[0]);
  return Number.isSafeInteger(pid) && pid > 0 ? { pid, socketDir: lines[4]?.trim() ?? '' } : undefined;
}

/** `stranger`: the process is alive, but is not the server of this cluster. */
export async function whoIs(pid: number, cluster: string): Promise<'server' | 'stranger' | 'gone'> {
  if (!exists(pid)) {
    return 'gone';
  }
  if (process.platform !== 'linux') {
    const { stdout } = await run('ps', ['-o', 'stat=,command=', '-p', String(pid)]).catch(() => ({ stdout: '' }));
    return stdout.trim() === '' || stdout.startsWith('Z') ? 'gone' : stdout.includes(cluster) ? 'server' : 'stranger';
  }
  if (await isZombie(pid)) {
    return 'gone';
  }
  const directory = await workingDirectory(pid);
  // Root in a container may not look where another user's process works, but how it was started is open to all.
  const works = directory === 'hidden' ? (await commandLine(pid)).includes(cluster) : directory === cluster;
  return works ? 'server' : exists(pid) ? 'stranger' : 'gone';
}

/**
 * The helper processes of a server that is dead itself, on Linux; elsewhere there is no way to ask, and none are found.
 * They call themselves `postgres: …`, where the main process keeps the command that it was started with.
 */
export async function helpersOf(cluster: string, user: ServerUser | undefined): Promise<readonly number[]> {
  if (process.platform !== 'linux') {
    return [];
  }
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const named = await which(pids, async (pid) => (await commandLine(pid))[0]?.startsWith('postgres: ') === true);
  const hidden = await which(named, async (pid) => (await workingDirectory(pid)) === 'hidden');
  const seen = await which(named, async (pid) => (await workingDirectory(pid)) === cluster);
  const asked = hidden.length > 0 && user !== undefined ? await askAs(user, hidden, cluster) : [];
  return which([...seen, ...asked], async (pid) => !(await isZombie(pid)));
}

/** Sends a signal; a process that is gone already is what the sender wanted. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // Gone, or not ours to stop: whoever waits for it to end sees which.
  }
}

async function which(pids: readonly number[], question: (pid: number) => Promise<boolean>): Promise<number[]> {
  const answers = await Promise.all(pids.map(question));
  return pids.filter((_, index) => answers[index]);
}

/** A user may look where its own processes work, also where root may not. */
async function askAs(user: ServerUser, pids: readonly number[], cluster: string): Promise<number[]> {
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
  // The name before it is in parentheses and may hold anything.
  return stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z');
}
