/** The processes of the machine, from /proc. */

import { readdir, readFile } from 'node:fs/promises';

interface Status {
  /** `Z`: it has ended, and its parent has not read its status. */
  readonly state: string;
  readonly parent: number;
}

async function statusOf(pid: number | string): Promise<Status | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  if (stat === undefined) return undefined;
  // The name before it is in parentheses and may hold anything.
  const [state = '', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { state, parent: Number(parent) };
}

export async function isRunning(pid: number): Promise<boolean> {
  const status = await statusOf(pid);
  return status !== undefined && status.state !== 'Z';
}

/** Ids of the processes that a process has started and that run. */
export async function childrenOf(parent: number): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const status = await statusOf(pid);
      return status?.parent === parent && status.state !== 'Z' ? [Number(pid)] : [];
    }),
  );
  return found.flat();
}

export type PosternProcess = 'gate' | 'api';

/**
 * Ids of the processes of that kind which a server's supervisor has started, and which have named themselves by now.
 */
export async function processesOf(supervisor: number, kind: PosternProcess): Promise<readonly number[]> {
  const children = await childrenOf(supervisor);
  const named = await Promise.all(
    children.map(async (pid) => {
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      return line.replaceAll('\0', ' ').trim() === `postern ${kind}` ? [pid] : [];
    }),
  );
  return named.flat();
}
