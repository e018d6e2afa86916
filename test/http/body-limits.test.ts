/** How much of a body is taken, by route, and how much work is done for one that is refused. */

import { describe, expect, test } from 'vitest';
import type { Endpoint } from '../../src/http/endpoint.ts';
import { sendRaw } from '../support/http.ts';
import { type Harness, it, outcome, text, unique } from './harness.ts';

const KIB = 1024;
const JSON_TYPE = { 'content-type': 'application/json' };

let h: Harness;
it.beforeAll(({ harness }) => {
  h = harness;
});

const pathOf = ({ path }: Endpoint) => path.replace(/:\w+/g, 'x');
const takingBodies = () => h.routes.filter(({ method }) => method !== 'GET');
const login = (raw: string, headers = {}) =>
  h.api('POST', '/v1/auth/login', { raw, headers: { ...JSON_TYPE, ...headers } });

describe('a body over the limit of its route', () => {
  test('is refused by its Content-Length, on every route, before a byte of it has come', async () => {
    const wrong: string[] = [];
    for (const route of takingBodies()) {
      const head = [
        `${route.method} ${pathOf(route)} HTTP/1.1`,
        'Host: localhost',
        `Authorization: Bearer ${h.root.token}`,
        'Content-Type: application/json',
        `Content-Length: ${route.maxBodyBytes + 1}`,
      ];
      const answer = await sendRaw(h.port, `${head.join('\r\n')}\r\n\r\n`);
      if (!/^HTTP\/1\.1 413 [\s\S]*"body_too_large"/.test(answer))
        wrong.push(`${route.method} ${route.path}: ${answer.slice(0, 60)}`);
    }
    expect(wrong).toEqual([]);
  });

  test('is rejected without an announced length too', async () => {
    const raw = `{"email":"${'a'.repeat(16 * KIB)}"}`;
    expect(outcome(await login(raw, { 'transfer-encoding': 'chunked' }))).toBe('413 body_too_large');
  });

  test('is over 16 KiB under /v1/auth, 20 KiB for a form with a token there, and 1 MiB elsewhere', () => {
    for (const { path, form, maxBodyBytes } of takingBodies()) {
      expect(maxBodyBytes, path).toBe(path.startsWith('/v1/auth/') ? (form ? 20 : 16) * KIB : 1024 * KIB);
    }
  });

  test('is refused before it is parsed: 16 KiB that are not JSON are invalid_json, and one byte more too large', async () => {
    expect(outcome(await login('['.repeat(16 * KIB)))).toBe('400 invalid_json');
    const reply = await login('['.repeat(16 * KIB + 1));
    expect([outcome(reply), reply.json['detail']]).toEqual(['413 body_too_large', 'The body is larger than 16 KiB.']);
  });
});

describe('a valid body with the largest members', () => {
  /** Each character outside ASCII as two escapes, as many clients write it. */
  const escaped = (body: object) =>
    JSON.stringify(body).replace(
      /[\u0080-\uffff]/g,
      (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
  const metadata = Object.fromEntries(
    Array.from({ length: 16 }, (_, i) => [`${i % 10}${'\u{1f600}'.repeat(i < 10 ? 63 : 62)}`, '\u{1f600}'.repeat(512)]),
  );
  const rateLimits = Array.from({ length: 32 }, (_rule, i) => ({
    models: Array.from({ length: 16 }, (_glob, j) => `${i}-${j}-`.padEnd(256, 'm')),
    parallel: 1,
  }));
  const put = (path: string, body: object) =>
    h.api('PUT', path, { as: h.root.token, raw: escaped(body), headers: JSON_TYPE });

  test('is taken for users and tenants', async () => {
    const tenant = unique('large');
    const made = await h.api('POST', '/v1/iam/tenants', {
      as: h.root.token,
      raw: escaped({ id: tenant, name: 'x', metadata }),
      headers: JSON_TYPE,
    });
    expect(outcome(made)).toBe('201');
    const changed = await put(`/v1/iam/tenants/${tenant}`, { settings: { rate_limits: rateLimits } });
    expect(outcome(changed)).toBe('200');
    const user = await h.api('POST', '/v1/iam/users', {
      as: h.root.token,
      tenant,
      raw: escaped({ email: `${tenant}@example.test`, name: 'x', metadata }),
      headers: JSON_TYPE,
    });
    expect(outcome(user)).toBe('201');
    expect(outcome(await put(`/v1/iam/users/${text(user.json, 'id')}`, { rate_limits: rateLimits }))).toBe('200');
  });

  test('is taken by explain and simulate', async () => {
    const content = '\u6f22'.repeat(131_000);
    const asked = { subject: h.root.id, method: 'POST', path: '/v1/chat/completions' };
    const body = { ...asked, body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] }) };
    for (const path of ['/v1/iam/explain', '/v1/iam/explain/simulate']) {
      const reply = await h.api('POST', path, { as: h.root.token, body });
      expect([outcome(reply), reply.json['code']]).toEqual(['200', 'allow']);
    }
  });
});

describe('a body within the limit of its route', () => {
  const POLICY = { name: 'p', effect: 'deny', resources: ['*'], enabled: false };
  const policy = (raw: string) => h.api('POST', '/v1/iam/policies', { as: h.root.token, raw, headers: JSON_TYPE });

  test.each([
    ['many values', JSON.stringify({ ...POLICY, actions: Array(50_000).fill([]) })],
    ['many members', `{${Array.from({ length: 50_000 }, (_, i) => `"m${i}":0`).join()}}`],
    ['a long name', `{"${'a'.repeat(100_000)}":0}`],
  ])('with %s is refused by its structure', async (_name, raw) => {
    const reply = await policy(raw);
    expect(outcome(reply)).toBe('422 invalid_field');
    expect(reply.text.length).toBeLessThan(1_000);
  });

  test('is checked against its schema before its texts are searched', async () => {
    const reply = await policy(JSON.stringify({ ...POLICY, actions: [...Array(2_000).fill('\0'), 7] }));
    expect([outcome(reply), reply.json['errors']]).toMatchObject([
      '422 invalid_field',
      [{ path: '/actions', message: expect.stringContaining('1000') }],
    ]);
  });

  test('gets at most 50 errors, from each validator', async () => {
    const told = async (body: object): Promise<number> => {
      const reply = await policy(JSON.stringify(body));
      expect(outcome(reply)).toBe('422 invalid_field');
      const { errors } = reply.json;
      return Array.isArray(errors) ? errors.length : 0;
    };
    expect(await told({ ...POLICY, actions: Array(900).fill(7) })).toBe(50);
    expect(await told({ ...POLICY, actions: Array(900).fill('no pattern') })).toBe(50);
    expect(await told({ ...POLICY, actions: Array(900).fill('\0') })).toBe(50);
  });
});

describe('a query', () => {
  test('of more parameters than any route has is refused for that', async () => {
    const list = (n: number) =>
      h.api('GET', `/v1/iam/users?${Array.from({ length: n }, (_, i) => `p${i}=`).join('&')}`, { as: h.root.token });
    const refused = await list(3_000);
    expect([outcome(refused), refused.json['detail']]).toEqual([
      '400 invalid_parameter',
      'The query has more than 64 parameters.',
    ]);
    expect((await list(64)).json['detail']).toMatch(/^`p0` is unknown\. Known ones: limit, .*\.$/);
  });
});

describe('a header that is a list', () => {
  test('of more entity tags than a client needs is refused', async () => {
    const headers = { 'if-match': Array(257).fill('"a"').join() };
    const reply = await h.api('PUT', '/v1/iam/tenants/default', { as: h.root.token, headers, body: { name: 'x' } });
    expect(outcome(reply)).toBe('400 invalid_parameter');
  });

  test('may be in several lines', async () => {
    const reply = await h.api('GET', '/v1/iam/audit', {
      as: h.root.token,
      headers: { accept: ['application/x-ndjson;q=0.5', 'text/csv'] },
    });
    expect(reply.headers['content-type']).toContain('text/csv');
    const path = '/.well-known/jwks.json';
    const etag = String((await h.api('GET', path)).headers['etag']);
    expect((await h.api('GET', path, { headers: { 'if-none-match': ['"other"', etag] } })).status).toBe(304);
  });

  test('of media types is read up to its 64th', async () => {
    const accept = (before: number) => `${'a/b,'.repeat(before)}text/csv;q=1, application/json;q=0`;
    const typeOf = async (before: number) =>
      (await h.api('GET', '/v1/iam/audit', { as: h.root.token, headers: { accept: accept(before) } })).headers[
        'content-type'
      ];
    expect(await typeOf(60)).toContain('text/csv');
    expect(await typeOf(64)).toContain('application/json');
  });
});
