/** docs/threat-model.md and SECURITY.md name what holds their promises: each name leads somewhere. */

import { readFileSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const MODEL = readFileSync(join(ROOT, 'docs/threat-model.md'), 'utf8');

/** The anchor that GitHub makes of a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .trim()
    .replaceAll(' ', '-');
}

function anchorsIn(text: string): ReadonlySet<string> {
  return new Set([...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => anchorOf(heading)));
}

it('each promise of the threat model is held by a test or by a section, and none is numbered twice', () => {
  const rows = MODEL.split('\n').flatMap((line) => /^\| (\d+) \|.*\| ([^|]+) \|$/.exec(line)?.slice(1) ?? []);
  const numbers = rows.filter((_cell, i) => i % 2 === 0).map(Number);
  expect(numbers.length).toBeGreaterThan(25);
  expect(numbers).toEqual(numbers.map((_number, i) => i + 1));
  for (const holder of rows.filter((_cell, i) => i % 2 === 1)) expect(holder).toMatch(/`test\/\S+\.test\.ts`|\]\(security\.md#/);
});

it('each test that the threat model names exists', async () => {
  const names = [...MODEL.matchAll(/`(test\/[^`]+\.test\.ts)`/g)].map(([, name = '']) => name);
  expect(names.length).toBeGreaterThan(25);
  for (const name of names) await expect(access(join(ROOT, name)), name).resolves.toBeUndefined();
});

it.each([
  { what: 'each link of docs/threat-model.md', folder: 'docs', file: 'threat-model.md', which: /./ },
  { what: 'each link of SECURITY.md', folder: '.', file: 'SECURITY.md', which: /./ },
  { what: 'each link of docs/operations.md', folder: 'docs', file: 'operations.md', which: /./ },
])('$what leads to a file and a heading that exist', ({ folder, file, which }) => {
  const text = readFileSync(join(ROOT, folder, file), 'utf8');
  for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
    if (!which.test(target) || /^https?:/.test(target)) continue;
    const [path = '', anchor] = target.split('#');
    const linked = path === '' ? text : readFileSync(join(ROOT, folder, path), 'utf8');
    if (anchor !== undefined) expect([...anchorsIn(linked)], target).toContain(anchor);
  }
});
