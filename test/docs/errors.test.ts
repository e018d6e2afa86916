/** Every request of docs/errors.md, sent to the whole server and a real Envoy, causes the error of its section. */

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  ERROR_REQUESTS,
  type ErrorRequest,
  type Name,
  WITHOUT_REQUEST,
} from '../../scripts/lib/reference/error-requests.ts';
import { ERRORS } from '../../src/domain/errors.ts';
import { call, done, login } from '../server/support/client.ts';
import { openPlatform, type Platform } from '../server/support/platform.ts';
import type { Server } from '../server/support/postern.ts';
import type { Edge } from '../support/envoy.ts';
import { type Answer, send } from '../support/http.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let platform: Platform;
let server: Server;
let edge: Edge;
let names: Readonly<Record<Name, string>>;

beforeAll(async () => {
  platform = await openPlatform({ POSTERN_LIMITS_WINDOW: '365d' });
  ({ server, edge } = platform);
  names = await setUp(platform);
});

afterAll(() => platform?.close());

/** Creates the resources that the head of the page lists. */
async function setUp({ server: { http }, admin }: Platform): Promise<Readonly<Record<Name, string>>> {
  const make = async (path: string, body: object, tenant?: string) =>
    (await done(http, 'POST', `/v1/iam${path}`, { token: admin, tenant, body })).body;
  const settings = { max_tokens_per_request: 1000 };
  await make('/tenants', { id: 'acme', name: 'Acme', settings });
  for (const id of ['globex', 'asleep']) await make('/tenants', { id, name: id });
  const quotas = { monthly_tokens: 1, max_users: 0 };
  await make('/tenants', { id: 'spent', name: 'Spent', settings: { require_stream_usage: true }, quotas });
  await make('/policies', { name: 'no-images', effect: 'deny', actions: ['images:*'], resources: ['*'] }, 'acme');
  await make('/roles', { name: 'writer', permissions: ['chat:write'] }, 'acme');
  const manager = { email: 'manager@example.com', password: 'a manager of a documented tenant' };
  await make('/users', { ...manager, name: 'Manager', roles: ['tenant-admin', 'writer'] }, 'acme');
  const key = (tenant: string, more: object = {}) =>
    make(
      '/api-keys',
      { description: 'of the errors page', scopes: ['chat:*', 'models:read'], expires_in_days: 1, ...more },
      tenant,
    );
  const [plain, once, spent, asleep, revoked] = [
    await key('acme', { scopes: ['chat:*'], resource_constraints: { models: ['llama-*'] } }),
    await key('acme', { rate_limit_rpm: 1 }),
    await key('spent'),
    await key('asleep'),
    await key('acme'),
  ];
  await done(http, 'POST', '/v1/iam/tenants/asleep/suspend', { token: admin });
  await done(http, 'DELETE', `/v1/iam/api-keys/${String(revoked['id'])}`, { token: admin });
  return {
    ADMIN: admin,
    ADMIN_ID: String((await call(http, 'GET', '/v1/auth/me', { token: admin })).body['id']),
    MANAGER: await login(http, manager),
    KEY: String(plain['key']),
    ONCE_KEY: String(once['key']),
    SPENT_KEY: String(spent['key']),
    SUSPENDED_KEY: String(asleep['key']),
    REVOKED_KEY_ID: String(revoked['id']),
  };
}

function sendOne({ at, method, path, as, headers = {}, body }: Omit<ErrorRequest, 'before'>): Promise<Answer> {
  const credential = as === undefined ? undefined : typeof as === 'string' ? names[as] : as.literal;
  return send(at === 'platform' ? edge.url : `http://${server.http}`, {
    method,
    path: path.replace(
      /\$([A-Z_]+)/,
      (text, name: string) => Object.entries(names).find(([known]) => known === name)?.[1] ?? text,
    ),
    headers: {
      ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
      ...(body === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
      ...headers,
    },
    ...(body === undefined ? {} : { body }),
  });
}

describe('the request of docs/errors.md for', () => {
  it.each(Object.entries(ERROR_REQUESTS))(
    '%s is answered with that code and its status',
    async (code, { before, ...request }) => {
      if (typeof before === 'number') for (let i = 0; i < before; i++) await sendOne(request);
      else if (before !== undefined) expect((await sendOne(before)).status).toBeLessThan(300);
      const { status, body } = await sendOne(request);
      expect([JSON.parse(body).code, status]).toEqual([
        code,
        Object.entries(ERRORS).find(([known]) => known === code)?.[1].status,
      ]);
    },
  );
});

it('each error code has a request or a reason why there is none', () => {
  const covered = [...Object.keys(ERROR_REQUESTS), ...Object.keys(WITHOUT_REQUEST)];
  expect(new Set(covered)).toEqual(new Set(Object.keys(ERRORS)));
  expect(covered).toHaveLength(Object.keys(ERRORS).length);
});
