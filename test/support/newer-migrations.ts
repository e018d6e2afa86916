/** The migrations of a later version: those of this version and more. */

import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MIGRATIONS = fileURLToPath(new URL('../../src/store/migrations', import.meta.url));

export interface NewerMigrations {
  readonly folder: string;
  remove(): Promise<void>;
}

/** @param more the SQL by file name */
export async function newerMigrations(more: Readonly<Record<string, string>>): Promise<NewerMigrations> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-migrations-'));
  await cp(MIGRATIONS, folder, { recursive: true });
  for (const [name, text] of Object.entries(more)) await writeFile(join(folder, name), text);
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}
