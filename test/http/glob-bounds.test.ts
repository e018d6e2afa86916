/** The bounds of names, globs and lists, as each endpoint that takes them enforces them. */

import { expect, test } from 'vitest';
import { type Harness, it, type Person } from './harness.ts';

let h: Harness;
let boss: Person;
it.beforeAll(async ({ harness }) => {
  h = harness;
  boss = await h.person('default', ['admin']);
});

const list = (count: number) => Array.from({ length: count }, (_, i) => `c${i}*`);
const ENDPOINTS = [
  ['a key', '/v1/iam/api-keys', { description: 'k', scopes: ['rag:query'], expires_in_days: 1 }],
  ['a role', '/v1/iam/roles', { name: 'bounded', permissions: ['rag:query'] }],
] as const;

test.each(ENDPOINTS)('%s takes 200 names of 256 characters and 8 stars, and no more', async (_, path, body) => {
  const post = (constraints: unknown) =>
    h.api('POST', path, { as: boss.token, body: { ...body, resource_constraints: constraints } });
  const beyond: readonly (readonly [unknown, string])[] = [
    [{ collections: list(201) }, '/resource_constraints/collections'],
    [{ collections: ['a', 'x'.repeat(257)] }, '/resource_constraints/collections/1'],
    [{ models: ['*a'.repeat(9)] }, '/resource_constraints/models/0'],
  ];
  for (const [constraints, where] of beyond) {
    expect((await post(constraints)).json).toMatchObject({ code: 'invalid_field', errors: [{ path: where }] });
  }
  const within = { collections: [...list(198), 'x'.repeat(256), '*a'.repeat(8)] };
  expect((await post(within)).status).toBe(201);
});

test('the constraints of a key take at most 64 KiB, when it is made and when it is changed', async () => {
  const large = { models: new Array(200).fill('x'.repeat(250)), agents: new Array(200).fill('y'.repeat(250)) };
  const refused = {
    code: 'invalid_field',
    errors: [{ path: '/resource_constraints', message: expect.stringContaining('64 KiB') }],
  };
  const body = { description: 'k', scopes: ['rag:query'], expires_in_days: 1 };
  const post = (constraints: unknown) =>
    h.api('POST', '/v1/iam/api-keys', { as: boss.token, body: { ...body, resource_constraints: constraints } });
  expect((await post(large)).json).toMatchObject(refused);
  const made = await post({ models: large.models });
  expect(made.status).toBe(201);
  const change = { as: boss.token, body: { resource_constraints: large } };
  expect((await h.api('PUT', `/v1/iam/api-keys/${String(made.json['id'])}`, change)).json).toMatchObject(refused);
});

test('a policy takes globs of 256 characters and 8 stars, and no more', async () => {
  const post = (name: string, glob: string) =>
    h.api('POST', '/v1/iam/policies', {
      as: boss.token,
      body: { name, effect: 'deny', actions: ['rag:query'], resources: ['models/a', `collections/${glob}`] },
    });
  for (const glob of ['x'.repeat(257), '*a'.repeat(9)]) {
    expect((await post('refused', glob)).json).toMatchObject({
      code: 'invalid_field',
      errors: [{ path: '/resources/1' }],
    });
  }
  expect((await post('long', 'x'.repeat(256))).status).toBe(201);
  expect((await post('starred', '*a'.repeat(8))).status).toBe(201);
});
