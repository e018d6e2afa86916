/** Idempotency-Key: a request that is sent again is not done again. */

import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { canonicalJsonOf } from '../../src/domain/json.ts';
import { tidyUp } from '../../src/iam/auth/upkeep.ts';
import { sendRaw } from '../support/http.ts';
import { type Harness, it, type Json, outcome, type Person, type Reply, rows, text, unique } from './harness.ts';
import { importedKey, usageEvent } from './isolation-probes.ts';
import { KINDS, makeOne, newBody } from './resources.ts';

const ACME = unique('acme');
const GLOBEX = unique('globex');

let h: Harness;
let boss: Person;
it.beforeAll(async ({ harness }) => {
  h = harness;
  for (const id of [ACME, GLOBEX]) await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  boss = await h.person(ACME, ['tenant-admin']);
});

let n = 0;
let key = '';
beforeEach(() => {
  key = `key ${++n}`;
});

const post = (
  path: string,
  body?: unknown,
  as = h.root.token,
  headers: Readonly<Record<string, string | string[]>> = {},
) =>
  h.api('POST', `/v1/iam/${path}`, {
    as,
    ...(body === undefined ? {} : { body }),
    headers: { 'idempotency-key': key, ...headers },
  });
const remove = async (name: string) =>
  expect(outcome(await h.api('DELETE', `/v1/iam/roles/${name}`, { as: h.root.token }))).toBe('204');
const replayed = (reply: Reply) => reply.headers['idempotency-replayed'];
const role = () => ({ name: `once-${n}`, permissions: ['chat:read'] });
const SECRETS = ['key', 'secret', 'password_setup_token'];
function withoutSecrets(json: Json): Json {
  return Object.fromEntries(Object.entries(json).filter(([name]) => ![...SECRETS, 'secret_available'].includes(name)));
}

describe('a repeated request', () => {
  test.each(KINDS)('creates one of %s, and gets the same answer without its secrets', async (kind) => {
    const body = newBody(kind);
    const first = await post(kind, body);
    const again = await post(kind, body);
    expect([outcome(first), replayed(first)]).toEqual(['201', undefined]);
    expect([outcome(again), replayed(again)]).toEqual(['201', 'true']);
    expect(withoutSecrets(again.json)).toEqual(withoutSecrets(first.json));
    for (const name of ['location', 'etag']) expect(again.headers[name]).toBe(first.headers[name]);
    const hadSecret = SECRETS.some((name) => first.json[name] !== undefined);
    expect(again.json['secret_available']).toBe(hadSecret ? false : undefined);
    expect(SECRETS.filter((name) => name in again.json)).toEqual([]);
    const id = text(first.json, kind === 'roles' || kind === 'policies' ? 'name' : 'id');
    expect((await h.audit()).filter((row) => row['target_id'] === id)).toHaveLength(1);
  });

  const ACTIONS = [
    ['users', 'password-reset', 'user.password_reset'],
    ['users', 'deactivate', 'user.deactivate'],
    ['users', 'activate', 'user.activate'],
    ['users', 'unlock', 'user.unlock'],
    ['tenants', 'suspend', 'tenant.suspend'],
    ['tenants', 'activate', 'tenant.activate'],
    ['api-keys', 'rotate', 'api_key.rotate'],
    ['api-keys', 'disable', 'api_key.disable'],
    ['api-keys', 'enable', 'api_key.enable'],
    ['issuers', 'revoke-before', 'issuer.revoke_before'],
    ['webhooks', 'rotate', 'webhook.rotate'],
    ['budgets', 'reset', 'budget.reset'],
  ] as const;
  const ASKING = [
    'explain',
    'explain/simulate',
    'explain/difference',
    'explain/who-can',
    'directory/test',
    'budgets/preview',
  ];
  const OF_ISSUERS = ['issuers/:id/test', 'issuers/:id/refresh'];
  /** A test is sent each time. A replay makes the same delivery due once more. */
  const OF_WEBHOOKS = ['webhooks/:id/test', 'webhooks/:id/deliveries/:delivery/replay'];

  test('every POST is tested here, or changes nothing', () => {
    const posts = h.routes.filter((route) => route.method === 'POST' && route.path.startsWith('/v1/iam/'));
    const actions = ACTIONS.map(([kind, verb]) => `${kind}/:id/${verb}`);
    expect(new Set(posts.map((route) => route.path.slice('/v1/iam/'.length)))).toEqual(
      new Set([
        ...KINDS,
        ...actions,
        ...ASKING,
        ...OF_ISSUERS,
        ...OF_WEBHOOKS,
        'usage/events',
        'users/change',
        'api-keys/import',
        'api-keys/revoke',
      ]),
    );
  });

  test.each(ACTIONS)('does %s/{id}/%s once', async (kind, verb, action) => {
    const { id } = await makeOne(h, kind);
    const body = verb === 'reset' ? { reason: 'a test' } : undefined;
    const first = await post(`${kind}/${id}/${verb}`, body);
    const again = await post(`${kind}/${id}/${verb}`, body);
    expect([outcome(first), outcome(again), replayed(again)]).toEqual(['200', '200', 'true']);
    expect(withoutSecrets(again.json)).toEqual(withoutSecrets(first.json));
    const hadSecret = SECRETS.some((name) => first.json[name] !== undefined);
    expect(again.json['secret_available']).toBe(hadSecret ? false : undefined);
    expect((await h.audit(action)).filter((row) => row['target_id'] === id)).toHaveLength(1);
  });

  test('imports keys once', async () => {
    const body = { keys: [importedKey(), importedKey()] };
    const first = await post('api-keys/import', body);
    const again = await post('api-keys/import', body);
    expect([first.json['imported'], again.json, replayed(again)]).toEqual([2, first.json, 'true']);
    expect(await h.audit('api_key.import')).toHaveLength(2);
  });

  test('revokes several keys once, and a dry run is another request', async () => {
    const { id } = await makeOne(h, 'api-keys');
    const first = await post('api-keys/revoke', { ids: [id] });
    const again = await post('api-keys/revoke', { ids: [id] });
    expect([first.json['revoked'], again.json, replayed(again)]).toEqual([1, first.json, 'true']);
    expect(outcome(await post('api-keys/revoke?dry_run=true', { ids: [id] }))).toBe('422 idempotency_mismatch');
    expect((await h.audit('api_key.revoke')).filter((row) => row['target_id'] === id)).toHaveLength(1);
  });

  test('changes several users once', async () => {
    const { id } = await makeOne(h, 'users');
    const first = await post('users/change', { action: 'deactivate', ids: [id] });
    const again = await post('users/change', { action: 'deactivate', ids: [id] });
    expect([first.json['changed'], again.json, replayed(again)]).toEqual([1, first.json, 'true']);
    expect((await h.audit('user.deactivate')).filter((row) => row['target_id'] === id)).toHaveLength(1);
  });

  test('counts usage once', async () => {
    const events = { events: [usageEvent()] };
    const first = await post('usage/events', events);
    const again = await post('usage/events', events);
    expect([first.json, again.json, replayed(again)]).toEqual([{ accepted: 1, duplicates: 0 }, first.json, 'true']);
    expect(await h.audit('usage.record')).toHaveLength(1);
  });

  test('leaves the result of the first request as it is: its key continues to work', async () => {
    const { id } = await makeOne(h, 'api-keys');
    const secret = text((await post(`api-keys/${id}/rotate`)).json, 'key');
    await post(`api-keys/${id}/rotate`);
    expect(outcome(await h.api('GET', '/v1/auth/me', { as: secret }))).toBe('200');
  });

  test('keeps no secret: neither the key nor the token is in the database', async () => {
    const secrets = [
      text((await post('api-keys', newBody('api-keys'))).json, 'key'),
      text((await post('users', newBody('users'))).json, 'password_setup_token'),
    ];
    const password = 'violet anchors drift slowly';
    await post('users', { ...newBody('users'), password }, h.root.token, { 'idempotency-key': `${key} password` });
    const { rows: kept } = await h.db.knex.raw<{ rows: Json[] }>('select answer from idempotent_answers');
    expect(kept.length).toBeGreaterThan(0);
    for (const secret of [...secrets, password]) expect(JSON.stringify(kept)).not.toContain(secret);
  });

  test('an answer without a secret promises none: a user made with a password', async () => {
    const body = { ...newBody('users'), password: 'violet anchors drift slowly' };
    await post('users', body);
    expect((await post('users', body)).json['secret_available']).toBeUndefined();
  });

  test('the same members in another order are the same body, and no body is an empty one', async () => {
    const { name, permissions } = role();
    await post('roles', { name, permissions });
    expect(replayed(await post('roles', { permissions, name }))).toBe('true');
    const { id } = await makeOne(h, 'tenants');
    await post(`tenants/${id}/activate`);
    expect(replayed(await post(`tenants/${id}/activate`, {}))).toBe('true');
  });

  test('gets the first answer also after later changes', async () => {
    const first = await post('roles', role());
    await h.api('PUT', `/v1/iam/roles/once-${n}`, { as: h.root.token, body: { description: 'Later' } });
    expect((await post('roles', role())).json).toEqual(first.json);
    await remove(`once-${n}`);
    expect((await post('roles', role())).json).toEqual(first.json);
    expect(outcome(await h.api('GET', `/v1/iam/roles/once-${n}`, { as: h.root.token }))).toBe('404 not_found');
  });

  test('gets the first answer also after the requested expiry has passed', async () => {
    const body = {
      ...newBody('api-keys'),
      expires_in_days: undefined,
      expires_at: new Date(Date.now() + 1500).toISOString(),
    };
    const first = await post('api-keys', body);
    expect(outcome(first)).toBe('201');
    await expect
      .poll(async () => (await h.api('GET', text(first.headers, 'location'), { as: h.root.token })).json['status'], {
        timeout: 5000,
      })
      .toBe('expired');
    const again = await post('api-keys', body);
    expect([outcome(again), replayed(again)]).toEqual(['201', 'true']);
  });

  test('under If-Match gets the answer of the first request, whose change has made the tag stale', async () => {
    const { id, made } = await makeOne(h, 'tenants');
    const headers = { 'if-match': text(made.headers, 'etag') };
    expect(outcome(await post(`tenants/${id}/suspend`, undefined, h.root.token, headers))).toBe('200');
    const again = await post(`tenants/${id}/suspend`, undefined, h.root.token, headers);
    expect([outcome(again), replayed(again)]).toEqual(['200', 'true']);
  });
});

describe('the same key', () => {
  test.each([
    ['another body', 'roles', { name: 'other', permissions: [] }],
    ['another query', 'roles?force=true', undefined],
  ])('with %s is 422 idempotency_mismatch', async (_name, path, body) => {
    const suspend = await makeOne(h, 'tenants');
    const target = body === undefined ? `tenants/${suspend.id}/suspend` : path;
    await post(target, body === undefined ? undefined : role());
    const reply = await post(body === undefined ? `${target}?force=true` : target, body);
    expect([outcome(reply), reply.headers['x-should-retry'], replayed(reply)]).toEqual([
      '422 idempotency_mismatch',
      undefined,
      undefined,
    ]);
    if (body !== undefined) {
      expect(outcome(await h.api('GET', `/v1/iam/roles/${body.name}`, { as: h.root.token }))).toBe('404 not_found');
    }
  });

  test('of another principal, tenant or path is another key', async () => {
    const body = role();
    const other = await h.person(ACME, ['tenant-admin']);
    expect(outcome(await post('roles', body, boss.token))).toBe('201');
    expect(outcome(await post('roles', body, other.token))).toBe('409 already_exists');
    expect(replayed(await post('roles', body, boss.token))).toBe('true');
    const inGlobex = await post('roles', body, h.root.token, { 'x-tenant-id': GLOBEX });
    const inDefault = await post('roles', body, h.root.token);
    expect([outcome(inGlobex), outcome(inDefault), replayed(inDefault)]).toEqual(['201', '201', undefined]);
    const [one, two] = [await makeOne(h, 'users'), await makeOne(h, 'users')];
    for (const { id } of [one, two]) expect(replayed(await post(`users/${id}/deactivate`))).toBeUndefined();
  });

  test('after a refusal is still free: only success is kept', async () => {
    const body = { ...role(), name: `late-${n}` };
    await h.api('POST', '/v1/iam/roles', { as: h.root.token, body });
    expect(outcome(await post('roles', body))).toBe('409 already_exists');
    await remove(`late-${n}`);
    const second = await post('roles', body);
    expect([outcome(second), replayed(second)]).toEqual(['201', undefined]);
  });

  test('of a change that fails half way is free again, and nothing of the change is there', async () => {
    await h.db.knex.raw(`alter table audit_log add constraint no_more check (action <> 'role.create') not valid`);
    const failed = await post('roles', role());
    await h.db.knex.raw('alter table audit_log drop constraint no_more');
    expect(outcome(failed)).toBe('503 unavailable');
    expect(outcome(await post('roles', role()))).toBe('201');
  });

  test('after 24 hours is free, and upkeep takes old answers away, without a key each and in batches', async () => {
    await post('roles', role());
    await h.db.knex.raw(`update idempotent_answers set answered_at = answered_at - interval '24 hours'`);
    await remove(`once-${n}`);
    const second = await post('roles', role());
    expect([outcome(second), replayed(second)]).toEqual(['201', undefined]);
    await h.db.knex.raw(
      `insert into idempotent_answers select sha256(i::text::bytea), '\\x00', '{}', clock_timestamp() - interval '25 hours'
       from generate_series(1, 6000) i`,
    );
    await tidyUp(h.db);
    const { rows: left } = await h.db.knex.raw<{ rows: { old: number; all: number }[] }>(
      `select count(*)::int as all, count(*) filter (where answered_at < now() - interval '24 hours')::int as old
       from idempotent_answers`,
    );
    expect(left).toEqual([{ all: 1, old: 0 }]);
    expect(replayed(await post('roles', role()))).toBe('true');
  });

  test.each([
    ['empty', ''],
    ['of 256 characters', 'x'.repeat(256)],
    ['with an umlaut', 'schl\u00fcssel'],
    ['with a tab', 'a\tb'],
  ])('%s is malformed', async (_name, value) => {
    const reply = await post('roles', role(), h.root.token, { 'idempotency-key': value });
    expect([outcome(reply), reply.json['error']]).toMatchObject([
      '400 invalid_parameter',
      { param: 'Idempotency-Key' },
    ]);
  });

  test('of 255 characters is fine, and a repeated header is none', async () => {
    expect(outcome(await post('roles', role(), h.root.token, { 'idempotency-key': '~'.repeat(255) }))).toBe('201');
    const raw = [
      'POST /v1/iam/users/usr_0/activate HTTP/1.1',
      'Host: x',
      'Connection: close',
      `Authorization: Bearer ${h.root.token}`,
      'Idempotency-Key: a',
      'Idempotency-Key: a',
    ];
    expect(await sendRaw(h.port, `${raw.join('\r\n')}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 400 [\s\S]*invalid_parameter/);
  });

  test('has no effect on requests that change nothing, or are safe to repeat', async () => {
    const question = { subject: h.root.id, method: 'GET', path: '/v1/models' };
    expect(outcome(await post('explain', question))).toBe('200');
    const other = await post('explain', { ...question, path: '/v1/agents' });
    expect([outcome(other), replayed(other)]).toEqual(['200', undefined]);
    await post('roles', role());
    const path = `/v1/iam/roles/once-${n}`;
    for (const description of ['one', 'two']) {
      const call = { as: h.root.token, body: { description }, headers: { 'idempotency-key': key } };
      expect((await h.api('PUT', path, call)).json['description']).toBe(description);
    }
  });
});

describe('concurrent requests with one key', () => {
  test('run once: the second gets 409 with Retry-After, and later the answer of the first', async () => {
    const blocker = await h.db.knex.transaction();
    // The change waits here, inside its transaction.
    await blocker.raw(`select from tenants where id = 'default' for update`);
    const first = post('roles', role());
    await expect.poll(waiting, { interval: 10, timeout: 5000 }).toBe(1);
    const second = await post('roles', role());
    expect([outcome(second), second.headers['retry-after'], second.headers['x-should-retry']]).toEqual([
      '409 idempotency_in_progress',
      '1',
      'true',
    ]);
    await blocker.rollback();
    expect(outcome(await first)).toBe('201');
    expect(replayed(await post('roles', role()))).toBe('true');
  });

  test('all get 201 or idempotency_in_progress, twenty at once, and create one user', async () => {
    const body = newBody('users');
    const replies = await Promise.all(Array.from({ length: 20 }, () => post('users', body)));
    const outcomes = new Set(replies.map(outcome));
    outcomes.delete('409 idempotency_in_progress');
    expect([...outcomes]).toEqual(['201']);
    expect(replies.filter((reply) => reply.status === 201 && replayed(reply) === undefined)).toHaveLength(1);
    const last = await post('users', body);
    const email = encodeURIComponent(text(last.json, 'email'));
    expect(rows(await h.api('GET', `/v1/iam/users?email=${email}`, { as: h.root.token }))).toHaveLength(1);
  });

  test('a claim ends with its connection: a request that lost it leaves the key free and no change', async () => {
    const blocker = await h.db.knex.transaction();
    await blocker.raw(`select from tenants where id = 'default' for update`);
    const first = post('roles', role());
    await expect.poll(waiting, { interval: 10, timeout: 5000 }).toBe(1);
    await blocker.raw(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    expect(outcome(await first)).toBe('503 unavailable');
    await blocker.rollback();
    const second = await post('roles', role());
    expect([outcome(second), replayed(second)]).toEqual(['201', undefined]);
  });

  test('the stored fingerprint of a request cannot verify a guessed password without its key', async () => {
    const body = { ...newBody('users'), password: 'a lake of tin whistles' };
    expect(outcome(await post('users', body))).toBe('201');
    const { rows: kept } = await h.db.knex.raw<{ rows: { fingerprint: Buffer }[] }>(
      'select fingerprint from idempotent_answers order by answered_at desc limit 1',
    );
    const plain = createHash('sha256')
      .update(canonicalJsonOf([{}, body]))
      .digest('hex');
    expect(kept.map(({ fingerprint }) => fingerprint.toString('hex'))).not.toContain(plain);
    expect(outcome(await post('users', { ...body, password: 'a lake of zinc whistles' }))).toBe(
      '422 idempotency_mismatch',
    );
  });

  test('an answer lost after the commit is returned again: the change and its answer are in one transaction', async () => {
    // The commit is done, but the client gets no answer.
    const lost = await post('users', newBody('users'));
    const { rows: kept } = await h.db.knex.raw<{ rows: { xmin: string }[] }>(
      `select xmin::text from users where id = ? union all
       (select xmin::text from idempotent_answers order by answered_at desc limit 1)`,
      [text(lost.json, 'id')],
    );
    expect(new Set(kept.map((row) => row.xmin)).size).toBe(1);
  });

  async function waiting(): Promise<number> {
    const { rows: found } = await h.db.knex.raw<{ rows: { n: number }[] }>(
      `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return found[0]?.n ?? 0;
  }
});

describe('a repeated request gets the rejection, not the stored answer:', () => {
  test('after the caller lost the permission of the endpoint', async () => {
    const clerk = await h.person(ACME, ['tenant-admin']);
    expect(outcome(await post('roles', role(), clerk.token))).toBe('201');
    await h.api('PUT', `/v1/iam/users/${clerk.id}`, { as: boss.token, body: { roles: ['developer'] } });
    expect(outcome(await post('roles', role(), clerk.token))).toBe('403 insufficient_permission');
    await h.api('PUT', `/v1/iam/users/${clerk.id}`, { as: boss.token, body: { roles: ['tenant-admin'] } });
    expect(replayed(await post('roles', role(), clerk.token))).toBe('true');
  });

  test('after a policy denied it', async () => {
    const clerk = await h.person(ACME, ['tenant-admin', 'auditor']);
    const mine = { description: 'Mine', scopes: ['chat:read'], expires_in_days: 1, user_id: clerk.id };
    expect(outcome(await post('api-keys', mine, clerk.token))).toBe('201');
    const deny = {
      name: `deny-${n}`,
      effect: 'deny',
      actions: ['admin:keys'],
      resources: ['*'],
      attached_roles: ['auditor'],
    };
    expect(outcome(await h.api('POST', '/v1/iam/policies', { as: boss.token, body: deny }))).toBe('201');
    expect(outcome(await post('api-keys', mine, clerk.token))).toBe('403 denied_by_policy');
    await h.api('DELETE', `/v1/iam/policies/deny-${n}`, { as: boss.token });
  });

  test.each([
    [
      'after the caller lost the permissions of the role that it creates',
      'roles',
      () => ({ name: `gives-${n}`, permissions: ['rag:read'] }),
    ],
    [
      'after the caller lost the permissions of the role that it assigns',
      'users',
      () => ({ ...newBody('users'), roles: ['developer'] }),
    ],
    [
      'after the caller lost the scopes of the key that it creates',
      'api-keys',
      () => ({ ...newBody('api-keys'), scopes: ['rag:read'] }),
    ],
    [
      'after the caller lost the permissions that its policy allows',
      'policies',
      () => ({ name: `gives-${n}`, effect: 'allow', actions: ['rag:read'], resources: ['*'] }),
    ],
  ])('%s', async (_name, path, makeBody) => {
    await h.api('POST', '/v1/iam/roles', { as: boss.token, body: { name: `clerk-${n}`, permissions: ['admin:*'] } });
    const clerk = await h.person(ACME, ['tenant-admin', `clerk-${n}`]);
    const body = makeBody();
    expect(outcome(await post(path, body, clerk.token))).toBe('201');
    await h.api('PUT', `/v1/iam/users/${clerk.id}`, { as: boss.token, body: { roles: [`clerk-${n}`] } });
    expect(outcome(await post(path, body, clerk.token))).toBe('403 escalation');
    expect(outcome(await post(path, { ...body, other: 1 }, clerk.token))).toBe('422 invalid_field');
  });

  test('after its target user gained permissions', async () => {
    const clerk = await h.person(ACME, ['tenant-admin']);
    const other = await h.person(ACME, []);
    expect(outcome(await post(`users/${other.id}/password-reset`, undefined, clerk.token))).toBe('200');
    await h.api('PUT', `/v1/iam/users/${other.id}`, { as: h.root.token, tenant: ACME, body: { roles: ['admin'] } });
    expect(outcome(await post(`users/${other.id}/password-reset`, undefined, clerk.token))).toBe('403 escalation');
  });

  test('also with another body: permissions are checked before bodies are compared', async () => {
    const { id } = await makeOne(h, 'api-keys');
    const clerk = await h.person('default', ['tenant-admin']);
    expect(outcome(await post(`api-keys/${id}/rotate`, { grace_seconds: 1 }, clerk.token))).toBe('200');
    await h.api('PUT', `/v1/iam/users/${clerk.id}`, { as: h.root.token, body: { roles: [] } });
    expect(outcome(await post(`api-keys/${id}/rotate`, { grace_seconds: 2 }, clerk.token))).toBe(
      '403 insufficient_permission',
    );
  });

  test('after its credential became invalid, with 401', async () => {
    const clerk = await h.person(ACME, ['tenant-admin']);
    await post('roles', role(), clerk.token);
    await h.api('POST', `/v1/iam/users/${clerk.id}/deactivate`, { as: boss.token });
    expect(outcome(await post('roles', role(), clerk.token))).toBe('401 invalid_credential');
  });
});
