/** Small files that several starting processes may want to make at once, and none may read half-written. */

import { randomBytes } from 'node:crypto';
import { chmod, link, readFile, rename, unlink, writeFile } from 'node:fs/promises';
import { systemCode } from './error.ts';

/** Makes the file unless it is there, and gives what it then holds: the same for everyone who asks. */
export async function readOrMake(path: string, make: () => string): Promise<string> {
  const present = await readIfThere(path);
  if (present !== undefined) {
    return present;
  }
  const draft = await writeDraft(path, make());
  try {
    await link(draft, path);
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') {
      throw error;
    }
  } finally {
    await unlink(draft);
  }
  return readFile(path, 'utf8');
}

/** Writes the file whole, for its owner alone. */
export async function replaceFile(path: string, text: string): Promise<void> {
  await rename(await writeDraft(path, text), path);
}

export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') {
      return undefined;
    }
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
