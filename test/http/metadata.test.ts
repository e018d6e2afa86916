/** Metadata of users and tenants: every answer shows the written value, and no larger value is accepted. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyCharacter, runs } from '../support/properties.ts';
import { type Harness, it, outcome, rows } from './harness.ts';
import { makeOne, newBody } from './resources.ts';

let h: Harness;
it.beforeAll(({ harness }) => {
  h = harness;
});

const as = (method: string, path: string, body?: object) =>
  h.api(method, path, { as: h.root.token, ...(body === undefined ? {} : { body }) });

const text = (minLength: number, maxLength: number) =>
  fc
    .string({ unit: anyCharacter, minLength, maxLength })
    .filter((value) => value.isWellFormed() && !value.includes('\0') && [...value].length >= minLength);
const metadata = fc
  .uniqueArray(
    fc.tuple(fc.oneof(text(1, 64), fc.constantFrom('__proto__', 'constructor', 'token', '0')), text(0, 512)),
    {
      selector: ([key]) => key,
      maxLength: 16,
    },
  )
  .map((pairs) => Object.fromEntries(pairs));

describe.each(['users', 'tenants'] as const)('metadata of %s', (kind) => {
  const action = kind === 'users' ? 'user' : 'tenant';
  const list = async (id: string) => {
    const path = kind === 'users' ? '/v1/iam/users?limit=200' : '/v1/iam/tenants?limit=200';
    return rows(await as('GET', path)).find((row) => row['id'] === id);
  };

  test('is empty by default, and stays as it is while a change does not name it', async () => {
    const { path, made } = await makeOne(h, kind);
    expect(made.json['metadata']).toEqual({});
    await as('PUT', path, { metadata: { 'cost-center': '4711' } });
    expect((await as('PUT', path, { name: 'Renamed' })).json['metadata']).toEqual({ 'cost-center': '4711' });
  });

  test('is shown in the answers that make, get, list and change it, and in the audit log', async () => {
    const first = { 'cost-center': '4711', owner: 'Ada' };
    const made = await as('POST', `/v1/iam/${kind}`, { ...newBody(kind), metadata: first });
    expect([outcome(made), made.json['metadata']]).toEqual(['201', first]);
    const id = String(made.json['id']);
    const path = `/v1/iam/${kind}/${id}`;
    expect((await as('GET', path)).json['metadata']).toEqual(first);
    expect((await list(id))?.['metadata']).toEqual(first);
    const changed = await as('PUT', path, { metadata: { owner: 'Ben' } });
    expect(changed.json['metadata']).toEqual({ owner: 'Ben' });
    const row = (await h.audit(`${action}.update`)).findLast((one) => one['target_id'] === id);
    expect(row).toMatchObject({ before: { metadata: first }, after: { metadata: { owner: 'Ben' } } });
    expect((await as('PUT', path, { metadata: null })).json['metadata']).toEqual({});
  });

  test('of any pairs within the bounds is kept as it was sent', async () => {
    const { path } = await makeOne(h, kind);
    await fc.assert(
      fc.asyncProperty(metadata, async (pairs) => {
        expect(Object.entries((await as('PUT', path, { metadata: pairs })).json['metadata'] ?? {}).toSorted()).toEqual(
          Object.entries(pairs).toSorted(),
        );
      }),
      { numRuns: runs(40) },
    );
  });

  const sixteen = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`key-${i}`, 'v']));
  test.each([
    ['16 pairs', sixteen, '200'],
    ['17 pairs', { ...sixteen, more: 'v' }, '422 invalid_field'],
    ['a key of 64 characters', { ['k'.repeat(64)]: 'v' }, '200'],
    ['a key of 65 characters', { ['k'.repeat(65)]: 'v' }, '422 invalid_field'],
    ['an empty key', { '': 'v' }, '422 invalid_field'],
    ['a value of 512 characters', { k: '\u{1f600}'.repeat(512) }, '200'],
    ['a value of 513 characters', { k: 'v'.repeat(513) }, '422 invalid_field'],
    ['a number', { k: 1 }, '422 invalid_field'],
    ['a null value', { k: null }, '422 invalid_field'],
    ['a NUL', { k: 'a\0b' }, '422 invalid_field'],
    ['a NUL in a key', { 'a\0b': 'v' }, '422 invalid_field'],
    ['a list', ['k'], '422 invalid_field'],
  ])('with %s is answered by %j', async (_name, pairs, expected) => {
    const { path } = await makeOne(h, kind);
    const reply = await as('PUT', path, { metadata: pairs });
    expect(outcome(reply)).toBe(expected);
    if (expected !== '200') expect(JSON.stringify(reply.json['errors'])).toContain('/metadata');
  });
});

test('the audit log masks metadata under names of secrets', async () => {
  const { path, id } = await makeOne(h, 'users');
  await as('PUT', path, { metadata: { api_token: 'psk_by_mistake' } });
  const row = (await h.audit('user.update')).findLast((one) => one['target_id'] === id);
  expect(row).toMatchObject({ after: { metadata: { api_token: '[masked]' } } });
});
