/** `postern prices`: an import shows what would change, and changes it only with `--apply`. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { runCommand } from '../support/command.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { SECRET_KEY } from './support/client.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let folder: string;
let database: FreshDatabase;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-prices-'));
  database = await freshDatabase();
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  await database?.close();
});

const prices = (...args: readonly string[]) =>
  runCommand(['prices', ...args], { POSTERN_DATABASE_URL: database.url, POSTERN_SECRET_KEY: SECRET_KEY });
const lines = (text: string): readonly string[] => text.trimEnd().split('\n').slice(1);

it('an import of the table shows the difference, and applies it only with --apply', async () => {
  const selected = ['import', '--provider', 'anthropic', '--models', 'claude-sonnet-4-5'];
  const shown = await prices(...selected);
  expect([shown.code, lines(shown.stdout)]).toEqual([
    0,
    [
      expect.stringMatching(/^\+ claude-sonnet-4-5\* {2}input \d+\.\d\d, output \d+\.\d\d, cached /),
      '1 changes, 0 prices as before, in USD for 1,000,000 tokens.',
      'Nothing was changed. Add --apply to set these prices.',
    ],
  ]);
  expect((await prices('list')).stdout).toBe('Version 0, no list was set yet. USD for 1,000,000 tokens.\n');
  expect((await prices(...selected, '--apply')).stdout).toContain('Version 1 is in force.');
});

it('an import of a file adds prices, or replaces the list', async () => {
  const file = join(folder, 'prices.yaml');
  await writeFile(file, 'prices:\n  - { models: "own-*", input: "0.2", output: "0.6", per: 1000000 }\n');
  expect(lines((await prices('import', file)).stdout)[0]).toMatch(/^1 changes/);
  expect((await prices('import', file, '--replace', '--apply')).stdout).toMatch(
    /^- claude-sonnet-4-5\* .*\n\+ own-\* {2}input 0\.20, output 0\.60\n2 changes, 0 prices as before/,
  );
  expect(lines((await prices('list')).stdout)).toEqual(['own-*  input 0.20, output 0.60']);
});

it.each([
  ['prices:\n  - { models: "x", input: 0.2, output: "1", per: 1 }', /\/prices\/0\/input/],
  ['prices: [', /is not valid JSON or YAML/],
  ['prices:\n  - { models: "x", input: "0.0000000000000001", output: "1", per: 1 }', /\/prices\/0\/input/],
])('a file such as %j is refused in one sentence with the place of its error', async (text, says) => {
  const file = join(folder, 'wrong.yaml');
  await writeFile(file, text);
  const { code, stderr } = await prices('import', file, '--apply');
  expect(code).toBe(1);
  expect(stderr).toMatch(says);
  expect(stderr.trimEnd()).not.toContain('\n');
});

it('a file that does not exist is wrong usage, as for every command', async () => {
  const { code, stderr } = await prices('import', join(folder, 'absent.yaml'));
  expect([code, stderr]).toEqual([2, expect.stringContaining('absent.yaml: the file does not exist.')]);
});
