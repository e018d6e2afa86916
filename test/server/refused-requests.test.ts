/**
 * A refused attempt at the API leaves a row in the audit log of the tenant that it came from, and counts in a metric. A
 * credential that the gate refuses leaves a row with the reason.
 */

import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { connectTo } from '../extauthz/support/client.ts';
import { type Answer, readAnswer } from '../extauthz/support/definition.ts';
import { checkRequest, type RequestSpec } from '../extauthz/support/requests.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { send } from '../support/http.ts';
import { ADMIN, call, done, login, makeKey, SECRET_KEY, tryLogin } from './support/client.ts';
import { type ApiServer, openStand, type Stand } from './support/postern.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let stand: Stand;
let database: FreshDatabase;
let server: ApiServer;
let root: string;
beforeAll(async () => {
  stand = await openStand();
  database = await freshDatabase();
  server = await stand.serveApi({
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
  });
  root = await login(server.http);
  for (const id of ['acme', 'globex'])
    await done(server.http, 'POST', '/v1/iam/tenants', { token: root, body: { id, name: id } });
});
afterAll(async () => {
  await stand?.close();
  await database?.close();
});

interface Row {
  readonly actor: { readonly type: string; readonly id: string | null };
  readonly tenant_id: string | null;
  readonly address: string | null;
  readonly action: string;
  readonly target: unknown;
  readonly result: string;
  readonly after: Readonly<Record<string, unknown>>;
  readonly request_id: string | null;
}

async function rows(token: string, query: string): Promise<readonly Row[]> {
  const { body } = await done(server.http, 'GET', `/v1/iam/audit?${query}`, { token });
  return body['data'] as readonly Row[];
}

async function tenantAdmin(tenant: string): Promise<{ readonly id: string; readonly token: string }> {
  const person = { name: tenant, email: `admin@${tenant}.example`, password: 'a lake of tin whistles' };
  const role = { name: 'manager', permissions: ['admin:users', 'admin:keys', 'audit:read'] };
  await done(server.http, 'POST', '/v1/iam/roles', { token: root, tenant, body: role });
  const { body } = await done(server.http, 'POST', '/v1/iam/users', {
    token: root,
    tenant,
    body: { ...person, roles: ['manager'] },
  });
  return { id: String(body['id']), token: await login(server.http, person) };
}

it('a refused attempt of a tenant administrator is a row that the auditors of its own tenant read', async () => {
  const { id, token } = await tenantAdmin('acme');
  const attempts: readonly (readonly [string, string, string | undefined, string])[] = [
    ['GET', '/v1/iam/users', 'globex', 'tenant_mismatch'],
    ['GET', '/v1/iam/users?tenant_id=globex', undefined, 'tenant_mismatch'],
    ['GET', '/v1/iam/tenants', undefined, 'insufficient_permission'],
    ['DELETE', '/v1/iam/roles/manager', undefined, 'insufficient_permission'],
    ['GET', '/v1/iam/audit/chain', undefined, 'insufficient_permission'],
  ];
  const ids: string[] = [];
  for (const [method, path, tenant, code] of attempts) {
    const reply = await call(server.http, method, path, { token, tenant });
    expect(`${reply.status} ${String(reply.body['code'])}`).toBe(`403 ${code}`);
    ids.push(String(reply.headers['x-request-id']));
  }
  await expect.poll(() => rows(token, 'action=request.refuse')).toHaveLength(attempts.length);
  const found = (await rows(token, 'action=request.refuse')).toReversed();
  expect(found.map(({ after, request_id }) => [after['code'], request_id])).toEqual(
    attempts.map(([, , , code], i) => [code, ids[i]]),
  );
  for (const row of found)
    expect(row).toMatchObject({ actor: { type: 'user', id }, tenant_id: 'acme', result: 'refused' });
  expect(found.map(({ after }) => after['tenant_id'])).toEqual(['globex', 'globex', undefined, undefined, undefined]);
  expect(found[3]).toMatchObject({
    target: { type: 'role', id: 'manager' },
    after: { method: 'DELETE', route: '/v1/iam/roles/:name' },
  });
});

it('a refusal without a principal is a row that platform administrators read, without the credential', async () => {
  const secret = 'not-a-key-but-secret';
  const reply = await call(server.http, 'GET', '/v1/iam/users', { token: secret });
  expect(reply.status).toBe(401);
  const find = () => rows(root, `tenant_id=*&request_id=${String(reply.headers['x-request-id'])}`);
  await expect.poll(find).toMatchObject([
    {
      actor: { type: 'anonymous', id: null },
      tenant_id: null,
      address: '127.0.0.1',
      after: { code: 'invalid_credential' },
    },
  ]);
  expect(JSON.stringify(await find())).not.toContain(secret);
});

it('a failed login has one row, that of the login', async () => {
  const failed = await tryLogin(server.http, { email: ADMIN.email, password: 'another password' });
  expect(failed.status).toBe(401);
  // Rows are written in the order of the requests.
  const later = await call(server.http, 'GET', '/v1/iam/users');
  const of = (reply: typeof failed) => rows(root, `tenant_id=*&request_id=${String(reply.headers['x-request-id'])}`);
  await expect.poll(() => of(later)).toHaveLength(1);
  expect((await of(failed)).map(({ action }) => action)).toEqual(['auth.login']);
});

it('a credential that the gate refuses is a row with the reason, which the answer does not have', async () => {
  const gate = await stand.serveGate({ POSTERN_DATABASE_URL: database.url, POSTERN_SECRET_KEY: SECRET_KEY });
  const client = connectTo(gate.grpc);
  const ask = async (token: string, ip: string, more: RequestSpec = {}): Promise<Answer> => {
    const headers = [['authorization', `Bearer ${token}`] as const, ...(more.headers ?? [])];
    const request = { method: 'HEAD', path: '/v1/models/one', ip, ...more, headers };
    return readAnswer(await client.check(checkRequest(request)));
  };
  const of = ({ headers }: Answer) => rows(root, `tenant_id=*&request_id=${String(headers['x-request-id'])}`);
  const { key, id } = await makeKey(server.http, root, { tenant: 'acme', scopes: ['models:read'] });
  await done(server.http, 'DELETE', `/v1/iam/api-keys/${id}`, { token: root });

  const shadow = await ask(key, '203.0.113.1', { context: { 'postern.mode': 'shadow' } });
  const revoked = await ask(key, '203.0.113.1', { headers: [['x-tenant-id', 'acme']] });
  expect(revoked.body).toMatchObject({ code: 'invalid_credential', detail: 'The credential is not valid.' });
  await expect
    .poll(() => of(revoked))
    .toMatchObject([
      {
        actor: { type: 'anonymous', id: null },
        tenant_id: null,
        address: '203.0.113.1',
        action: 'request.refuse',
        result: 'refused',
        after: {
          code: 'invalid_credential',
          reason: 'revoked',
          method: 'HEAD',
          route: '/v1/models/{model+}',
          tenant_id: 'acme',
        },
      },
    ]);
  expect(JSON.stringify(await of(revoked))).not.toContain(key);

  const { key: live } = await makeKey(server.http, root, { scopes: ['chat:read'] });
  const denied = await ask(live, '203.0.113.2');
  expect(denied.body['code']).toBe('insufficient_permission');
  for (let i = 0; i < 25; i++) await ask(`unknown-${i}`, '203.0.113.3', { headers: [['x-tenant-id', '\u0000']] });
  await gate.stop();
  client.close();
  const unknown = (await rows(root, 'tenant_id=*&action=request.refuse')).filter(
    (row) => row.address === '203.0.113.3',
  );
  expect(unknown.map(({ after }) => after['others'] ?? 1)).toEqual([15, ...Array.from({ length: 10 }, () => 1)]);
  expect([await of(denied), await of(shadow)]).toEqual([[], []]);
});

it('beyond ten refusals of a principal and code in a minute, the end of the server writes the number of the others', async () => {
  const { token, id } = await tenantAdmin('globex');
  for (let i = 0; i < 25; i++) await call(server.http, 'GET', '/v1/iam/tenants', { token });
  await expect.poll(() => rows(root, `tenant_id=globex&actor=${id}&action=request.refuse`)).toHaveLength(10);
  const { body } = await send(`http://${server.admin}`, { path: '/metrics' });
  const counted = /^postern_http_refusals_total\{code="insufficient_permission"\} (\d+)$/m.exec(body)?.[1];
  expect(Number(counted)).toBeGreaterThanOrEqual(25);
  await server.stop();
  server = await stand.serveApi({ POSTERN_DATABASE_URL: database.url, POSTERN_SECRET_KEY: SECRET_KEY });
  const found = await rows(root, `tenant_id=globex&actor=${id}&action=request.refuse`);
  expect(found.map(({ after }) => after['others'] ?? 1)).toEqual([15, ...Array.from({ length: 10 }, () => 1)]);
});
