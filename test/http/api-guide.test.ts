/** docs/api.md agrees with the endpoints of the server. */

import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { describedEndpoints } from '../../src/iam/api-routes.ts';

const guide = await readFile(new URL('../../docs/api.md', import.meta.url), 'utf8');
const rows = guide
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) => line.split('|').map((cell) => cell.trim()));

test('the guide has a line for every endpoint, with its permission, and for no other', () => {
  const routes = describedEndpoints();
  const listed = rows.flatMap(([, request = '', permission = '']) => {
    const [endpoint] = /(?<=^`)(?:GET|POST|PUT|PATCH|DELETE) \/[^`\s]*/.exec(request) ?? [];
    return endpoint === undefined ? [] : [{ endpoint, permission }];
  });
  const served = routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`);
  expect(new Set(listed.map(({ endpoint }) => endpoint))).toEqual(new Set(served));
  expect(listed).toHaveLength(served.length);
  for (const { method, path, needs } of routes) {
    if (needs === undefined) continue;
    const line = listed.find(({ endpoint }) => endpoint === `${method} ${path.replace(/:(\w+)/g, '{$1}')}`);
    expect(line?.permission).toBe(needs);
  }
});
