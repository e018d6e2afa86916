/** Pages of lists are bounded in bytes as well as in rows. */

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { listAudit } from '../../src/iam/audit/queries.ts';
import { DEFAULT_LIMIT, MAX_LIMIT, MAX_PAGE_BYTES } from '../../src/iam/list/list.ts';
import { write } from '../audit/support.ts';
import { tenantId } from '../store/seed.ts';
import { runs } from '../support/properties.ts';
import { type Harness, type Json, outcome, type Reply, rows, startHarness } from './harness.ts';

// Thousands of rows, on machines that are busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let h: Harness;
beforeAll(async () => {
  h = await startHarness();
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'acme', name: 'Acme' } });
});
afterAll(async () => {
  await h?.close();
});

const asRoot = (method: string, path: string, body?: object, tenant = 'acme') =>
  h.api(method, path, {
    as: h.root.token,
    ...(tenant === '' ? {} : { tenant }),
    ...(body === undefined ? {} : { body }),
  });

const bytesOf = (data: unknown): number => Buffer.byteLength(JSON.stringify(data));

/** Returns all pages of a list, up to the first one without another page. */
async function pagesOf(path: string, query = '', tenant = 'acme', post?: object): Promise<readonly Reply[]> {
  const pages: Reply[] = [];
  for (let cursor = ''; ; ) {
    const reply = await asRoot(
      post === undefined ? 'GET' : 'POST',
      `${path}?limit=${MAX_LIMIT}${query}${cursor}`,
      post,
      tenant,
    );
    expect(outcome(reply)).toBe('200');
    pages.push(reply);
    if (reply.json['has_more'] !== true) return pages;
    cursor = `&cursor=${String(reply.json['next_cursor'])}`;
  }
}

function expectBounded(pages: readonly Reply[]): readonly Json[] {
  for (const page of pages) {
    const data = rows(page);
    expect(data.length === 1 || bytesOf(data) <= MAX_PAGE_BYTES + 2).toBe(true);
  }
  return pages.flatMap(rows);
}

const byName = (left: string, right: string): number => (left < right ? -1 : Number(left > right));
const long = (length: number, n: number) => `${n}-`.padEnd(length, 'x');

describe('a page shows at most 1 MiB of rows, and one row at least:', () => {
  test('the audit log', async () => {
    const sizes = [300_000, 300_000, 300_000, 300_000, 1_500_000, 10, 10, 700_000, 400_000, 10];
    await write(
      h.db,
      ...sizes.map((size, n) => ({
        action: 'made.large',
        before: { n, text: long(size / 2, n) },
        after: { text: long(size / 2, n) },
      })),
    );
    const pages = await pagesOf('/v1/iam/audit', '&action=made.large');
    const shown = expectBounded(pages);
    expect(shown.map((row) => Object(row['before']).n)).toEqual(sizes.map((_, i) => sizes.length - 1 - i));
    expect(pages.map((page) => rows(page).length)).toEqual([2, 3, 1, 3, 1]);
  });

  test('the audit log with rows from before their size was kept', async () => {
    await write(
      h.db,
      ...Array.from({ length: 4 }, (_, n) => ({ action: 'made.early', after: { n, text: long(500_000, n) } })),
    );
    await h.db.knex.raw(`update audit_log set octets = null where action = 'made.early'`);
    const pages = await pagesOf('/v1/iam/audit', '&action=made.early');
    expect(expectBounded(pages)).toHaveLength(4);
    expect(pages).toHaveLength(2);
  });

  test('API keys', async () => {
    const constraints = { models: Array.from({ length: 200 }, (_, i) => long(250, i)) };
    const made = await Promise.all(
      Array.from({ length: 24 }, (_, n) =>
        asRoot('POST', '/v1/iam/api-keys', {
          description: `k${n}`,
          scopes: ['chat:write'],
          expires_in_days: 1,
          resource_constraints: constraints,
        }),
      ),
    );
    expect(new Set(made.map(outcome))).toEqual(new Set(['201']));
    const pages = await pagesOf('/v1/iam/api-keys');
    const listed = expectBounded(pages).map((row) => String(row['id']));
    expect(listed.toSorted(byName)).toEqual(made.map((reply) => String(reply.json['id'])).toSorted(byName));
    expect(pages.length).toBeGreaterThan(1);
    expect(expectBounded(await pagesOf('/v1/iam/api-keys', '&status=active'))).toHaveLength(24);
  });

  test('roles, policies and the policies of a role', async () => {
    const resources = Array.from({ length: 800 }, (_, i) => `models/${long(240, i)}`);
    const base = { effect: 'deny', actions: ['chat:write'], resources, attached_roles: ['developer'] };
    for (const n of [1, 2, 3, 4]) {
      expect(outcome(await asRoot('POST', '/v1/iam/policies', { ...base, name: `own-${n}` }))).toBe('201');
      expect(outcome(await asRoot('POST', '/v1/iam/policies', { ...base, name: `global-${n}`, global: true }))).toBe(
        '201',
      );
    }
    for (const path of ['/v1/iam/policies', '/v1/iam/roles/developer/policies']) {
      const pages = await pagesOf(path);
      expect(expectBounded(pages).map((row) => row['name'])).toEqual(
        ['global', 'own'].flatMap((owner) => [1, 2, 3, 4].map((n) => `${owner}-${n}`)),
      );
      expect(pages).toHaveLength(2);
    }
    expect(expectBounded(await pagesOf('/v1/iam/policies', '&tenant_id=*', ''))).toHaveLength(8);
    for (const n of [1, 2, 3, 4]) await asRoot('DELETE', `/v1/iam/policies/own-${n}`);
    const constraints = ['models', 'collections', 'agents'].map((kind) => [
      kind,
      resources.slice(0, 200).map((name) => name.slice(7)),
    ]);
    const expected: string[] = [];
    // On both sides of the built-in roles.
    for (const name of ['aaa-1', 'aaa-2', 'aaa-3', 'mmm-1', 'zzz-1', 'zzz-2']) {
      const role = { name, permissions: ['chat:write'], resource_constraints: Object.fromEntries(constraints) };
      expect(outcome(await asRoot('POST', '/v1/iam/roles', role))).toBe('201');
      expected.push(name);
    }
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'globex', name: 'Globex' } });
    for (const name of ['aaa-1', 'bbb-1', 'zzz-9']) {
      const role = { name, permissions: ['chat:write'], resource_constraints: Object.fromEntries(constraints) };
      expect(outcome(await asRoot('POST', '/v1/iam/roles', role, 'globex'))).toBe('201');
      expected.push(name);
    }
    const pages = await pagesOf('/v1/iam/roles', '&tenant_id=*', '');
    const shown = expectBounded(pages);
    expect(pages.length).toBeGreaterThan(1);
    const builtin = shown.filter((row) => row['builtin'] === true).map((row) => String(row['name']));
    expect(builtin).toHaveLength(6);
    expect(shown.map((row) => row['name'])).toEqual([...expected, ...builtin].toSorted(byName));
  });

  test('the users and keys that have a permission', async () => {
    for (let i = 0; i < 100; i++) {
      const policy = {
        name: `allow-${String(i).padStart(3, '0')}-`.padEnd(63, 'x'),
        effect: 'allow',
        actions: ['embeddings:write'],
        resources: ['*'],
        conditions: { ip_address: { in: [`10.0.${i}.0/24`] } },
        attached_roles: ['analyst'],
      };
      expect(outcome(await asRoot('POST', '/v1/iam/policies', policy))).toBe('201');
    }
    const people = await Promise.all(Array.from({ length: 70 }, () => h.person('acme', ['analyst'])));
    const replies = await pagesOf('/v1/iam/explain/who-can', '', 'acme', { permission: 'embeddings:write' });
    for (const { json } of replies)
      expect(bytesOf([json['users'], json['keys'], json['policies']])).toBeLessThan(MAX_PAGE_BYTES + 10);
    const users = replies.flatMap(({ json }) => (Array.isArray(json['users']) ? json['users'] : []));
    const analysts = users.filter((user: { readonly roles: readonly string[] }) => user.roles.includes('analyst'));
    expect(new Set(analysts.map((user: { readonly id: string }) => user.id))).toEqual(
      new Set(people.map(({ id }) => id)),
    );
    expect(replies.length).toBeGreaterThan(1);
  });
});

describe('the store', () => {
  test('reads no more of a page than its bytes, in pages that are the list', async () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 3000 }), { minLength: 1, maxLength: 12 });
    let run = 0;
    await fc.assert(
      fc.asyncProperty(
        sizes,
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 8000 }),
        async (lengths, take, maxBytes) => {
          const action = `run.${++run}`;
          await write(
            h.db,
            ...lengths.map((length, n) => ({ action, before: undefined, after: { n, text: long(length, n) } })),
          );
          const scope = { kind: 'one', tenant: tenantId('acme') } as const;
          const seen: unknown[] = [];
          for (let after: readonly string[] | undefined; ; ) {
            const page = await listAudit(h.db.knex, scope, { action }, { after, take, maxBytes });
            const stored = page.rows.map((row) => 200 + Buffer.byteLength(JSON.stringify(row.after)));
            const before = stored.slice(0, -1).reduce((sum, bytes) => sum + bytes, 0);
            expect(before).toBeLessThan(maxBytes);
            expect(page.rows.length).toBeLessThanOrEqual(take);
            seen.push(...page.rows.map((row) => Object(row.after).n));
            const last = page.rows.at(-1);
            if (!page.more || last === undefined) break;
            after = [String(last.time_micros), String(last.id)];
          }
          expect(seen).toEqual(lengths.map((_, i) => lengths.length - 1 - i));
        },
      ),
      { numRuns: runs(40) },
    );
  });
});

test('a page of small rows is as long as it was', async () => {
  await write(h.db, ...Array.from({ length: DEFAULT_LIMIT + 1 }, () => ({ action: 'made.small' })));
  const reply = await asRoot('GET', '/v1/iam/audit?action=made.small');
  expect([rows(reply).length, reply.json['has_more']]).toEqual([DEFAULT_LIMIT, true]);
});
