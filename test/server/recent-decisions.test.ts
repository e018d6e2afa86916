/** From a denied request to its explanation: a real Envoy, the whole server as a process, a real PostgreSQL. */

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { FreshDatabase } from '../support/database.ts';
import type { Edge } from '../support/envoy.ts';
import { type Answer, send } from '../support/http.ts';
import { call, done, login, makeKey, makeUser } from './support/client.ts';
import { eventually } from './support/eventually.ts';
import { openPlatform, type Platform } from './support/platform.ts';
import { metric, type Server } from './support/postern.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const RECENT = '/v1/iam/decisions/recent';
const CHAT = '/v1/chat/completions';

let platform: Platform;
let database: FreshDatabase;
let server: Server;
let edge: Edge;
let admin: string;
let auditor: string;

beforeAll(async () => {
  platform = await openPlatform({ POSTERN_LIMITS_WINDOW: '365d' });
  ({ database, server, edge, admin } = platform);
  await done(server.http, 'POST', '/v1/iam/tenants', { token: admin, body: { id: 'acme', name: 'Acme' } });
  auditor = await login(server.http, await makeUser(server.http, admin, { roles: ['auditor'], tenant: 'acme' }));
});

afterAll(() => platform?.close());

function ask(
  key: string | undefined,
  path: string,
  body?: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return send(edge.url, {
    method: body === undefined ? 'GET' : 'POST',
    path,
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

/** The recorded decision of a denied request, once a gate has written it. */
async function opened(answer: Answer, token: string, query = ''): Promise<Readonly<Record<string, unknown>>> {
  const id = String(JSON.parse(answer.body).request_id);
  return eventually(`the decision of ${id}`, async () => {
    const reply = await call(server.http, 'GET', `${RECENT}/${id}${query}`, { token });
    return reply.status === 200 && reply.body;
  });
}

it('an allow of a key through Envoy is the last use of its permission, and denied ones are no use', async () => {
  const scopes = ['models:read', 'chat:read'];
  const { id, key } = await makeKey(server.http, admin, { tenant: 'acme', scopes });
  expect((await ask(key, '/v1/models')).status).toBe(200);
  expect((await ask(key, CHAT, { model: 'llama-3', messages: [] })).status).toBe(403);
  const path = `/v1/iam/api-keys/${id}/permissions`;
  const { data } = await eventually('the use is written', async () => {
    const { body } = await done(server.http, 'GET', path, { token: admin, tenant: 'acme' });
    return JSON.stringify(body).includes('-') && body;
  });
  expect(data).toEqual([
    { permission: 'chat:read', last_used_on: null },
    { permission: 'models:read', last_used_on: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) },
  ]);
});

describe('a denial through Envoy', () => {
  it('is opened by the request id of its answer, with what the decision read and why it denied', async () => {
    const { id, key } = await makeKey(server.http, admin, { tenant: 'acme', scopes: ['chat:read'] });
    const answer = await ask(key, `${CHAT}?api_key=hunter2hunter2`, {
      model: 'llama-3',
      messages: [{ content: 'my secret' }],
    });
    expect(answer.status).toBe(403);
    expect(answer.headers['x-request-id']).toBe(JSON.parse(answer.body).request_id);
    const decision = await opened(answer, auditor);
    expect(decision).toMatchObject({
      tenant_id: 'acme',
      outcome: 'deny',
      code: 'insufficient_permission',
      principal: { type: 'api_key', id },
      method: 'POST',
      path: CHAT,
      route: `POST ${CHAT}`,
      permission: 'chat:write',
      resources: ['models/llama-3'],
      client_ip: '127.0.0.1',
      policy: null,
      sampled: false,
      request: {
        subject: id,
        method: 'POST',
        path: CHAT,
        body: '{"model":"llama-3"}',
        content_type: 'application/json',
      },
      explanation: { decision: 'deny', code: 'insufficient_permission', same: true, permission: 'chat:write' },
      not_explained: null,
    });
    const stored = JSON.stringify(await database.db.query({ text: 'select * from recent_decisions' }));
    for (const secret of [key, 'hunter2', 'my secret']) expect(stored).not.toContain(secret);
  });

  it('returns the request in the form that simulate accepts, so that a change can be tried against it', async () => {
    const scopes = ['chat:*'];
    const { key } = await makeKey(server.http, admin, { tenant: 'acme', scopes });
    const policy = {
      name: 'no-llama',
      effect: 'deny',
      actions: ['chat:write'],
      resources: ['models/llama-3'],
      applies_to: 'everyone',
    };
    await done(server.http, 'POST', '/v1/iam/policies', { token: admin, tenant: 'acme', body: policy });
    const answer = await ask(key, CHAT, { model: 'llama-3', messages: [] });
    expect(JSON.parse(answer.body).code).toBe('denied_by_policy');
    const decision = await opened(answer, admin, '?tenant_id=acme');
    expect(decision).toMatchObject({ policy: 'no-llama', explanation: { policy: 'no-llama', same: true } });
    const simulated = await done(server.http, 'POST', '/v1/iam/explain/simulate', {
      token: admin,
      body: { ...Object(decision['request']), policies: [{ ...policy, enabled: false }] },
    });
    expect(simulated.body).toMatchObject({ decision: 'allow', current: { code: 'denied_by_policy' } });
    await done(server.http, 'DELETE', '/v1/iam/policies/no-llama', { token: admin, tenant: 'acme' });
    const changed = await opened(answer, auditor);
    expect(changed).toMatchObject({ code: 'denied_by_policy', explanation: { code: 'allow', same: false } });
  });

  it('by a limit is explained by its step', async () => {
    await done(server.http, 'POST', '/v1/iam/tenants', {
      token: admin,
      body: { id: 'small', name: 'Small', quotas: { monthly_tokens: 10 } },
    });
    const { key } = await makeKey(server.http, admin, { tenant: 'small', scopes: ['chat:*'] });
    const answer = await ask(key, CHAT, { model: 'llama-3', max_tokens: 500, messages: [] });
    expect(answer.status).toBe(429);
    const decision = await opened(answer, admin, '?tenant_id=small');
    expect(decision).toMatchObject({
      code: 'insufficient_quota',
      resources: ['models/llama-3'],
      explanation: { code: 'insufficient_quota', status: 429, same: true },
    });
    const { steps } = Object(decision['explanation']);
    expect(steps.slice(-2)).toMatchObject([
      { line: 17, outcome: 'denied' },
      { line: 18, outcome: 'not_evaluated' },
    ]);
  });

  it.each([
    ['missing_credential', 401, undefined, '/v1/models', {}],
    ['invalid_credential', 401, 'psk_of_nobody', '/v1/models', {}],
    ['no_route', 403, undefined, '/v1/nothing-here', {}],
    ['malformed_path', 400, undefined, '/v1/a%3b/psk_0123456789abcdefghij', {}],
  ])(
    'without a principal (%s) is shown to platform administrators alone, and only among all tenants',
    async (code, status, key, path, headers) => {
      const answer = await ask(key, path, undefined, headers);
      expect([answer.status, JSON.parse(answer.body).code]).toEqual([status, code]);
      const decision = await opened(answer, admin, '?tenant_id=*');
      expect(decision).toMatchObject({ code, tenant_id: null, principal: null });
      expect(JSON.stringify(decision)).not.toContain('psk_0123456789');
      if (decision['not_explained'] === null) expect(decision).toMatchObject({ explanation: { code, same: true } });
      else expect([code, decision['not_explained']]).toEqual(['malformed_path', 'altered']);
      const id = String(decision['request_id']);
      for (const token of [auditor, admin]) {
        expect((await call(server.http, 'GET', `${RECENT}/${id}`, { token })).status).toBe(404);
      }
      expect((await call(server.http, 'GET', `${RECENT}/${id}?tenant_id=*`, { token: auditor })).status).toBe(403);
    },
  );

  it('of a platform administrator in another tenant belongs to that tenant, which does not see who the administrator is elsewhere', async () => {
    const strict = { name: 'no-chat', effect: 'deny', actions: ['chat:*'], resources: ['*'], applies_to: 'everyone' };
    await done(server.http, 'POST', '/v1/iam/policies', { token: admin, tenant: 'acme', body: strict });
    const answer = await ask(admin, CHAT, { model: 'llama-3', messages: [] }, { 'x-tenant-id': 'acme' });
    expect(JSON.parse(answer.body).code).toBe('denied_by_policy');
    expect(await opened(answer, auditor)).toMatchObject({
      tenant_id: 'acme',
      explanation: null,
      not_explained: 'unknown_principal',
    });
    expect(await opened(answer, admin, '?tenant_id=acme')).toMatchObject({
      explanation: { policy: 'no-chat', same: true },
    });
    const id = String(JSON.parse(answer.body).request_id);
    expect((await call(server.http, 'GET', `${RECENT}/${id}`, { token: admin })).status).toBe(404);
    await done(server.http, 'DELETE', '/v1/iam/policies/no-chat', { token: admin, tenant: 'acme' });
  });
});

describe('a flood', () => {
  it("is sampled, says so, and takes no place from another tenant's denials", async () => {
    const flooder = await makeKey(server.http, admin, { tenant: 'small', scopes: ['rag:read'] });
    const quiet = await makeKey(server.http, admin, { tenant: 'acme', scopes: ['rag:read'] });
    const answers: Answer[] = [];
    for (let round = 0; round < 12; round++) {
      const flood = Array.from({ length: 100 }, () => ask(flooder.key, '/v1/models'));
      const anonymous = Array.from({ length: 50 }, () => ask(undefined, '/v1/models'));
      answers.push(await ask(quiet.key, '/v1/models'));
      await Promise.all([...flood, ...anonymous]);
    }
    for (const answer of answers)
      expect(await opened(answer, auditor)).toMatchObject({ code: 'insufficient_permission' });
    const list = await eventually('sampled denials', async () => {
      const { body } = await done(server.http, 'GET', `${RECENT}?tenant_id=small&outcome=deny&limit=200`, {
        token: admin,
      });
      return body['sampled'] === true && body;
    });
    expect(Array.isArray(list['data']) && list['data'].length).toBeLessThan(1200);
    const { body } = await done(server.http, 'GET', `${RECENT}?principal=${quiet.id}`, { token: auditor });
    expect(body).toMatchObject({ sampled: false });
    expect(Array.isArray(body['data']) && body['data'].length).toBe(12);
    expect(await metric(server.admin, 'postern_recent_denials_dropped_total')).toBeGreaterThan(0);
  });
});
