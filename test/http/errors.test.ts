/** Every code of the catalogue is produced by a request over a socket, in the one shape of refusals. */

import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ERRORS, type ErrorCode } from '../../src/domain/errors.ts';
import { DEFAULT_TENANT, makeId } from '../../src/domain/ids.ts';
import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { type ExtAuthzServer, startExtAuthz } from '../../src/extauthz/server.ts';
import type { LimitDecision } from '../../src/metering/admission.ts';
import { connectTo, type TestClient } from '../extauthz/support/client.ts';
import { readAnswer } from '../extauthz/support/definition.ts';
import { checkRequest, type RequestSpec } from '../extauthz/support/requests.ts';
import { sendRaw } from '../support/http.ts';
import { expired } from './directories.ts';
import { type Harness, type Json, type Reply, startHarness, text } from './harness.ts';
import { makeOne, newBody } from './resources.ts';

interface Refused {
  readonly status: number | undefined;
  readonly json: Json;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

let h: Harness;
let grpc: ExtAuthzServer;
let envoy: TestClient;
let admission: LimitDecision = { kind: 'admitted', reservation: undefined, rate: undefined };

beforeAll(async () => {
  h = await startHarness({ directory: expired() });
  const gate = createCheckHandler({
    routes: h.platformRoutes,
    resolver: h.live,
    limiter: { admit: () => admission, release: () => undefined },
    observer: { observe: () => undefined },
    trustedHops: 0,
    forwardCredential: false,
  });
  grpc = await startExtAuthz(gate, { listen: '127.0.0.1:0' });
  envoy = connectTo(grpc.address);
  await asRoot('POST', '/v1/iam/tenants', { id: 'acme', name: 'Acme', settings: { max_tokens_per_request: 100 } });
  const suspended = { id: 'asleep', name: 'Asleep' };
  await asRoot('POST', '/v1/iam/tenants', suspended);
});
afterAll(async () => {
  envoy.close();
  await grpc.drain(100);
  await h.close();
});

const CHAT = '/v1/chat/completions';
const USERS = '/v1/iam/users';
const JSON_TYPE = { 'content-type': 'application/json' };

const asRoot = (method: string, path: string, body?: object, headers = {}): Promise<Reply> =>
  h.api(method, path, { as: h.root.token, headers, ...(body === undefined ? {} : { body }) });

/** A check of a platform request, as Envoy sends it. */
async function check(as: string | undefined, spec: RequestSpec = {}): Promise<Refused> {
  const authorization = as === undefined ? [] : [['authorization', `Bearer ${as}`] as const];
  const body = {
    body: '{"model":"llama-3"}',
    headers: [...authorization, ['content-type', 'application/json'] as const],
  };
  const answer = readAnswer(await envoy.check(checkRequest({ path: CHAT, ...body, ...spec })));
  expect(answer.kind).toBe('denied');
  return { status: answer.status, json: { ...answer.body }, headers: answer.headers };
}

async function limited(refusal: LimitDecision): Promise<Refused> {
  const person = await h.person('default', ['developer']);
  admission = refusal;
  try {
    return await check(person.token);
  } finally {
    admission = { kind: 'admitted', reservation: undefined, rate: undefined };
  }
}

const RATE = { limit: 1, remaining: 0, resetSeconds: 30, windowSeconds: 60 };

/** Only the token endpoint answers with these codes, and not as a problem document: test/auth/exchange.test.ts. */
type TokenEndpointCode = 'invalid_scope' | 'invalid_subject_token' | 'invalid_target' | 'unsupported_grant_type';

/** The request that causes each code. `undefined`: no answer has the code, which a test below verifies. */
const CAUSES: Readonly<Record<Exclude<ErrorCode, TokenEndpointCode>, (() => Promise<Refused>) | undefined>> = {
  malformed_request: () => raw('GET / HTTP/1.1\r\nBroken\x01Header\r\n\r\n'),
  malformed_path: () => check(h.root.token, { path: '/v1//chat/completions' }),
  malformed_body: () => check(h.root.token, { body: '{"model":' }),
  invalid_tenant: () => asRoot('GET', USERS, undefined, { 'x-tenant-id': 'Not A Tenant' }),
  max_tokens_exceeded: async () => {
    const person = await h.person('acme', ['developer']);
    return check(person.token, { body: '{"model":"llama-3","max_tokens":101}' });
  },
  usage_required: async () => {
    await asRoot('PUT', '/v1/iam/tenants/acme', { settings: { require_stream_usage: true } });
    const person = await h.person('acme', ['developer']);
    return check(person.token, { body: '{"model":"llama-3","stream":true}' });
  },
  invalid_json: () => h.api('POST', USERS, { as: h.root.token, raw: '{"email":', headers: JSON_TYPE }),
  invalid_parameter: () => asRoot('GET', `${USERS}?colour=red`),
  missing_credential: () => h.api('GET', USERS),
  invalid_credential: () => h.api('GET', USERS, { as: 'psk_00000000000000000000000000000000000000' }),
  token_expired: async () => h.api('GET', '/v1/auth/me', { as: await expiredToken() }),
  no_route: () => check(h.root.token, { path: '/v1/nowhere' }),
  tenant_mismatch: async () =>
    h.api('GET', USERS, { as: (await h.person('acme', ['tenant-admin'])).token, tenant: 'default' }),
  tenant_suspended: async () => {
    const person = await h.person('asleep', ['tenant-admin']);
    await asRoot('POST', '/v1/iam/tenants/asleep/suspend');
    return h.api('GET', USERS, { as: person.token });
  },
  denied_by_policy: async () => {
    await asRoot(
      'POST',
      '/v1/iam/policies',
      { name: 'no-users', effect: 'deny', actions: ['admin:users'], resources: ['*'] },
      { 'x-tenant-id': 'acme' },
    );
    return h.api('GET', USERS, { as: (await h.person('acme', ['tenant-admin'])).token });
  },
  insufficient_permission: async () => h.api('GET', USERS, { as: (await h.person('default', ['developer'])).token }),
  resource_not_permitted: async () => {
    const role = await makeOne(h, 'roles');
    await asRoot('PUT', role.path, { permissions: ['chat:*'], resource_constraints: { models: ['gpt-*'] } });
    return check((await h.person('default', [role.id])).token);
  },
  escalation: async () =>
    h.api('POST', USERS, {
      as: (await h.person('default', ['tenant-admin'])).token,
      body: { email: 'strong@example.test', name: 'Strong', roles: ['admin'] },
    }),
  reauthentication_required: () => asRoot('POST', `${USERS}/${h.root.id}/password-reset`),
  builtin_role: () => asRoot('DELETE', '/v1/iam/roles/developer'),
  password_expired: () =>
    h.api('POST', '/v1/auth/login', { body: { auth_type: 'ldap', username: 'ada', password: 'right' } }),
  not_found: () => asRoot('GET', `${USERS}/nobody`),
  method_not_allowed: () => asRoot('PATCH', USERS, {}),
  already_exists: async () =>
    asRoot('POST', '/v1/iam/roles', { name: (await makeOne(h, 'roles')).id, permissions: [] }),
  in_use: async () => {
    const role = await makeOne(h, 'roles');
    await h.person('default', [role.id]);
    return asRoot('DELETE', role.path);
  },
  revoked: async () => {
    const { path } = await makeOne(h, 'api-keys');
    await asRoot('DELETE', path);
    return asRoot('POST', `${path}/rotate`);
  },
  last_admin: () => asRoot('DELETE', `${USERS}/${h.root.id}`),
  would_lock_out: async () =>
    h.api('POST', '/v1/iam/policies', {
      as: (await h.person('default', ['tenant-admin'])).token,
      body: { name: 'no-policies', effect: 'deny', actions: ['admin:policies'], resources: ['*'] },
    }),
  quota_exceeded: async () => {
    const { id, path } = await makeOne(h, 'tenants');
    await asRoot('PUT', path, { quotas: { max_users: 0 } });
    return asRoot('POST', USERS, { ...newBody('users'), tenant_id: id });
  },
  idempotency_in_progress: async () => {
    const blocker = await h.db.knex.transaction();
    // The first request waits here, inside its transaction.
    await blocker.raw(`select from tenants where id = 'default' for update`);
    const same = { 'idempotency-key': 'at the same time' };
    const first = asRoot('POST', '/v1/iam/roles', { name: 'slow', permissions: [] }, same);
    await expect.poll(waiting, { interval: 10, timeout: 20_000 }).toBe(1);
    const second = await asRoot('POST', '/v1/iam/roles', { name: 'slow', permissions: [] }, same);
    await blocker.rollback();
    await first;
    return second;
  },
  precondition_failed: async () => {
    const { path } = await makeOne(h, 'roles');
    return asRoot('PUT', path, { description: 'x' }, { 'if-match': '"another"' });
  },
  body_too_large: () =>
    h.api('POST', USERS, { as: h.root.token, raw: `"${'a'.repeat(1_048_576)}"`, headers: JSON_TYPE }),
  unsupported_media_type: () =>
    h.api('POST', USERS, { as: h.root.token, raw: '{}', headers: { 'content-type': 'text/plain' } }),
  invalid_field: () => asRoot('POST', USERS, { email: 'ada@example.test' }),
  idempotency_mismatch: async () => {
    const same = { 'idempotency-key': 'used for another' };
    await asRoot('POST', '/v1/iam/roles', newBody('roles'), same);
    return asRoot('POST', '/v1/iam/roles', newBody('roles'), same);
  },
  rate_limit_exceeded: () => limited({ kind: 'refused', code: 'rate_limit_exceeded', detail: 'Too many.', rate: RATE }),
  insufficient_quota: () =>
    limited({
      kind: 'refused',
      code: 'insufficient_quota',
      detail: 'None left.',
      resetsAt: '2026-12-01T00:00:00.000Z',
      rate: RATE,
    }),
  too_many_attempts: async () => {
    const login = () => h.api('POST', '/v1/auth/login', { body: { email: 'nobody@example.test', password: 'wrong' } });
    for (let i = 0; i < 10; i++) await login();
    return login();
  },
  unavailable: async () => {
    await h.cutDatabase();
    try {
      return await h.api('POST', '/v1/auth/login', { body: { email: 'nobody@example.test', password: 'wrong' } });
    } finally {
      await h.restoreDatabase();
    }
  },
};

async function raw(bytes: string): Promise<Refused> {
  const [head = '', body = ''] = (await sendRaw(h.port, bytes)).split('\r\n\r\n');
  const [first = '', ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.split(':')[0]?.toLowerCase(), line.replace(/^[^:]*: */, '')]),
  );
  return { status: Number(first.split(' ')[1]), json: JSON.parse(body), headers };
}

async function expiredToken(): Promise<string> {
  const subject = {
    userId: h.root.id,
    sessionId: makeId('ses', Date.now(), randomBytes(10)),
    tenantId: DEFAULT_TENANT,
  };
  return (await h.tokens.issue({ ...subject, nowMs: Date.now() - 2 * 3_600_000, jti: 'an old one' })).token;
}

async function waiting(): Promise<number> {
  const { rows } = await h.db.knex.raw<{ rows: { waiting: number }[] }>(
    `select count(*)::int as waiting from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rows[0]?.waiting ?? 0;
}

const ENTRIES = Object.entries(CAUSES).flatMap(([name, cause]) => {
  const code = Object.keys(ERRORS).find((known): known is ErrorCode => known === name);
  return code === undefined || cause === undefined ? [] : [{ code, cause, ...ERRORS[code] }];
});

describe('a refusal', () => {
  test.each(ENTRIES)(
    'of $code is a problem document of $status that says so',
    async ({ code, cause, status, title, type }) => {
      const { json, headers, ...refused } = await cause();
      const shown = {
        type: `https://postern.dev/errors/${code}`,
        title,
        status,
        detail: expect.stringMatching(/\S/),
        code,
        request_id: expect.stringMatching(/^req_[0-9a-z]{26}$/),
        error: { message: text(json, 'detail'), type, param: expect.toSatisfy(isParam), code },
      };
      expect([refused.status, json]).toEqual([status, expect.objectContaining(shown)]);
      expect(headers['content-type']).toMatch(/^application\/problem\+json/);
      expect(headers['www-authenticate']).toEqual(
        status === 401 || code === 'insufficient_permission'
          ? expect.stringMatching(/^Bearer realm="postern"/)
          : undefined,
      );
      const retried = [429, 503].includes(status) || code === 'idempotency_in_progress';
      if (code !== 'insufficient_quota') {
        expect(headers['retry-after']).toEqual(retried ? expect.stringMatching(/^[1-9]\d*$/) : undefined);
      }
      const advice =
        code === 'idempotency_in_progress'
          ? 'true'
          : status === 409 || code === 'insufficient_quota'
            ? 'false'
            : undefined;
      expect(headers['x-should-retry']).toBe(advice);
    },
  );

  test('of a code without a cause is nowhere in the program', async () => {
    const source = fileURLToPath(new URL('../../src', import.meta.url));
    const files = (await readdir(source, { recursive: true })).filter((file) => file.endsWith('.ts'));
    const texts = await Promise.all(
      files
        .filter((file) => !/errors\.ts$|refusals\.ts$/.test(file))
        .map((file) => readFile(join(source, file), 'utf8')),
    );
    const uncaused = Object.entries(CAUSES).flatMap(([code, cause]) => (cause === undefined ? [code] : []));
    expect(uncaused.filter((code) => texts.some((each) => each.includes(`'${code}'`)))).toEqual([]);
  });
});

function isParam(value: unknown): boolean {
  return value === null || typeof value === 'string';
}
