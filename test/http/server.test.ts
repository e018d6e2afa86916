import { describe, expect, test } from 'vitest';
import { sendRaw } from '../support/http.ts';
import { type Harness, it, outcome } from './harness.ts';

let h: Harness;
it.beforeAll(({ harness }) => {
  h = harness;
});

const USERS = '/v1/iam/users';
const asRoot = () => ({ as: h.root.token });

describe('errors', () => {
  test('every error is a problem document that carries the request id of its header and the error member of OpenAI clients', async () => {
    const reply = await h.api('GET', `${USERS}/nobody`, asRoot());
    expect(reply.headers['content-type']).toMatch(/^application\/problem\+json/);
    expect(reply.headers['x-request-id']).toMatch(/^req_[0-9a-z]{26}$/);
    expect(reply.json).toEqual({
      type: 'https://postern.dev/errors/not_found',
      title: 'Not found',
      status: 404,
      detail: 'The user does not exist, or it belongs to another tenant.',
      code: 'not_found',
      request_id: reply.headers['x-request-id'],
      error: {
        message: 'The user does not exist, or it belongs to another tenant.',
        type: 'invalid_request_error',
        param: null,
        code: 'not_found',
      },
    });
  });

  test.each([
    ['an unknown path', 'GET', '/v1/iam/nothing', '404 not_found'],
    ['a path with a duplicate slash', 'GET', '/v1//iam/users', '404 not_found'],
    ['a path that does not decode', 'GET', '/v1/iam/users/%ff', '404 not_found'],
    ['a path parameter with NUL', 'GET', '/v1/iam/users/%00', '404 not_found'],
    ['a path parameter that is a path', 'GET', '/v1/iam/roles/..%2f..%2fetc', '404 not_found'],
    ['a very long path parameter', 'GET', `/v1/iam/policies/${'x'.repeat(4000)}`, '404 not_found'],
    ['a name in capital letters', 'GET', '/v1/iam/roles/ADMIN', '404 not_found'],
    ['an unknown query parameter', 'GET', `${USERS}?colour=red`, '400 invalid_parameter'],
    ['a repeated query parameter', 'GET', `${USERS}?limit=1&limit=2`, '400 invalid_parameter'],
    ['a limit of zero', 'GET', `${USERS}?limit=0`, '400 invalid_parameter'],
    ['a limit over 200', 'GET', `${USERS}?limit=201`, '400 invalid_parameter'],
    ['a limit in words', 'GET', `${USERS}?limit=ten`, '400 invalid_parameter'],
    ['a status that there is not', 'GET', `${USERS}?status=asleep`, '400 invalid_parameter'],
    ['a filter with NUL', 'GET', `${USERS}?q=%00`, '400 invalid_parameter'],
    ['a filter that is not UTF-8', 'GET', `${USERS}?q=%ff`, '400 invalid_parameter'],
    ['a filter that is not percent-encoded', 'GET', `${USERS}?limit=2&q=1%`, '400 invalid_parameter'],
    ['a cursor that is none', 'GET', `${USERS}?cursor=abc`, '400 invalid_parameter'],
  ])('%s is refused', async (_name, method, path, expected) => {
    const reply = await h.api(method, path, asRoot());
    expect(outcome(reply)).toBe(expected);
    expect(reply.headers['x-request-id']).toBe(reply.json['request_id']);
    expect([reply.headers['cache-control'], reply.headers['x-content-type-options']]).toEqual(['no-store', 'nosniff']);
  });

  test('a known path with another method is answered with the allowed ones', async () => {
    const reply = await h.api('POST', `${USERS}/x`, asRoot());
    expect(outcome(reply)).toBe('405 method_not_allowed');
    expect(reply.headers['allow']).toBe('GET, PUT, PATCH, DELETE, HEAD');
  });

  test.each([
    ['QUERY', USERS, '405 method_not_allowed'],
    ['TRACE', USERS, '405 method_not_allowed'],
    ['PATCH', USERS, '405 method_not_allowed'],
    ['POST', '/v1/iam/nothing', '404 not_found'],
  ])('%s %s is rejected before an error in its body', async (method, path, expected) => {
    for (const headers of [{}, { 'content-type': 'text/plain' }, { 'content-type': 'application/json' }]) {
      const body = method === 'TRACE' ? {} : { raw: 'no JSON' };
      expect(outcome(await h.api(method, path, { ...asRoot(), headers, ...body }))).toBe(expected);
    }
  });

  test('HEAD answers as GET does, without a body', async () => {
    const reply = await h.api('HEAD', USERS, asRoot());
    expect([reply.status, reply.text]).toEqual([200, '']);
  });

  test('bytes that are not HTTP get an answer and cause no crash', async () => {
    const answer = await sendRaw(h.port, 'GET / HTTP/1.1\r\nBroken\x01Header\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 400 [\s\S]*malformed_request/);
    expect(answer).toMatch(/\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n/i);
    expect((await h.api('GET', USERS, asRoot())).status).toBe(200);
  });

  test.each([
    ['no Host header', ''],
    ['two Host headers', 'Host: a\r\nHost: a\r\n'],
  ])('a request with %s is refused with a problem document', async (_name, host) => {
    const answer = await sendRaw(h.port, `GET /v1/auth/me HTTP/1.1\r\n${host}Connection: close\r\n\r\n`);
    expect(answer).toMatch(
      /^HTTP\/1\.1 400 [\s\S]*x-request-id: req_[\s\S]*application\/problem\+json[\s\S]*"code":"malformed_request"/,
    );
  });

  test('an HTTP/1.0 request needs no Host header', async () => {
    const answer = await sendRaw(h.port, `GET /v1/auth/me HTTP/1.0\r\nAuthorization: Bearer ${h.root.token}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('an unknown expectation does not change the answer', async () => {
    const answer = await sendRaw(
      h.port,
      'GET /v1/auth/me HTTP/1.1\r\nHost: a\r\nExpect: more\r\nConnection: close\r\n\r\n',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 401 [\s\S]*"code":"missing_credential"/);
  });

  test('two different Content-Length headers are refused', async () => {
    const raw = 'POST /v1/iam/users HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}';
    expect(await sendRaw(h.port, raw)).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe('bodies', () => {
  const json = { 'content-type': 'application/json' };
  const post = (raw: string | Uint8Array, headers: Record<string, string> = json) =>
    h.api('POST', USERS, { as: h.root.token, raw, headers });

  test.each([
    ['no body', ''],
    ['half a body', '{"email":'],
    ['a repeated member', '{"email":"a@b","email":"c@d","name":"x"}'],
    ['a member repeated by an escape', '{"email":"a@b","em\\u0061il":"c@d","name":"x"}'],
    ['invalid UTF-8', Uint8Array.of(0x22, 0xff, 0x22)],
    ['a byte-order mark', '\uFEFF{}'],
    ['nesting without end', '['.repeat(60_000)],
    ['deep nesting', `${'['.repeat(40)}${']'.repeat(40)}`],
  ])('%s is invalid_json', async (_name, raw) => {
    expect(outcome(await post(raw))).toBe('400 invalid_json');
  });

  test.each([
    ['text', 'text/plain'],
    ['a form', 'application/x-www-form-urlencoded'],
    ['another charset', 'application/json; charset=latin1'],
  ])('%s is an unsupported media type', async (_name, type) => {
    expect(outcome(await post('{}', { 'content-type': type }))).toBe('415 unsupported_media_type');
  });

  test('a compressed body is an unsupported media type', async () => {
    expect(outcome(await post('{}', { ...json, 'content-encoding': 'gzip' }))).toBe('415 unsupported_media_type');
  });

  test('a body with the coding identity, in any case, is one without a coding', async () => {
    const path = '/v1/auth/login';
    const as = async (encoding: string) =>
      outcome(await h.api('POST', path, { headers: { 'content-encoding': encoding }, body: { username: 'x' } }));
    expect([await as('identity'), await as('Identity'), await as('IDENTITY')]).toEqual(
      Array(3).fill('422 invalid_field'),
    );
    expect(await as('identity, gzip')).toBe('415 unsupported_media_type');
  });

  test('all members at fault are named by JSON pointers, unknown ones among them', async () => {
    const reply = await post('{"email":"no address","department":7,"a/b":1,"roles":["x",2]}');
    expect(outcome(reply)).toBe('422 invalid_field');
    const errors = reply.json['errors'];
    const paths = Array.isArray(errors) ? errors.map((error: { path: string }) => error.path).toSorted() : [];
    expect(paths).toEqual(['/a~1b', '/department', '/email', '/name', '/roles/1']);
  });

  test.each([
    ['NUL', '{"email":"a@b.test","name":"a\\u0000b"}'],
    ['a lone surrogate', '{"email":"a@b.test","name":"\\ud800"}'],
  ])('text with %s is refused by its member, because it cannot be kept', async (_name, raw) => {
    const reply = await post(raw);
    expect([outcome(reply), reply.json['errors']]).toMatchObject(['422 invalid_field', [{ path: '/name' }]]);
  });

  test('a large body with errors everywhere is refused by its first', async () => {
    const reply = await post(
      JSON.stringify({ email: 'a@b.test', name: 'x', roles: Array.from({ length: 30_000 }, () => 1) }),
    );
    expect(outcome(reply)).toBe('422 invalid_field');
    expect(reply.json['errors']).toHaveLength(1);
  });
});

describe('authentication', () => {
  test('without a credential the challenge carries no error', async () => {
    const reply = await h.api('GET', USERS);
    expect(outcome(reply)).toBe('401 missing_credential');
    expect(reply.headers['www-authenticate']).toBe('Bearer realm="postern"');
  });

  test.each([
    ['an unknown key', 'psk_00000000000000000000000000000000000000'],
    ['a made-up token', 'a.b.c'],
    ['two credentials', 'a, Bearer b'],
  ])('%s gets the same 401 as every invalid credential', async (_name, as) => {
    const reply = await h.api('GET', USERS, { as });
    expect(outcome(reply)).toBe('401 invalid_credential');
    expect(reply.headers['www-authenticate']).toBe('Bearer realm="postern", error="invalid_token"');
    expect(reply.json['detail']).toBe('The credential is not valid.');
  });

  test('a missing credential is reported before an error in the body', async () => {
    expect(outcome(await h.api('POST', USERS, { raw: '{', headers: { 'content-type': 'application/json' } }))).toBe(
      '401 missing_credential',
    );
  });

  test('a repeated Authorization header is refused, also when both are good', async () => {
    const raw = `GET ${USERS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${h.root.token}\r\nAuthorization: Bearer ${h.root.token}\r\n\r\n`;
    expect(await sendRaw(h.port, raw)).toMatch(/^HTTP\/1\.1 401 [\s\S]*invalid_credential/);
  });

  test('a repeated X-Tenant-ID header is refused, also when both are the same', async () => {
    const raw = `GET ${USERS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${h.root.token}\r\nX-Tenant-ID: default\r\nX-Tenant-ID: default\r\n\r\n`;
    expect(await sendRaw(h.port, raw)).toMatch(/^HTTP\/1\.1 400 [\s\S]*invalid_tenant/);
  });

  test('a missing permission is named in the challenge', async () => {
    const someone = await h.person('default', ['developer']);
    const reply = await h.api('GET', USERS, { as: someone.token });
    expect(outcome(reply)).toBe('403 insufficient_permission');
    expect(reply.headers['www-authenticate']).toBe(
      'Bearer realm="postern", error="insufficient_scope", scope="admin:users"',
    );
  });
});

test('answers forbid every cache', async () => {
  expect((await h.api('GET', USERS, asRoot())).headers['cache-control']).toBe('no-store');
});

test('a conflict has X-Should-Retry: false', async () => {
  const body = { id: 'default', name: 'Twice' };
  const reply = await h.api('POST', '/v1/iam/tenants', { ...asRoot(), body });
  expect([outcome(reply), reply.headers['x-should-retry']]).toEqual(['409 already_exists', 'false']);
});
