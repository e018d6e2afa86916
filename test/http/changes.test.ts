/**
 * Each committed write has an audit row, a failed write changes nothing, and no answer acknowledges a write without
 * both.
 */

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Fault, Refusal } from '../../src/domain/errors.ts';
import { makeId } from '../../src/domain/ids.ts';
import { changeAsSystem } from '../../src/iam/change/change.ts';
import { makeApiKey } from '../../src/identity/api-keys.ts';
import { type Harness, outcome, startHarness, text } from './harness.ts';

let h: Harness;
beforeAll(async () => {
  h = await startHarness({ settings: { POSTERN_HTTP_TRUSTED_PROXIES: '["127.0.0.0/8"]' } });
});
afterAll(async () => {
  await h.close();
});

const SYSTEM = { type: 'system', id: undefined, tenant: undefined, address: undefined, requestId: undefined } as const;

test('an audit row has the actor, action, target, address and request id, and the states before and after', async () => {
  const call = { as: h.root.token, headers: { 'x-forwarded-for': '198.51.100.9, 203.0.113.7, 127.0.0.2' } };
  await h.api('POST', '/v1/iam/tenants', { ...call, body: { id: 'acme', name: 'Acme' } });
  const reply = await h.api('PUT', '/v1/iam/tenants/acme', { ...call, body: { name: 'Acme Ltd' } });
  expect(await h.audit('tenant.update')).toEqual([
    expect.objectContaining({
      actor_type: 'user',
      actor_id: h.root.id,
      tenant_id: 'acme',
      address: '203.0.113.7',
      action: 'tenant.update',
      target_type: 'tenant',
      target_id: 'acme',
      result: 'success',
      before: expect.objectContaining({ name: 'Acme' }),
      after: expect.objectContaining({ name: 'Acme Ltd' }),
      request_id: reply.headers['x-request-id'],
    }),
  ]);
});

test('every kind of write leaves exactly one row', async () => {
  const as = h.root.token;
  const start = (await h.audit()).length;
  const post = (path: string, body?: object) =>
    h.api('POST', `/v1/iam/${path}`, { as, ...(body === undefined ? {} : { body }) });
  const user = text((await post('users', { email: 'x@example.test', name: 'X' })).json, 'id');
  const session = makeId('ses', Date.now(), randomBytes(10));
  const ending = new Date(Date.now() + 3_600_000);
  await h.db.knex('sessions').insert({ id: session, user_id: user, expires_at: ending });
  const key = text(
    (await post('api-keys', { description: 'k', scopes: ['chat:read'], expires_in_days: 1 })).json,
    'id',
  );
  await post('roles', { name: 'r', permissions: [] });
  await post('policies', { name: 'p', effect: 'deny', actions: ['rag:*'], resources: ['*'], attached_roles: [] });
  const writes: [string, string, object?][] = [
    ['PUT', `users/${user}`, { name: 'Y' }],
    ['DELETE', `users/${user}/sessions/${session}`],
    ['POST', `users/${user}/deactivate`],
    ['POST', `users/${user}/activate`],
    ['POST', `users/${user}/password-reset`],
    ['DELETE', `users/${user}/sessions`],
    ['PUT', 'roles/r', { description: 'd' }],
    ['PUT', 'roles/r/policies/p'],
    ['DELETE', 'roles/r/policies/p'],
    ['PUT', 'policies/p', { enabled: false }],
    ['PUT', `api-keys/${key}`, { description: 'l' }],
    ['POST', `api-keys/${key}/rotate`],
    ['DELETE', `api-keys/${key}`],
    ['DELETE', 'policies/p'],
    ['DELETE', 'roles/r'],
    ['DELETE', `users/${user}`],
  ];
  for (const [method, path, body] of writes) {
    const reply = await h.api(method, `/v1/iam/${path}`, { as, ...(body === undefined ? {} : { body }) });
    expect(reply.status, `${method} ${path}: ${reply.text}`).toBeLessThan(300);
  }
  const log = (await h.audit()).slice(start);
  expect(log.map((row) => row['action'])).toEqual([
    ...[
      'user.create',
      'api_key.create',
      'role.create',
      'policy.create',
      'user.update',
      'user.end_session',
      'user.deactivate',
    ],
    ...['user.activate', 'user.password_reset', 'user.end_sessions', 'role.update', 'policy.attach', 'policy.detach'],
    ...[
      'policy.update',
      'api_key.update',
      'api_key.rotate',
      'api_key.revoke',
      'policy.delete',
      'role.delete',
      'user.delete',
    ],
  ]);
  expect(log.every((row) => row['result'] === 'success')).toBe(true);
});

test('a change whose audit row cannot be written does not happen', async () => {
  await h.db.knex.raw(`alter table audit_log add constraint no_more check (action <> 'tenant.create') not valid`);
  const reply = await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'unaudited', name: 'X' } });
  await h.db.knex.raw('alter table audit_log drop constraint no_more');
  expect(outcome(reply)).toBe('503 unavailable');
  expect(reply.headers['retry-after']).toBe('1');
  expect(outcome(await h.api('GET', '/v1/iam/tenants/unaudited', { as: h.root.token }))).toBe('404 not_found');
});

test('a committed change is acknowledged also if the feed cannot be read, and the cache is flushed then', async () => {
  let flushed = 0;
  const feed = { catchUp: () => Promise.reject(new Fault('no feed')) };
  const parts = { db: h.db, feed, flush: () => (flushed += 1) };
  expect(await changeAsSystem(parts, SYSTEM, { action: 'test.done' }, () => Promise.resolve('done'))).toBe('done');
  expect([flushed, (await h.audit('test.done')).length]).toEqual([1, 1]);
});

test('secrets are masked in audit rows of every operation', async () => {
  const parts = { db: h.db, feed: { catchUp: () => Promise.resolve() }, flush: () => undefined };
  await changeAsSystem(parts, SYSTEM, { action: 'test.secret' }, (_trx, audit) => {
    audit.after = {
      key: 'psk_1',
      nested: [{ password_hash: 'h', refresh_token: 't', digest: 'd', max_tokens_per_request: 5 }],
    };
    return Promise.resolve();
  });
  expect((await h.audit('test.secret'))[0]?.['after']).toEqual({
    key: '[masked]',
    nested: [{ password_hash: '[masked]', refresh_token: '[masked]', digest: '[masked]', max_tokens_per_request: 5 }],
  });
});

test('a rejected change leaves no row, except the audit row of an escalation', async () => {
  const parts = { db: h.db, feed: { catchUp: () => Promise.resolve() }, flush: () => undefined };
  const refused = changeAsSystem(parts, SYSTEM, { action: 'test.refused' }, async (trx) => {
    await trx.raw(`insert into tenants (id, name) values ('half', 'Half')`);
    throw new Refusal('escalation', 'No.');
  });
  await expect(refused).rejects.toMatchObject({ code: 'escalation' });
  expect((await h.audit('test.refused')).map((row) => row['result'])).toEqual(['refused']);
  expect(outcome(await h.api('GET', '/v1/iam/tenants/half', { as: h.root.token }))).toBe('404 not_found');
});

test('without a database writes and lists are 503, and both work again after it is back', async () => {
  const list = () => h.api('GET', '/v1/iam/users', { as: h.root.token });
  const write = () => h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'after', name: 'After' } });
  expect(outcome(await list())).toBe('200');
  await h.cutDatabase();
  for (const reply of [await list(), await write()]) {
    expect(outcome(reply)).toBe('503 unavailable');
    expect(Number(reply.headers['retry-after'])).toBeGreaterThan(0);
    expect(reply.json['error']).toMatchObject({ type: 'server_error' });
  }
  // Without the database the server cannot distinguish an uncached key from an unknown one: that is a fault, not 401.
  expect(outcome(await h.api('GET', '/v1/iam/users', { as: makeApiKey().text }))).toBe('503 unavailable');
  await h.restoreDatabase();
  await expect.poll(async () => outcome(await list()), { timeout: 10_000 }).toBe('200');
  expect(outcome(await write())).toBe('201');
});
