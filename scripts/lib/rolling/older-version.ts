/**
 * A server of an earlier commit, whose schema is older than this program's: taken out of the repository's history into
 * the user's cache.
 */

import { execFile } from 'node:child_process';
import { rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cached, type ToolSearch } from '../tools/cache.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');
const MIGRATIONS = 'src/store/migrations';
/** What a server needs of the repository. */
const NEEDED = ['src', 'package.json'];
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

export type OlderVersion =
  /**
   * `root` is a folder laid out like the repository. `lacks` names the migrations of this program that the commit does
   * not have.
   */
  | { readonly kind: 'found'; readonly commit: string; readonly root: string; readonly lacks: readonly string[] }
  /** One sentence: why there is none here. */
  | { readonly kind: 'absent'; readonly reason: string };

/**
 * Finds the newest commit of the history whose migrations are the first ones of this program's, byte for byte, and not
 * all of them. Another commit is no older version: its database is none that this program could migrate.
 */
export async function findOlderVersion(): Promise<OlderVersion> {
  const history = await commitsThatMigrate().catch(() => undefined);
  if (history === undefined) return { kind: 'absent', reason: 'this is no clone of the repository' };
  const now = await migrationsOf('HEAD');
  for (const commit of history) {
    // A shallow clone ends somewhere, and a commit at its end has no parent.
    const parent = await git('rev-parse', '--verify', '--quiet', `${commit}^`).catch(() => undefined);
    if (parent === undefined) continue;
    const then = await migrationsOf(parent.trim());
    if (isOlder(then, now)) {
      const folder = await extracted(parent.trim());
      if (folder.kind === 'missing') return { kind: 'absent', reason: folder.message };
      return {
        kind: 'found',
        commit: parent.trim(),
        root: folder.path,
        lacks: [...now.keys()].filter((name) => !then.has(name)),
      };
    }
  }
  return {
    kind: 'absent',
    reason: 'the history here has no commit with an older schema (a shallow clone: git fetch --unshallow)',
  };
}

/** Newest first. */
async function commitsThatMigrate(): Promise<readonly string[]> {
  return (await git('log', '--format=%H', '--', MIGRATIONS)).split('\n').filter((line) => line !== '');
}

/** The content's hash by file name. */
async function migrationsOf(commit: string): Promise<ReadonlyMap<string, string>> {
  const listing = await git('ls-tree', commit, `${MIGRATIONS}/`);
  return new Map(
    listing.split('\n').flatMap((line) => {
      const match = /^\d+ blob ([0-9a-f]+)\t.*\/([^/]+\.sql)$/.exec(line);
      return match === null ? [] : [[match[2] ?? '', match[1] ?? ''] as const];
    }),
  );
}

function isOlder(then: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>): boolean {
  return then.size > 0 && then.size < now.size && [...then].every(([name, hash]) => now.get(name) === hash);
}

/** The packages are those of this working copy, which may be another one than the last time. */
async function extracted(commit: string): Promise<ToolSearch> {
  const found = await cached(`version-${commit}`, 'the older version', 'git and tar make it', async (folder) => {
    const archive = join(folder, 'archive.tar');
    await git('archive', '--format=tar', `--output=${archive}`, commit, ...NEEDED);
    await run('tar', ['-xf', archive, '-C', folder]);
    await rm(archive);
  });
  if (found.kind === 'missing') return found;
  const link = join(found.path, 'node_modules');
  await rm(link, { force: true });
  await symlink(join(ROOT, 'node_modules'), link);
  return found;
}

async function git(...args: readonly string[]): Promise<string> {
  return (await run('git', [...args], { cwd: ROOT, maxBuffer: MAX_OUTPUT_BYTES })).stdout;
}
