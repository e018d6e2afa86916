/** What belongs to another tenant answers exactly as what never was. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { column, type Harness, type Json, outcome, type Person, startHarness, text } from './harness.ts';

let h: Harness;
let boss: Person;
/** What globex has. */
const theirs = { user: '', key: '' };
beforeAll(async () => {
  h = await startHarness();
  for (const id of ['acme', 'globex']) await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  boss = await h.person('acme', ['tenant-admin']);
  theirs.user = (await h.person('globex', [])).id;
  const inGlobex = (path: string, body: object) => h.api('POST', path, { as: h.root.token, tenant: 'globex', body });
  const key = await inGlobex('/v1/iam/api-keys', { description: 'k', scopes: ['chat:read'], expires_in_days: 1 });
  theirs.key = text(key.json, 'id');
  await inGlobex('/v1/iam/roles', { name: 'their-role', permissions: ['chat:read'] });
  await inGlobex('/v1/iam/policies', { name: 'their-policy', effect: 'deny', actions: ['rag:*'], resources: ['*'] });
});
afterAll(async () => {
  await h.close();
});

const MISSING = { user: 'usr_00000000000000000000000000', key: 'key_00000000000000000000000000' };

function withoutId(json: Json): Json {
  const { request_id: _id, ...rest } = json;
  return rest;
}

test.each<[string, string, string, string, object?]>([
  ['a user', 'GET', '/v1/iam/users/@user', ''],
  ['a user', 'PUT', '/v1/iam/users/@user', '', { name: 'x' }],
  ['a user', 'DELETE', '/v1/iam/users/@user', ''],
  ['a user', 'POST', '/v1/iam/users/@user/deactivate', ''],
  ['a user', 'POST', '/v1/iam/users/@user/activate', ''],
  ['a user', 'POST', '/v1/iam/users/@user/password-reset', ''],
  ['a user', 'DELETE', '/v1/iam/users/@user/sessions', ''],
  ['a key', 'GET', '/v1/iam/api-keys/@key', ''],
  ['a key', 'PUT', '/v1/iam/api-keys/@key', '', { description: 'x' }],
  ['a key', 'DELETE', '/v1/iam/api-keys/@key', ''],
  ['a key', 'POST', '/v1/iam/api-keys/@key/rotate', ''],
  ['a role', 'GET', '/v1/iam/roles/their-role', '/v1/iam/roles/no-role'],
  ['a role', 'PUT', '/v1/iam/roles/their-role', '/v1/iam/roles/no-role', {}],
  ['a role', 'DELETE', '/v1/iam/roles/their-role', '/v1/iam/roles/no-role'],
  ["a role's policies", 'GET', '/v1/iam/roles/their-role/policies', '/v1/iam/roles/no-role/policies'],
  ['an attachment', 'PUT', '/v1/iam/roles/developer/policies/their-policy', '/v1/iam/roles/developer/policies/no-policy'],
  ['an attachment', 'DELETE', '/v1/iam/roles/developer/policies/their-policy', '/v1/iam/roles/developer/policies/no-policy'],
  ['a policy', 'GET', '/v1/iam/policies/their-policy', '/v1/iam/policies/no-policy'],
  ['a policy', 'PUT', '/v1/iam/policies/their-policy', '/v1/iam/policies/no-policy', {}],
  ['a policy', 'DELETE', '/v1/iam/policies/their-policy', '/v1/iam/policies/no-policy'],
  ['a tenant', 'GET', '/v1/iam/tenants/globex', '/v1/iam/tenants/nowhere'],
])("another tenant's %s: %s %s", async (_name, method, path, missing, body) => {
  const call = { as: boss.token, ...(body === undefined ? {} : { body }) };
  const foreign = await h.api(method, path.replace('@user', theirs.user).replace('@key', theirs.key), call);
  const absent = await h.api(method, missing || path.replace('@user', MISSING.user).replace('@key', MISSING.key), call);
  expect(outcome(foreign)).toBe('404 not_found');
  expect(withoutId(foreign.json)).toEqual(withoutId(absent.json));
});

test.each([
  ['/v1/iam/users', 'id', () => theirs.user],
  ['/v1/iam/api-keys', 'id', () => theirs.key],
  ['/v1/iam/roles', 'name', () => 'their-role'],
  ['/v1/iam/policies', 'name', () => 'their-policy'],
])('%s lists nothing of another tenant', async (path, member, foreign) => {
  expect(column(await h.api('GET', `${path}?limit=200`, { as: boss.token }), member)).not.toContain(foreign());
  expect(column(await h.api('GET', `${path}?limit=200&tenant_id=globex`, { as: h.root.token }), member)).toContain(foreign());
});

test('a platform administrator too looks ids up in the effective tenant', async () => {
  const path = `/v1/iam/users/${theirs.user}`;
  expect(outcome(await h.api('GET', path, { as: h.root.token }))).toBe('404 not_found');
  expect(outcome(await h.api('GET', path, { as: h.root.token, tenant: 'globex' }))).toBe('200');
});
