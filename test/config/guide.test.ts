/** docs/ldap.md says which settings a directory has. */

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ALL_KEYS } from '../../src/config/keys.ts';

const guide = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
test('the guide to directories names every setting of theirs', () => {
  const text = guide('ldap.md');
  for (const { path } of ALL_KEYS) {
    const member = /^ldap\.(.+)/.exec(path)?.[1];
    if (member !== undefined) expect([path, new RegExp(`[\`\\s.-]${member}[\`:]`).test(text)]).toEqual([path, true]);
  }
});
