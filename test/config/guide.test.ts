/** docs/operations.md and docs/ldap.md say which settings there are. */

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ALL_KEYS } from '../../src/config/keys.ts';

const guide = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
const named = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);

/** Settings of the table in docs/operations.md with what it says of their defaults; `.idle-ttl` takes what the first name of its row begins with. */
const listed = guide('operations.md')
  .split('## Configuration\n')[1]
  ?.split('\n## ')[0]
  ?.split('\n')
  .filter((line) => line.startsWith('| `'))
  .flatMap((line) => {
    const [, names = '', defaults = ''] = line.split('|').map((cell) => cell.trim());
    const [first = '', ...others] = named(names);
    const paths = [first, ...others.map((name) => (name.startsWith('.') ? first.replace(/\.[^.]+$/, name) : name))];
    return paths.map((path, at) => ({ path, told: defaults.split(', ')[at]?.replaceAll('`', '') ?? '' }));
  });

test('the guide lists every setting, and no other', () => {
  const known = ALL_KEYS.map(({ path }) => path).filter((path) => !path.startsWith('ldap'));
  const paths = listed?.map(({ path }) => path);
  expect(new Set(paths)).toEqual(new Set([...known, 'ldap', 'ldap.*']));
  expect(paths).toHaveLength(known.length + 2);
});

test('the guide tells the default of every setting that has one', () => {
  const none = new Set(['none', '–', 'that of Host']);
  for (const { path, defaultText = '[]' } of ALL_KEYS.filter((key) => key.defaultText !== undefined)) {
    const told = listed?.find((row) => row.path === path)?.told;
    if (told === undefined) expect(path).toMatch(/^ldap\./);
    else expect([path, none.has(told) ? '[]' : told]).toEqual([path, defaultText]);
  }
});

test('the guide to directories names every setting of theirs', () => {
  const text = guide('ldap.md');
  for (const { path } of ALL_KEYS) {
    const member = /^ldap\.(.+)/.exec(path)?.[1];
    if (member !== undefined) expect([path, new RegExp(`[\`\\s.-]${member}[\`:]`).test(text)]).toEqual([path, true]);
  }
});
