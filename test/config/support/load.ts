/** Loads a configuration given as text, from a temporary file. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Config, Secrets } from '../../../src/config/config.ts';
import { formatConfigError } from '../../../src/config/config-error.ts';
import { configFile } from '../../../src/config/file.ts';
import { type LoadResult, loadConfig } from '../../../src/config/load.ts';

export type Env = Readonly<Record<string, string>>;

/** Runs `use` with a fresh directory. */
export function withDirectory<T>(use: (directory: string) => T): T {
  const directory = mkdtempSync(join(tmpdir(), 'postern-config-'));
  try {
    return use(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

export function load(yaml: string, env: Env = {}): LoadResult {
  return withDirectory((directory) => {
    const file = join(directory, 'postern.yaml');
    writeFileSync(file, yaml);
    return loadConfig({ file: configFile(file), env });
  });
}

export function loaded(result: LoadResult): { readonly config: Config; readonly secrets: Secrets } {
  return result.kind === 'config' ? result : expect.fail(problemsOf(result).join('\n'));
}

/** Returns the messages of the problems, without the directory. */
export function problemsOf(result: LoadResult): readonly string[] {
  const problems = result.kind === 'invalid' ? result.errors : [];
  return problems.map((problem) => formatConfigError(problem).replace(/^.*\/postern\.yaml/, 'postern.yaml'));
}
