/** Small files that several starting processes may create at once. No process reads a partial file. */

import { randomBytes } from 'node:crypto';
import { chmod, link, mkdir, readFile, rename, stat, unlink, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { systemCode } from '../../domain/errors.ts';

/**
 * Creates a folder and its missing parents with the given mode. Node's `mkdir` with `recursive`
 * never returns in file systems such as `/proc`, which report that an existing parent does not exist.
 */
export async function makeFolders(path: string, mode: number): Promise<void> {
  const absolute = resolve(path);
  const found = await stat(absolute).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (found?.isDirectory() === true) return;
  if (found === undefined && dirname(absolute) !== absolute) await makeFolders(dirname(absolute), mode);
  try {
    await mkdir(absolute, { mode });
  } catch (error) {
    // Another start created it.
    if (systemCode(error) !== 'EEXIST' || !(await stat(absolute)).isDirectory()) throw error;
  }
}

/** Creates the file if it is missing, and returns its content: the same for all processes. */
export async function readOrCreate(path: string, make: () => string): Promise<string> {
  const present = await readIfPresent(path);
  if (present !== undefined) return present;
  const draft = await writeDraft(path, make());
  try {
    await link(draft, path);
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error;
  } finally {
    await unlink(draft);
  }
  return readFile(path, 'utf8');
}

/** Replaces the file atomically. Only its owner can read it. */
export async function replaceFile(path: string, text: string): Promise<void> {
  await rename(await writeDraft(path, text), path);
}

export async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function writeDraft(path: string, text: string): Promise<string> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  await writeFile(draft, text, { mode: 0o600, flag: 'wx' });
  // The mode of a new file is subject to the umask.
  await chmod(draft, 0o600);
  return draft;
}
