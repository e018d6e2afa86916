import { afterAll, beforeAll, expect, test } from 'vitest';
import { storeDecision } from '../support/recorded-decisions.ts';
import { column, type Harness, rows, startHarness, text } from './harness.ts';

let h: Harness;
beforeAll(async () => {
  h = await startHarness();
  for (const id of ['acme', 'globex', 'initech']) {
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
    const post = (path: string, body: object) =>
      h.api('POST', `/v1/iam/${path}`, { as: h.root.token, tenant: id, body });
    for (const name of ['same', 'zebra']) {
      await post('roles', { name, permissions: [] });
      await post('policies', {
        name,
        effect: 'deny',
        actions: ['rag:*'],
        resources: ['*'],
        attached_roles: ['developer'],
      });
    }
    await post('api-keys', { description: 'k', scopes: ['chat:read'], expires_in_days: 1 });
    await h.person(id, []);
    for (const outcome of ['allow', 'deny'] as const) await storeDecision(h.db, { tenant_id: id, outcome });
    await storeDecision(h.db, { tenant_id: id });
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
])('%s has the same rows page by page as in one page', async (path, member) => {
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
  // Users and keys are listed newest first, and their ids begin with the time.
  const inOrder = /users|api-keys/.test(path) ? names.toReversed() : names;
  expect(inOrder.slice(1).every((one, i) => one >= (inOrder[i] ?? ''))).toBe(true);
});

test.each([
  ['/v1/iam/users?tenant_id=*'],
  ['/v1/iam/users?tenant_id=acme&status=active'],
  ['/v1/iam/users?tenant_id=*&q=usr'],
  ['/v1/iam/users?tenant_id=*&role=admin'],
  ['/v1/iam/roles?tenant_id=*&q=e'],
  ['/v1/iam/roles?tenant_id=acme&builtin=true'],
  ['/v1/iam/roles?tenant_id=acme&builtin=false'],
  ['/v1/iam/policies?tenant_id=*&enabled=true&q=e'],
  ['/v1/iam/policies?tenant_id=acme&global=true'],
  ['/v1/iam/tenants?status=active'],
  ['/v1/iam/tenants?q=c'],
  ['/v1/iam/roles?tenant_id=*'],
  ['/v1/iam/roles?tenant_id=acme'],
  ['/v1/iam/policies?tenant_id=*'],
  ['/v1/iam/policies?tenant_id=acme'],
  ['/v1/iam/api-keys?tenant_id=*'],
  ['/v1/iam/api-keys?tenant_id=acme&status=active'],
  ['/v1/iam/tenants?'],
  ['/v1/iam/roles/developer/policies?'],
  ['/v1/iam/audit?tenant_id=*'],
  ['/v1/iam/audit?tenant_id=acme&action=role.create'],
  ['/v1/iam/permissions?'],
  ['/v1/iam/permissions?pattern=admin:*'],
  ['/v1/iam/decisions/recent?tenant_id=*'],
  ['/v1/iam/decisions/recent?tenant_id=acme&outcome=deny&code=no_route&from=2020-01-01T00:00:00Z'],
  ['/v1/auth/sessions?'],
  ['/v1/iam/users/:root/sessions?'],
])('with count=true, every page of %s has the number of rows of all pages', async (template) => {
  const path = template.replace(':root', h.root.id);
  const whole = rows(await h.api('GET', `${path}&limit=200`, { as: h.root.token }));
  expect(whole.length).toBeGreaterThan(0);
  const counted = await h.api('GET', `${path}&limit=1&count=true`, { as: h.root.token });
  expect(counted.json['total']).toBe(whole.length);
  const plain = await h.api('GET', `${path}&limit=1&count=false`, { as: h.root.token });
  expect(plain.json).not.toHaveProperty('total');
  if (counted.json['has_more'] !== true) return;
  const next = await h.api('GET', `${path}&limit=1&count=true&cursor=${text(plain.json, 'next_cursor')}`, {
    as: h.root.token,
  });
  expect(next.json['total']).toBe(whole.length);
});

test('a list of more than 10,000 rows says that it exceeds them, and one of 10,000 is counted', async () => {
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'large', name: 'large' } });
  // Without triggers: no process has these keys cached.
  const add = (from: number, to: number) =>
    h.db.knex.raw(
      `alter table api_keys disable trigger user;
       insert into api_keys (id, tenant_id, description, digest, prefix, last_four, scopes, created_by)
       select 'key_' || lpad(i::text, 26, '0'), 'large', 'many', sha256(i::text::bytea), 'psk_0000', '0000', '{chat:read}', 'test'
       from generate_series(${from}, ${to}) i;
       alter table api_keys enable trigger user`,
    );
  const count = async (query: string) => {
    const { json } = await h.api('GET', `/v1/iam/api-keys?tenant_id=large&limit=1&count=true${query}`, {
      as: h.root.token,
    });
    return { total: json['total'], exceeds: json['total_exceeds'] };
  };
  for (let from = 1; from <= 10_000; from += 1000) await add(from, from + 999);
  for (const query of ['', '&status=active', '&q=many', '&prefix=psk_']) {
    expect([query, await count(query)]).toEqual([query, { total: 10_000, exceeds: undefined }]);
  }
  await add(10_001, 10_001);
  for (const query of ['', '&status=active', '&q=many', '&prefix=psk_']) {
    expect([query, await count(query)]).toEqual([query, { total: undefined, exceeds: 10_000 }]);
  }
});

test('a cursor of one list is rejected by another list', async () => {
  const roles = await h.api('GET', '/v1/iam/roles?limit=1', { as: h.root.token });
  const reply = await h.api('GET', `/v1/iam/policies?cursor=${text(roles.json, 'next_cursor')}`, { as: h.root.token });
  expect([reply.status, reply.json['code']]).toEqual([400, 'invalid_parameter']);
});
