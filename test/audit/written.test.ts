/** The audit rows beside those of successful changes: failures, rejections, and actions of the servers. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addPerson } from '../auth/people.ts';
import { fromAddress, type Stand, startStand } from '../auth/stand.ts';
import { type Harness, type Json, outcome, type Person, startHarness, text } from '../http/harness.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';

describe('logging in', () => {
  let fresh: FreshDatabase;
  let stand: Stand;
  beforeAll(async () => {
    fresh = await freshDatabase();
    stand = await startStand(fresh.url);
    await addPerson(fresh.db, { email: 'ada@example.com' });
    await addPerson(fresh.db, { email: 'gone@example.com', status: 'deactivated' });
    await addPerson(fresh.db, { email: 'new@example.com', hash: null });
  });
  afterAll(async () => {
    await stand?.close();
    await fresh?.close();
  });

  test.each([
    ['ada@example.com', 'wrong_password', 'default'],
    ['gone@example.com', 'deactivated', 'default'],
    ['new@example.com', 'no_password', 'default'],
    ['who@example.com', 'unknown_user', null],
  ])('as %s failed: the reason is for the log alone', async (email, reason, tenant) => {
    const reply = await stand.post('/v1/auth/login', { email, password: 'not the password' }, fromAddress('192.0.2.9'));
    expect(reply.status).toBe(401);
    expect(reply.text).not.toContain(reason);
    const rows = await fresh.db.query({ text: 'select * from audit_log where target_id = $1', values: [email] });
    expect(rows).toEqual([
      expect.objectContaining({
        actor_type: 'anonymous',
        actor_id: null,
        tenant_id: tenant,
        address: '192.0.2.9',
        action: 'auth.login',
        result: 'failure',
        after: { reason },
        request_id: reply.headers['x-request-id'],
      }),
    ]);
  });

  test('the keys that servers make by themselves are written down, without what is secret of them', async () => {
    const rows = await fresh.db.query({ text: `select * from audit_log where action = 'signing_key.upkeep'` });
    const keys = await fresh.db.query({ text: 'select kid from signing_keys' });
    expect(rows).toEqual([
      expect.objectContaining({
        actor_type: 'system',
        after: { published: keys.map((key) => key['kid']), retired: [], removed: [] },
      }),
    ]);
  });
});

describe('managing', () => {
  let h: Harness;
  let boss: Person;
  beforeAll(async () => {
    h = await startHarness();
    const quotas = { max_users: 1 };
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'acme', name: 'Acme', quotas } });
    boss = await h.person('acme', ['tenant-admin']);
  });
  afterAll(async () => {
    await h?.close();
  });

  const newest = async (): Promise<Json> => (await h.audit()).at(-1) ?? {};

  test.each<[string, string, string, string, object | undefined]>([
    ['escalation', 'role.create', 'POST', 'roles', { name: 'mighty', permissions: ['*'] }],
    ['builtin_role', 'role.update', 'PUT', 'roles/developer', { description: 'mine' }],
    ['quota_exceeded', 'user.create', 'POST', 'users', { email: 'two@example.test', name: 'Two' }],
    [
      'would_lock_out',
      'policy.create',
      'POST',
      'policies',
      { name: 'out', effect: 'deny', actions: ['*'], resources: ['*'] },
    ],
    [
      'escalation',
      'policy.create',
      'POST',
      'policies',
      { name: 'all', effect: 'deny', actions: ['*'], resources: ['*'], global: true },
    ],
  ])("a rejection for %s of %s is a row in the caller's tenant", async (code, action, method, path, body) => {
    const reply = await h.api(method, `/v1/iam/${path}`, { as: boss.token, ...(body === undefined ? {} : { body }) });
    expect(reply.json['code']).toBe(code);
    expect(await newest()).toMatchObject({
      actor_type: 'user',
      actor_id: boss.id,
      tenant_id: 'acme',
      address: '127.0.0.1',
      action,
      result: 'refused',
      before: null,
      after: { code },
      request_id: reply.headers['x-request-id'],
    });
  });

  test('a refusal to leave the platform without an administrator is a row too', async () => {
    expect(outcome(await h.api('DELETE', `/v1/iam/users/${h.root.id}`, { as: h.root.token }))).toBe('409 last_admin');
    expect(await newest()).toMatchObject({
      action: 'user.delete',
      target_id: h.root.id,
      result: 'refused',
      after: { code: 'last_admin' },
    });
  });

  test('global policies are the business of the platform: their rows are of no tenant', async () => {
    const as = h.root.token;
    const call = { as, tenant: 'acme' };
    const body = { name: 'everywhere', effect: 'deny', actions: ['rag:*'], resources: ['*'], global: true };
    const made = await h.api('POST', '/v1/iam/policies', { ...call, body });
    expect([outcome(made), (await newest())['tenant_id']]).toEqual(['201', null]);
    await h.api('PUT', '/v1/iam/policies/everywhere', { ...call, body: { enabled: false } });
    expect(await newest()).toMatchObject({ action: 'policy.update', tenant_id: null, after: { enabled: false } });
    await h.api('PUT', '/v1/iam/roles/developer/policies/everywhere', call);
    expect(await newest()).toMatchObject({ action: 'policy.attach', tenant_id: null });
    await h.api('DELETE', '/v1/iam/policies/everywhere', call);
    expect(await newest()).toMatchObject({ action: 'policy.delete', tenant_id: null, before: { name: 'everywhere' } });
    const local = await h.api('POST', '/v1/iam/policies', { ...call, body: { ...body, global: false } });
    expect([text(local.json, 'tenant_id'), (await newest())['tenant_id']]).toEqual(['acme', 'acme']);
  });
});
