/** The threat model names what holds its promises, and every page links to what exists. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { dirname, join } from 'node:path';
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
  for (const holder of rows.filter((_cell, i) => i % 2 === 1))
    expect(holder).toMatch(/`test\/\S+\.test\.ts`|\]\(security\.md#/);
});

it('each test that the threat model names exists', async () => {
  const names = [...MODEL.matchAll(/`(test\/[^`]+\.test\.ts)`/g)].map(([, name = '']) => name);
  expect(names.length).toBeGreaterThan(25);
  for (const name of names) await expect(access(join(ROOT, name)), name).resolves.toBeUndefined();
});

/** Every page that users read. */
const PAGES = [
  'README.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'client/README.md',
  'helm/postern/README.md',
  ...['docs', 'docs/decisions'].flatMap((folder) =>
    readdirSync(join(ROOT, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `${folder}/${name}`),
  ),
];

it.each(PAGES)('each link of %s leads to a file and a heading that exist', (page) => {
  const text = readFileSync(join(ROOT, page), 'utf8').replaceAll(/^```[\s\S]*?^```$/gm, '');
  for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^(?:https?|mailto):/.test(target)) continue;
    const [path = '', anchor] = target.split('#');
    const linked = path === '' ? join(ROOT, page) : join(ROOT, dirname(page), path);
    expect(existsSync(linked), target).toBe(true);
    if (anchor !== undefined) expect([...anchorsIn(readFileSync(linked, 'utf8'))], target).toContain(anchor);
  }
});
