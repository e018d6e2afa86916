/** Reads the tree of processes below one, and the memory of all of them, from /proc. */

import { readFileSync } from 'node:fs';
import { memory, processTree } from '../stack.ts';

const SAMPLE_MS = 100;

/** Returns the process and all its descendants that live now, the process first. */
export function treeOf(pid: number): readonly number[] {
  return processTree(pid).filter(isAlive);
}

export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Returns the process with this line in its environment, such as `POSTERN_PROCESS=api`, below another. */
export function findByEnvironment(pid: number, line: string): number | undefined {
  return treeOf(pid).find((each) => {
    try {
      return readFileSync(`/proc/${each}/environ`, 'utf8').split('\0').includes(line);
    } catch {
      return false;
    }
  });
}

/** Resident memory of a process and all its descendants together, MB. */
export function residentMb(pid: number): number {
  return memory(pid).now;
}

export interface MemoryWatch {
  /** The most seen so far of each, MB, by the names given. */
  readonly peakMb: Readonly<Record<string, number>>;
  stop(): void;
}

/** Samples the resident memory of several trees of processes every 100 ms. */
export function watchMemory(roots: Readonly<Record<string, number>>): MemoryWatch {
  const peakMb: Record<string, number> = {};
  const sample = (): void => {
    for (const [name, pid] of Object.entries(roots)) peakMb[name] = Math.max(peakMb[name] ?? 0, residentMb(pid));
  };
  sample();
  const timer = setInterval(sample, SAMPLE_MS);
  return { peakMb, stop: () => clearInterval(timer) };
}
