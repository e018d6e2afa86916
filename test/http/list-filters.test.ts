/** Filters, search and counts of the lists of roles, policies and tenants, against a naive twin. */

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runs } from '../support/properties.ts';
import { type Harness, type Json, outcome, type Reply, rows, startHarness, text } from './harness.ts';

let h: Harness;
beforeAll(async () => {
  h = await startHarness();
  for (const id of ['acme', 'globex'])
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  for (const [id, name] of [
    ['office', 'Größe & Söhne'],
    ['zeta-role', "Miles O'Hara, 100 % of_it"],
    ['globex-2', 'a\\b Office hours'],
  ]) {
    expect(outcome(await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name } }))).toBe('201');
    if (id === 'office') continue;
    expect(outcome(await h.api('POST', `/v1/iam/tenants/${id}/suspend`, { as: h.root.token }))).toBe('200');
  }
  const DESCRIPTIONS = ['', 'Support of Umlaut Größe', '100 % of_it', 'a\\b', 'Office hours', "Chat for Miles O'Hara"];
  for (const tenant of ['acme', 'globex']) {
    const post = async (path: string, body: object): Promise<void> => {
      const reply = await h.api('POST', `/v1/iam/${path}`, { as: h.root.token, tenant, body });
      expect(outcome(reply), reply.text).toBe('201');
    };
    for (const [i, description] of DESCRIPTIONS.entries()) {
      await post('roles', { name: `role-${i}-${tenant}`, description, permissions: [] });
      await post('policies', {
        name: `policy-${i}-${tenant}`,
        description,
        effect: i % 2 === 0 ? 'deny' : 'allow',
        actions: ['rag:*'],
        resources: ['*'],
        mode: i % 4 < 2 ? 'enforce' : 'report',
        enabled: i % 3 !== 0,
        global: tenant === 'globex' && i > 3,
        ...(i % 2 === 0 && i < 4
          ? { applies_to: 'everyone' }
          : { attached_roles: i > 2 ? ['developer', 'analyst'] : ['developer'] }),
      });
    }
  }
});
afterAll(async () => {
  await h.close();
});

type Query = Readonly<Record<string, string | boolean | number>>;

async function get(path: string, query: Query): Promise<Reply> {
  const parameters = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
  return h.api('GET', `${path}?${parameters}`, { as: h.root.token });
}

/** Expects the list to have these rows, page by page in order, and `total` to count them. */
async function expectListed(path: string, query: Query, expected: readonly Json[]): Promise<void> {
  expect(await listed(path, query)).toEqual(expected);
  const { json } = await get(path, { ...query, count: true });
  expect(json['total']).toBe(expected.length);
}

/** All pages, joined. */
async function listed(path: string, query: Query): Promise<readonly Json[]> {
  const found: Json[] = [];
  for (let cursor: Query = {}; ; ) {
    const page = await get(path, { ...query, ...cursor });
    found.push(...rows(page));
    if (page.json['has_more'] !== true) return found;
    cursor = { cursor: text(page.json, 'next_cursor') };
  }
}

const needles = fc.constantFrom(
  'role',
  'POLICY-1',
  'größe',
  '%',
  '_',
  '\\',
  "o'hara",
  'hours',
  'office H',
  'acme',
  'nobody has it',
  'a',
);
const tenants = fc.constantFrom('acme', 'globex', '*');
const found = (row: Json, q: string | undefined): boolean => hasText(row, ['name', 'description'], q);

function hasText(row: Json, members: readonly string[], q: string | undefined): boolean {
  return q === undefined || members.some((name) => String(row[name]).toLowerCase().includes(q.toLowerCase()));
}

describe('roles', () => {
  test('any filters together list exactly the roles that they describe, page by page in order, and count them', async () => {
    const filters = fc.record({ q: needles, builtin: fc.boolean() }, { requiredKeys: [] });
    await fc.assert(
      fc.asyncProperty(filters, tenants, fc.integer({ min: 1, max: 9 }), async (filter, tenant_id, limit) => {
        const all = await listed('/v1/iam/roles', { tenant_id, limit: 200 });
        const expected = all.filter(
          (row) => found(row, filter.q) && (filter.builtin === undefined || row['builtin'] === filter.builtin),
        );
        await expectListed('/v1/iam/roles', { ...filter, tenant_id, limit }, expected);
      }),
      { numRuns: runs(60) },
    );
  });

  test('a cursor belongs to its filters', async () => {
    const page = await get('/v1/iam/roles', { q: 'role', tenant_id: 'acme', limit: 1 });
    const cursor = text(page.json, 'next_cursor');
    expect(outcome(await get('/v1/iam/roles', { q: 'role-', tenant_id: 'acme', cursor }))).toBe(
      '400 invalid_parameter',
    );
  });
});

describe('policies', () => {
  test('any filters together list exactly the policies that they describe, page by page in order, and count them', async () => {
    const filters = fc.record(
      {
        q: needles,
        effect: fc.constantFrom('allow', 'deny'),
        mode: fc.constantFrom('enforce', 'report'),
        enabled: fc.boolean(),
        applies_to: fc.constantFrom('everyone', 'roles'),
        role: fc.constantFrom('developer', 'analyst', 'nobody'),
        global: fc.boolean(),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(
        filters,
        tenants,
        fc.integer({ min: 1, max: 5 }),
        async ({ q, role, ...members }, tenant_id, limit) => {
          const all = await listed('/v1/iam/policies', { tenant_id, limit: 200 });
          const expected = all
            .filter((row) => found(row, q))
            .filter(
              (row) =>
                role === undefined || (Array.isArray(row['attached_roles']) && row['attached_roles'].includes(role)),
            )
            .filter((row) => Object.entries(members).every(([name, value]) => row[name] === value));
          const filter = { ...(q === undefined ? {} : { q }), ...(role === undefined ? {} : { role }), ...members };
          await expectListed('/v1/iam/policies', { ...filter, tenant_id, limit }, expected);
        },
      ),
      { numRuns: runs(80) },
    );
  });

  test.each(['enabled=yes', 'effect=maybe', 'mode=off', 'applies_to=nobody', 'global=1', 'q=', `q=${'a'.repeat(201)}`])(
    '%s is malformed',
    async (query) => {
      expect(outcome(await h.api('GET', `/v1/iam/policies?${query}`, { as: h.root.token }))).toBe(
        '400 invalid_parameter',
      );
    },
  );
});

describe('tenants', () => {
  const PATH = '/v1/iam/tenants';

  test('any filters together list exactly the tenants that they describe, page by page in order, and count them', async () => {
    const filters = fc.record({ q: needles, status: fc.constantFrom('active', 'suspended') }, { requiredKeys: [] });
    await fc.assert(
      fc.asyncProperty(filters, fc.integer({ min: 1, max: 5 }), async (filter, limit) => {
        const all = await listed(PATH, { limit: 200 });
        const expected = all
          .filter((row) => hasText(row, ['id', 'name'], filter.q))
          .filter((row) => filter.status === undefined || row['status'] === filter.status);
        await expectListed(PATH, { ...filter, limit }, expected);
      }),
      { numRuns: runs(60) },
    );
  });

  test('a cursor belongs to its filters', async () => {
    const page = await get(PATH, { status: 'suspended', limit: 1 });
    const cursor = text(page.json, 'next_cursor');
    for (const query of [{ cursor }, { status: 'active', cursor }, { status: 'suspended', q: 'o', cursor }]) {
      expect(outcome(await get(PATH, query))).toBe('400 invalid_parameter');
    }
  });

  test.each(['status=deleted', 'status=', 'q=', `q=${'a'.repeat(201)}`])('%s is malformed', async (query) => {
    expect(outcome(await h.api('GET', `${PATH}?${query}`, { as: h.root.token }))).toBe('400 invalid_parameter');
  });
});
