/**
 * A copy of the project's files in which a test makes a change as the table "Where does a … go?" of
 * docs/ARCHITECTURE.md says.
 */

import { spawnSync } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

export interface ChangedCopy {
  /** Returns the absolute path of a file of the copy. */
  file(path: string): string;
  /** Adds a file. */
  add(path: string, text: string): Promise<void>;
  /** Replaces each text of the first column, which the file must have, by the text beside it. */
  edit(path: string, ...replacements: readonly (readonly [string, string])[]): Promise<void>;
  /** Returns the files that were added or edited, in that order. */
  changed(): readonly string[];
  /** Runs a program of the copy, which must print nothing on standard error, and returns its output. */
  run(args: readonly string[], env?: Readonly<Record<string, string>>): string;
  /** Returns the errors of the compiler. */
  compile(args: readonly string[]): string;
  remove(): Promise<void>;
}

/** @param paths files and folders of the project that the copy has besides `src` */
export async function copyProject(...paths: readonly string[]): Promise<ChangedCopy> {
  const copy = await mkdtemp(join(tmpdir(), 'postern-changed-'));
  const file = (path: string): string => join(copy, path);
  for (const path of ['src', 'package.json', ...paths]) {
    await cp(join(ROOT, path), file(path), { recursive: true });
  }
  await symlink(join(ROOT, 'node_modules'), file('node_modules'));
  const changed = new Set<string>();
  return {
    file,
    async add(path, text) {
      changed.add(path);
      await writeFile(file(path), text, { flag: 'wx' });
    },
    async edit(path, ...replacements) {
      changed.add(path);
      let text = await readFile(file(path), 'utf8');
      for (const [before, after] of replacements) {
        expect(text, path).toContain(before);
        text = text.replace(before, () => after);
      }
      await writeFile(file(path), text);
    },
    changed: () => [...changed],
    run(args, env = {}) {
      const ran = spawnSync(process.execPath, args, { cwd: copy, encoding: 'utf8', env: { ...process.env, ...env } });
      expect(ran.stderr).toBe('');
      return ran.stdout;
    },
    compile: (args) =>
      // Each of its threads reads the types of the libraries again, and other tests use the processors.
      spawnSync(
        process.execPath,
        [join(ROOT, 'node_modules/typescript/bin/tsc'), '--noEmit', '--singleThreaded', ...args],
        { cwd: copy, encoding: 'utf8' },
      ).stdout,
    remove: () => rm(copy, { recursive: true, force: true }),
  };
}
