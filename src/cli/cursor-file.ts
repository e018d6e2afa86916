/** A small file that says how far something was delivered. It is replaced whole, so that no crash leaves half of it. */

import { open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type AuditCursor, formatCursor, parseCursor } from '../iam/audit/follow.ts';

/** Undefined if there is no file. Rejects with a sentence if it is none of ours. */
export async function readCursorFile(path: string): Promise<AuditCursor | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  const cursor = parseCursor(text.trim());
  if (cursor === undefined) {
    throw new Error(`${path} holds no cursor of postern audit follow. Name another file, or remove it to begin again.`);
  }
  return cursor;
}

/** Resolves when the cursor is on the disk. */
export async function writeCursorFile(path: string, cursor: AuditCursor): Promise<void> {
  const draft = `${path}.${process.pid}.tmp`;
  const file = await open(draft, 'w', 0o600);
  try {
    await file.writeFile(`${formatCursor(cursor)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, path);
  // The name, too, must outlast a power failure. Not every file system lets a directory be synced.
  const directory = await open(dirname(path), 'r').catch(() => undefined);
  await directory?.sync().catch(() => undefined);
  await directory?.close();
}
