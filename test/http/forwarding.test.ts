/**
 * Requests through proxies that the configuration does not name: the address that policies see, and the warning to the
 * operator.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { proxyWarnings, watchForwarding } from '../../src/http/forwarding.ts';
import { startHealthServer } from '../../src/http/health.ts';
import { send } from '../support/http.ts';
import { type Harness, outcome, type Person, startHarness } from './harness.ts';

const logged: string[] = [];
const watch = watchForwarding((message) => logged.push(message));

let h: Harness;
let user: Person;
let auditor: Person;
beforeAll(async () => {
  h = await startHarness({ onUntrustedForwarding: watch.onUntrustedForwarding });
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'acme', name: 'Acme' } });
  user = await h.person('acme', ['developer']);
  auditor = await h.person('acme', ['auditor']);
  const policy = {
    resources: ['*'],
    applies_to: 'everyone',
    conditions: { ip_address: { in: ['127.0.0.0/8', '10.0.0.0/8'] } },
  };
  const made = [
    await h.api('POST', '/v1/iam/policies', {
      as: h.root.token,
      tenant: 'acme',
      body: { ...policy, name: 'inside', effect: 'allow', actions: ['admin:users'] },
    }),
    await h.api('POST', '/v1/iam/policies', {
      as: h.root.token,
      tenant: 'acme',
      body: {
        ...policy,
        name: 'outside',
        effect: 'deny',
        actions: ['audit:read'],
        conditions: { ip_address: { in: ['198.51.100.0/24'] } },
      },
    }),
  ];
  expect(made.map(outcome)).toEqual(['201', '201']);
});
afterAll(async () => {
  await h.close();
});

const FORWARDED = { 'x-forwarded-for': '10.0.0.5' };
const readUsers = (headers = {}) => h.api('GET', '/v1/iam/users', { as: user.token, headers });
const readAudit = (headers = {}) => h.api('GET', '/v1/iam/audit', { as: auditor.token, headers });

describe('a request with X-Forwarded-For from a peer that is not trusted', () => {
  test('is not allowed by a policy on an address, neither its own nor the one that it names', async () => {
    expect(outcome(await readUsers())).toBe('200');
    expect(outcome(await readUsers(FORWARDED))).toBe('403 insufficient_permission');
  });

  test('is denied by a policy on an address', async () => {
    expect(outcome(await readAudit())).toBe('200');
    expect(outcome(await readAudit(FORWARDED))).toBe('403 denied_by_policy');
  });

  test('is logged once, and reported on /readyz after that', async () => {
    const health = await startHealthServer({
      listen: { host: '127.0.0.1', port: 0 },
      ready: () => [],
      warnings: watch.warnings,
      metrics: async () => '',
    });
    for (let i = 0; i < 3; i++) await readAudit(FORWARDED);
    const { status, body } = await send(`http://127.0.0.1:${health.address.port}`, { path: '/readyz' }).finally(() =>
      health.close(),
    );
    expect([status, JSON.parse(body)]).toEqual([
      200,
      { status: 'ready', warnings: [expect.stringMatching(/^http\.trusted-proxies: .* came from 127\.0\.0\.1/)] },
    ]);
    expect(logged).toHaveLength(1);
  });
});

test('/readyz has no warning before the first such request', () => {
  expect(watchForwarding(() => undefined).warnings()).toEqual([]);
});

describe('the start of a server without trusted proxies', () => {
  const warned = (host: string, trustedProxies: readonly string[] = []) =>
    proxyWarnings({ listen: { host }, trustedProxies }).length;

  test.each(['0.0.0.0', '::', '10.0.0.7', 'postern.internal'])('warns where the API listens on %s', (host) => {
    expect(warned(host)).toBe(1);
  });

  test.each(['127.0.0.1', '127.0.0.53', '::1', 'localhost'])('does not warn where the API listens on %s', (host) => {
    expect(warned(host)).toBe(0);
  });

  test('does not warn if proxies are configured', () => {
    expect(warned('0.0.0.0', ['10.0.0.1'])).toBe(0);
  });
});
