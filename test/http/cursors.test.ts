/** Cursors: pages stay correct while rows are created and deleted, and a cursor is valid only for its own list. */

import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { column, type Harness, outcome, startHarness, text } from './harness.ts';
import { KINDS, type Kind, makeOne } from './resources.ts';

let h: Harness;
beforeAll(async () => {
  h = await startHarness();
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'acme', name: 'Acme' } });
  for (const kind of KINDS) for (let i = 0; i < 3; i++) await makeOne(h, kind);
});
afterAll(async () => {
  await h.close();
});

const get = (path: string, tenant?: string) =>
  h.api('GET', `/v1/iam/${path}`, { as: h.root.token, ...(tenant === undefined ? {} : { tenant }) });
const cursorOf = async (path: string) => text((await get(path)).json, 'next_cursor');

/** Returns a cursor with a valid check, for a list of the first tenant without filters. */
function forged(list: string, position: unknown, sort?: string): string {
  const sorted = sort ?? (list === 'users' || list === 'api-keys' ? '-created_at' : undefined);
  const binding = JSON.stringify([list, 'default', sorted === undefined ? {} : { sort: sorted }]);
  const json = JSON.stringify(position);
  const check = createHash('sha256')
    .update(JSON.stringify([binding, json]))
    .digest()
    .subarray(0, 12);
  return Buffer.concat([check, Buffer.from(json)]).toString('base64url');
}

test.each(KINDS)(
  'pages of %s show each lasting row once while other rows are created and deleted',
  async (kind: Kind) => {
    const idOf = kind === 'roles' || kind === 'policies' ? 'name' : 'id';
    // Each webhook is in a tenant of its own.
    const tenants = kind === 'webhooks' ? 'tenant_id=*&' : '';
    // The test of tenants deletes tenants, and with them the webhooks from before.
    for (let i = 0; i < 3; i++) await makeOne(h, kind);
    const before = column(await get(`${kind}?${tenants}limit=200`), idOf);
    const seen: unknown[] = [];
    const gone = new Set<unknown>();
    let query = `${tenants}limit=2`;
    for (;;) {
      const page = await get(`${kind}?${query}`);
      seen.push(...column(page, idOf));
      if (page.json['has_more'] !== true) break;
      query = `${tenants}limit=2&cursor=${text(page.json, 'next_cursor')}`;
      // Deletes the row that the cursor names, if possible, and creates another one.
      const last = seen.at(-1);
      const removed = await h.api('DELETE', `/v1/iam/${kind}/${String(last)}`, { as: h.root.token });
      if (removed.status === 204) gone.add(last);
      await makeOne(h, kind);
      if (seen.length > 60) throw new Error('the list has no end');
    }
    expect(gone.size).toBeGreaterThan(0);
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen).toEqual(expect.arrayContaining([...before]));
  },
);

describe('a cursor', () => {
  test('is valid for pages of another size, and if the request names the tenant in another way', async () => {
    const cursor = await cursorOf('roles?limit=1');
    expect(outcome(await get(`roles?limit=3&cursor=${cursor}`))).toBe('200');
    expect(outcome(await get(`roles?tenant_id=default&cursor=${cursor}`))).toBe('200');
    expect(outcome(await get(`roles?cursor=${cursor}`, 'default'))).toBe('200');
  });

  test.each([
    ['another list', 'roles?limit=1', 'policies?'],
    ['the same list with a filter', 'users?limit=1', 'users?status=active'],
    ['the same list without its filter', 'users?limit=1&status=active', 'users?'],
    ['the same filter with another value', 'api-keys?limit=1&status=active', 'api-keys?status=revoked'],
    ['the same list in another order', 'users?limit=1&sort=name', 'users?sort=-name'],
    ['the same list in its default order', 'api-keys?limit=1&sort=expires_at', 'api-keys?'],
    ['the same list of another tenant', 'roles?limit=1', 'roles?tenant_id=acme'],
    ['the same list of every tenant', 'roles?limit=1', 'roles?tenant_id=*'],
  ])('is rejected for %s', async (_name, from, into) => {
    const reply = await get(`${into}&cursor=${await cursorOf(from)}`);
    expect([outcome(reply), reply.json['error']]).toMatchObject(['400 invalid_parameter', { param: 'cursor' }]);
  });

  test('of the default order is valid for a request that names the order', async () => {
    const cursor = await cursorOf('users?limit=1');
    expect(outcome(await get(`users?sort=-created_at&cursor=${cursor}`))).toBe('200');
  });

  test('that was changed anywhere is refused', async () => {
    const cursor = await cursorOf('users?limit=1');
    const other = (i: number) => (cursor[i] === 'A' ? 'B' : 'A');
    const changed = [...cursor].keys().map((i) => cursor.slice(0, i) + other(i) + cursor.slice(i + 1));
    const tampered = [
      ...changed,
      cursor.slice(0, -1),
      cursor.slice(1),
      `${cursor}A`,
      `${cursor}=`,
      `${cursor}%20`,
      `${cursor}!`,
    ];
    for (const one of tampered.filter((_one, i) => i % 3 === 0 || i >= cursor.length)) {
      expect(outcome(await get(`users?cursor=${one}`)), one).toBe('400 invalid_parameter');
    }
  });

  test('does not contain the list, the tenant or the name of its row', async () => {
    const cursor = await cursorOf('users?limit=1&q=one');
    expect(Buffer.from(cursor, 'base64url').toString('latin1')).not.toMatch(/users|default|one-/);
  });

  test.each([
    ['a number', [1]],
    ['nothing', []],
    ['too much', ['a', 'b', 'c']],
    ['NUL', ['a\0']],
    ['a lone surrogate', ['\ud800']],
    ['no list', { length: 1 }],
  ])('of a position that is %s is rejected, also with a valid check', async (_name, position) => {
    expect(outcome(await get(`users?cursor=${forged('users', [h.root.id])}`))).toBe('200');
    expect(outcome(await get(`users?cursor=${forged('users', position)}`))).toBe('400 invalid_parameter');
  });

  test.each([
    ['half of it', ['1']],
    ['no number', ['1', 'x']],
    ['a negative number', ['-1', '1']],
  ])('of a position in the audit log that is %s is rejected, also with a valid check', async (_name, position) => {
    expect(outcome(await get(`audit?cursor=${forged('audit', ['9999999999999999', '1'])}`))).toBe('200');
    expect(outcome(await get(`audit?cursor=${forged('audit', position)}`))).toBe('400 invalid_parameter');
  });

  test.each(['users', 'roles', 'policies', 'tenants', 'api-keys', 'usage'])(
    'of a position that no row of %s can have is no fault of the server',
    async (list) => {
      const positions = [
        [''],
        ['\u{10ffff}'],
        ['x', 'y'],
        ['x'.repeat(500)],
        ['9'.repeat(16), 'y'],
        ['-1', 'y'],
        ['Infinity', 'y'],
      ];
      const orders = { users: ['name', '-last_login_at'], 'api-keys': ['name', '-last_used_at', 'expires_at'] };
      for (const position of positions) {
        for (const sort of [undefined, ...(list === 'users' || list === 'api-keys' ? orders[list] : [])]) {
          const path = `${list}?cursor=${forged(list, position, sort)}${sort === undefined ? '' : `&sort=${sort}`}`;
          expect((await get(path)).status, `${sort} ${JSON.stringify(position)}`).toBeLessThan(500);
        }
      }
    },
  );
});
