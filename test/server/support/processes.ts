/** The processes of the machine, from /proc. */

import { readFile } from 'node:fs/promises';

export async function isRunning(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  if (stat === undefined) return false;
  // The name before the state is in parentheses and may hold anything. `Z`: the process has ended, and its parent has not
  // read its status.
  return stat.charAt(stat.lastIndexOf(')') + 2) !== 'Z';
}

/** Ids of the processes that the main thread of a process has started and that run. */
export async function childrenOf(parent: number): Promise<readonly number[]> {
  const children = await readFile(`/proc/${parent}/task/${parent}/children`, 'utf8').catch(() => '');
  const found = await Promise.all(
    [...children.matchAll(/\d+/g)].map(async ([pid]) => ((await isRunning(Number(pid))) ? [Number(pid)] : [])),
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
