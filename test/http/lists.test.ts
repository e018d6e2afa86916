import { afterAll, beforeAll, expect, test } from 'vitest';
import { column, type Harness, rows, startHarness, text } from './harness.ts';

let h: Harness;
beforeAll(async () => {
  h = await startHarness();
  for (const id of ['acme', 'globex', 'initech']) {
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
    const post = (path: string, body: object) => h.api('POST', `/v1/iam/${path}`, { as: h.root.token, tenant: id, body });
    for (const name of ['same', 'zebra']) {
      await post('roles', { name, permissions: [] });
      await post('policies', { name, effect: 'deny', actions: ['rag:*'], resources: ['*'], attached_roles: ['developer'] });
    }
    await post('api-keys', { description: 'k', scopes: ['chat:read'], expires_in_days: 1 });
    await h.person(id, []);
  }
  const body = {
    name: 'everywhere',
    effect: 'deny',
    actions: ['rag:*'],
    resources: ['*'],
    attached_roles: ['developer'],
    global: true,
  };
  await h.api('POST', '/v1/iam/policies', { as: h.root.token, body });
});
afterAll(async () => {
  await h.close();
});

test.each([
  ['/v1/iam/users?tenant_id=*', 'id'],
  ['/v1/iam/roles?tenant_id=*', 'name'],
  ['/v1/iam/roles?tenant_id=acme', 'name'],
  ['/v1/iam/policies?tenant_id=*', 'name'],
  ['/v1/iam/policies?tenant_id=acme', 'name'],
  ['/v1/iam/api-keys?tenant_id=*', 'id'],
  ['/v1/iam/tenants?', 'id'],
  ['/v1/iam/roles/developer/policies?', 'name'],
])('%s is the same, page by page, as in one', async (path, member) => {
  const whole = await h.api('GET', `${path}&limit=200`, { as: h.root.token });
  expect(whole.json).toMatchObject({ object: 'list', has_more: false, next_cursor: null });
  const paged: unknown[] = [];
  let cursor = '';
  do {
    const page = await h.api('GET', `${path}&limit=1${cursor}`, { as: h.root.token });
    expect(rows(page)).toHaveLength(1);
    paged.push(...rows(page));
    cursor = page.json['has_more'] === true ? `&cursor=${text(page.json, 'next_cursor')}` : '';
  } while (cursor !== '');
  expect(paged).toEqual(rows(whole));
  const names = column(whole, member).map(String);
  expect(names.slice(1).every((one, i) => one >= (names[i] ?? ''))).toBe(true);
});

test('a cursor of one list is none of another', async () => {
  const roles = await h.api('GET', '/v1/iam/roles?limit=1', { as: h.root.token });
  const reply = await h.api('GET', `/v1/iam/policies?cursor=${text(roles.json, 'next_cursor')}`, { as: h.root.token });
  expect([reply.status, reply.json['code']]).toEqual([400, 'invalid_parameter']);
});
