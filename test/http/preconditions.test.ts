/** Entity tags: the changes that alter them, and the requests that If-Match and If-None-Match prevent. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { entityTag } from '../../src/iam/change/preconditions.ts';
import { sendRaw } from '../support/http.ts';
import { type Harness, type Json, outcome, type Reply, rows, startHarness, text } from './harness.ts';
import { KINDS, type Kind, makeOne } from './resources.ts';

let h: Harness;
beforeAll(async () => {
  h = await startHarness();
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'acme', name: 'Acme' } });
});
afterAll(async () => {
  await h.close();
});

const NAMED: ReadonlySet<Kind> = new Set(['roles', 'policies']);
const STRONG = /^"[\x21\x23-\x7e]+"$/;
const STALE = '"AAAAAAAAAAAAAAAAAAAAAA"';

const call = (method: string, path: string, body?: object, headers: Readonly<Record<string, string>> = {}) =>
  h.api(method, path, { as: h.root.token, headers, ...(body === undefined ? {} : { body }) });
const tagOf = (reply: Reply): string => {
  const tag = reply.headers['etag'];
  if (typeof tag !== 'string') throw new Error(`no ETag: ${reply.status} ${reply.text}`);
  return tag;
};
const currentTag = async (path: string) => tagOf(await call('GET', path));
const make = (kind: Kind) => makeOne(h, kind);

/** Every change of one resource: its kind, method, path after that of a new resource, and body. */
const CHANGES: [Kind, string, string, object?][] = [
  ['users', 'PUT', '', { name: 'Renamed' }],
  ['users', 'PATCH', '', { name: 'Renamed' }],
  ['users', 'DELETE', ''],
  ['users', 'POST', '/deactivate'],
  ['users', 'POST', '/activate'],
  ['users', 'POST', '/unlock'],
  ['users', 'POST', '/password-reset'],
  ['users', 'DELETE', '/sessions'],
  ['roles', 'PUT', '', { description: 'Other' }],
  ['roles', 'PATCH', '', { description: 'Other' }],
  ['roles', 'DELETE', ''],
  ['policies', 'PUT', '', { description: 'Other' }],
  ['policies', 'PATCH', '', { description: 'Other' }],
  ['policies', 'DELETE', ''],
  ['tenants', 'PUT', '', { name: 'Renamed' }],
  ['tenants', 'PATCH', '', { name: 'Renamed' }],
  ['tenants', 'DELETE', ''],
  ['tenants', 'POST', '/suspend'],
  ['tenants', 'POST', '/activate'],
  ['api-keys', 'PUT', '', { description: 'Other' }],
  ['api-keys', 'PATCH', '', { description: 'Other' }],
  ['api-keys', 'DELETE', ''],
  ['api-keys', 'POST', '/rotate'],
  ['api-keys', 'POST', '/disable'],
  ['api-keys', 'POST', '/enable'],
  ['issuers', 'PUT', '', { leeway_seconds: 9 }],
  ['issuers', 'PATCH', '', { leeway_seconds: 9 }],
  ['issuers', 'DELETE', ''],
  ['issuers', 'POST', '/revoke-before'],
  ['webhooks', 'PUT', '', { description: 'Other' }],
  ['webhooks', 'PATCH', '', { description: 'Other' }],
  ['webhooks', 'DELETE', ''],
  ['webhooks', 'POST', '/rotate'],
  ['budgets', 'PUT', '', { limit: 9 }],
  ['budgets', 'PATCH', '', { limit: 9 }],
  ['budgets', 'DELETE', ''],
  ['budgets', 'POST', '/reset', { reason: 'a test' }],
];

describe('a tag', () => {
  test.each(KINDS)('of %s is strong, and the same in the answer that makes, shows or changes it', async (kind) => {
    const { path, made } = await make(kind);
    const shown = await call('GET', path);
    expect(tagOf(shown)).toMatch(STRONG);
    // A budget has its state only where it is shown.
    const comparable = (tag: string) => (kind === 'budgets' ? tag.replace(/\..*$/, '"') : tag);
    expect(tagOf(made)).toBe(comparable(tagOf(shown)));
    expect((await call('HEAD', path)).headers['etag']).toBe(tagOf(shown));
    const put = await call('PUT', path, CHANGES.find(([of, method]) => of === kind && method === 'PUT')?.[3]);
    expect(tagOf(put)).not.toBe(comparable(tagOf(shown)));
    expect(comparable(await currentTag(path))).toBe(tagOf(put));
  });

  test('of a built-in role never changes, and lists have none', async () => {
    expect(await currentTag('/v1/iam/roles/developer')).toBe(await currentTag('/v1/iam/roles/developer'));
    expect((await call('GET', '/v1/iam/roles')).headers['etag']).toBeUndefined();
  });

  test('of a user changes with its roles, given by hand, by the directory or taken with the role, and with its status', async () => {
    const { path, id } = await make('users');
    const role = (await make('roles')).id;
    const tags = [await currentTag(path)];
    const then = async (change: () => Promise<unknown>) => {
      await change();
      tags.push(await currentTag(path));
    };
    await then(() => call('PUT', path, { roles: [role] }));
    await then(() => call('DELETE', `/v1/iam/roles/${role}?force=true`));
    await then(() =>
      h.db.knex.raw(`insert into user_roles (user_id, role_name, source) values (?, 'auditor', 'directory')`, [id]),
    );
    await then(() => call('POST', `${path}/deactivate`));
    await then(() => call('POST', `${path}/activate`));
    expect(new Set(tags).size).toBe(tags.length);
  });

  test('of a policy changes when it is attached and detached', async () => {
    const { path, id } = await make('policies');
    const before = await currentTag(path);
    await call('PUT', `/v1/iam/roles/auditor/policies/${id}`);
    const attached = await currentTag(path);
    await call('DELETE', `/v1/iam/roles/auditor/policies/${id}`);
    expect(new Set([before, attached, await currentTag(path)]).size).toBe(3);
  });

  test('of a key changes with its use for If-None-Match, and stays valid for If-Match', async () => {
    const { path, id } = await make('api-keys');
    const before = await currentTag(path);
    await h.db.knex.raw('update api_keys set last_used_at = now() where id = ?', [id]);
    const reread = await call('GET', path, undefined, { 'if-none-match': before });
    expect([reread.status, reread.json['last_used_at']]).toEqual([200, expect.any(String)]);
    expect(tagOf(reread)).not.toBe(before);
    expect(outcome(await call('PUT', path, { description: 'Other' }, { 'if-match': before }))).toBe('200');
    expect(outcome(await call('PUT', path, { description: 'Third' }, { 'if-match': tagOf(reread) }))).toBe(
      '412 precondition_failed',
    );
  });

  test('of a webhook stays valid for If-Match while events are left out', async () => {
    const body = { url: 'https://left-out.example/', events: ['key.revoked'] };
    const made = await call('POST', '/v1/iam/webhooks', body);
    const path = `/v1/iam/webhooks/${text(made.json, 'id')}`;
    await h.db.knex.raw('update webhooks set dropped = dropped + 1 where id = ?', [text(made.json, 'id')]);
    const reread = await call('GET', path, undefined, { 'if-none-match': tagOf(made) });
    expect([reread.status, reread.json['dropped']]).toEqual([200, 1]);
    expect(outcome(await call('PUT', path, { description: 'Other' }, { 'if-match': tagOf(made) }))).toBe('200');
  });

  test('of a key changes when the key expires, without a write', async () => {
    const { path, id } = await make('api-keys');
    // Soon, but not before it was seen active.
    const activeFor = async (lifeMs: number): Promise<Reply> => {
      await h.db.knex.raw(
        `update api_keys set expires_at = clock_timestamp() + ? * interval '1 millisecond' where id = ?`,
        [lifeMs, id],
      );
      const seen = await call('GET', path);
      return seen.json['status'] === 'active' ? seen : activeFor(2 * lifeMs);
    };
    const before = await activeFor(300);
    await expect.poll(async () => (await call('GET', path)).json['status']).toBe('expired');
    expect(await currentTag(path)).not.toBe(tagOf(before));
  });

  test('does not depend on secrets: the one answer with the key has the tag of all later ones', () => {
    const shown = { id: 'key_1', description: 'k' };
    expect(entityTag({ ...shown, key: 'psk_1' })).toBe(entityTag(shown));
    expect(entityTag({ ...shown, secret_available: false })).toBe(entityTag(shown));
    expect(entityTag({ description: 'k', id: 'key_1' })).toBe(entityTag(shown));
  });
});

const MISSING: Partial<Readonly<Record<Kind, string>>> = {
  users: 'usr_0',
  'api-keys': 'key_0',
  issuers: 'iss_0',
  webhooks: 'whk_0',
  budgets: 'bud_0',
};

describe('If-Match', () => {
  test('every route that changes one resource is tested here', () => {
    const tried = new Set([...CHANGES.map(([kind, method, rest]) => `${method} ${kind}${rest}`), ...ATTACHMENTS]);
    const routes = h.routes
      .filter((route) => route.method !== 'GET' && /^\/v1\/iam\/.*:/.test(route.path))
      .map((route) => `${route.method} ${route.path.replace('/v1/iam/', '').replace(/\/:(?:id|name)(?=\/|$)/, '')}`);
    // The first two set what is counted, which every request changes. The next three have tests of their own below. The
    // last change no member of the resource that a request can set.
    const others = [
      ...['PUT tenants/usage', 'PATCH tenants/usage'],
      ...['DELETE users/sessions/:session', 'POST issuers/refresh', 'POST webhooks/test'],
      ...['POST issuers/test', 'POST webhooks/deliveries/:delivery/replay'],
    ];
    expect(new Set(routes)).toEqual(new Set([...tried, ...others]));
  });

  test.each(CHANGES)('guards %s: %s %s', async (kind, method, rest, body?: object) => {
    const { path } = await make(kind);
    const before = await call('GET', path);
    for (const tag of [STALE, `W/${tagOf(before)}`, `${STALE}, W/"x", "a,b"`]) {
      const refused = await call(method, `${path}${rest}`, body, { 'if-match': tag });
      expect(outcome(refused), tag).toBe('412 precondition_failed');
      expect(refused.json['error']).toMatchObject({ type: 'invalid_request_error', param: 'If-Match' });
    }
    expect((await call('GET', path)).text).toBe(before.text);
    const done = await call(method, `${path}${rest}`, body, { 'if-match': `${STALE} ,, ${tagOf(before)}` });
    expect(done.status, done.text).toBeLessThan(300);
  });

  test.each(CHANGES)('* is met by every existing resource: %s: %s %s', async (kind, method, rest, body?: object) => {
    const { path } = await make(kind);
    expect((await call(method, `${path}${rest}`, body, { 'if-match': '*' })).status).toBeLessThan(300);
  });

  test.each(CHANGES)(
    'a missing resource is 404 with any precondition: %s: %s %s',
    async (kind, method, rest, body?: object) => {
      const { path } = await make(kind);
      const missing = path.replace(/[^/]+$/, MISSING[kind] ?? 'nothing');
      const shape = ({ request_id: _id, ...json }: Json) => json;
      const plain = await call(method, `${missing}${rest}`, body);
      expect(outcome(plain)).toBe('404 not_found');
      for (const tag of ['*', STALE]) {
        const reply = await call(method, `${missing}${rest}`, body, { 'if-match': tag });
        expect(shape(reply.json)).toEqual(shape(plain.json));
      }
    },
  );

  /** Changes with a value that is rejected: kind, body, and query. */
  const REJECTED: [Kind, object, string?][] = [
    ['users', { rate_limits: [{ models: ['**'] }] }],
    ['users', { roles: ['nothing'] }],
    ['roles', { permissions: ['cha*:read'] }],
    ['roles', { resource_constraints: { models: ['a*b*c*d*e*f*g*h*i*'] } }],
    ['roles', { permissions: ['chat:wriet'] }, '?strict=true'],
    ['policies', { actions: ['cha*:read'] }],
    ['policies', { actions: ['chat:wriet'] }, '?strict=true'],
    ['policies', { conditions: { ip_address: { in: ['x'] } } }],
    ['tenants', { settings: { timezone: 'Mars/Olympus' } }],
    ['api-keys', { scopes: ['cha*:read'] }],
    ['api-keys', { scopes: ['chat:wriet'] }, '?strict=true'],
    ['api-keys', { expires_at: '2020-01-01T00:00:00Z' }],
    ['issuers', { users: { default_roles: ['nothing'] } }],
    ['budgets', { unit: 'money' }],
    ['webhooks', { url: 'http://10.0.0.1/' }],
  ];

  test.each(REJECTED)('is checked before the values of the body: %s %j', async (kind, body, query = '') => {
    const { path } = await make(kind);
    const put = async (at: string, headers = {}) => outcome(await call('PUT', `${at}${query}`, body, headers));
    expect(await put(path)).toBe('422 invalid_field');
    expect(await put(path, { 'if-match': STALE })).toBe('412 precondition_failed');
    expect(await put(path.replace(/[^/]+$/, MISSING[kind] ?? 'nothing'))).toBe('404 not_found');
  });

  test('is checked before the values of a list of prices, and a built-in role is refused before its values', async () => {
    const twice = { prices: ['1', '2'].map((input) => ({ models: 'm', input, output: '1', per: 1000 })) };
    expect(outcome(await call('PUT', '/v1/iam/prices', twice))).toBe('422 invalid_field');
    expect(outcome(await call('PUT', '/v1/iam/prices', twice, { 'if-match': STALE }))).toBe('412 precondition_failed');
    expect(outcome(await call('PUT', '/v1/iam/roles/admin', { permissions: ['cha*:read'] }))).toBe('403 builtin_role');
  });

  const ATTACHMENTS = ['PUT roles/policies/:policy', 'DELETE roles/policies/:policy'];

  test('of an attachment needs the tag of the policy, which changes', async () => {
    const { path, id } = await make('policies');
    const attachment = `/v1/iam/roles/auditor/policies/${id}`;
    const before = await currentTag(path);
    expect(outcome(await call('PUT', attachment, undefined, { 'if-match': STALE }))).toBe('412 precondition_failed');
    expect(outcome(await call('PUT', attachment, undefined, { 'if-match': before }))).toBe('204');
    expect(outcome(await call('DELETE', attachment, undefined, { 'if-match': before }))).toBe(
      '412 precondition_failed',
    );
    expect(outcome(await call('DELETE', attachment, undefined, { 'if-match': await currentTag(path) }))).toBe('204');
  });

  test.each([
    ['issuers', 'refresh'],
    ['webhooks', 'test'],
  ] as const)('guards %s: POST %s, which asks another server', async (kind, verb) => {
    const { path } = await make(kind);
    const ask = async (tag: string) => outcome(await call('POST', `${path}/${verb}`, undefined, { 'if-match': tag }));
    const sent = async () => (await h.audit(`${kind.slice(0, -1)}.${verb}`)).length;
    const before = await sent();
    expect([await ask(STALE), await sent()]).toEqual(['412 precondition_failed', before]);
    expect(await ask(await currentTag(path))).not.toBe('412 precondition_failed');
  });

  test('has no effect if the request would be rejected without it', async () => {
    const clerk = await h.person('acme', ['developer']);
    const stale = { as: clerk.token, headers: { 'if-match': STALE } };
    expect(outcome(await h.api('DELETE', `/v1/iam/users/${h.root.id}`, stale))).toBe('403 insufficient_permission');
    expect(outcome(await call('DELETE', `/v1/iam/users/${h.root.id}`, undefined, { 'if-match': STALE }))).toBe(
      '409 last_admin',
    );
    expect(outcome(await call('PUT', '/v1/iam/roles/admin', {}, { 'if-match': STALE }))).toBe('403 builtin_role');
    const { path } = await make('api-keys');
    await call('DELETE', path);
    expect(outcome(await call('POST', `${path}/rotate`, undefined, { 'if-match': STALE }))).toBe('409 revoked');
  });

  test('of an attachment has no effect if the attachment gives what the caller lacks, or locks the caller out', async () => {
    const as = { as: h.root.token, tenant: 'acme' };
    await h.api('POST', '/v1/iam/roles', { ...as, body: { name: 'drafter', permissions: ['admin:policies'] } });
    const drafter = await h.person('acme', ['drafter']);
    const rule = { actions: ['admin:*'], resources: ['*'], applies_to: 'roles' };
    for (const [name, effect, expected] of [
      ['gives', 'allow', '403 escalation'],
      ['locks-out', 'deny', '409 would_lock_out'],
    ] as const) {
      await h.api('POST', '/v1/iam/policies', { ...as, body: { ...rule, name, effect } });
      const attach = (headers: Readonly<Record<string, string>>) =>
        h.api('PUT', `/v1/iam/roles/drafter/policies/${name}`, { as: drafter.token, headers });
      expect([outcome(await attach({})), outcome(await attach({ 'if-match': STALE }))]).toEqual([expected, expected]);
    }
  });

  test('of a GET is met or 412', async () => {
    const { path } = await make('roles');
    expect(outcome(await call('GET', path, undefined, { 'if-match': STALE }))).toBe('412 precondition_failed');
    expect(outcome(await call('GET', path, undefined, { 'if-match': await currentTag(path) }))).toBe('200');
  });

  test.each([
    ['without quotes', 'abc'],
    ['half quoted', '"abc'],
    ['with a space in a tag', '"a b"'],
    ['of two tags without a comma', '"a" "b"'],
    ['of * and a tag', '*, "a"'],
    ['with a small w', 'w/"a"'],
    ['empty', ''],
    ['of commas alone', ', ,'],
  ])('%s is malformed', async (_name, value) => {
    const { path } = await make('roles');
    for (const name of ['if-match', 'if-none-match']) {
      for (const method of ['PUT', 'GET']) {
        const reply = await call(method, path, method === 'GET' ? undefined : {}, { [name]: value });
        expect(outcome(reply), `${method} ${name}`).toBe('400 invalid_parameter');
      }
    }
  });

  test('on several lines is one list', async () => {
    const { path } = await make('roles');
    const lines = `If-Match: "x"\r\nIf-Match: ${await currentTag(path)}`;
    const raw = `DELETE ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${h.root.token}\r\n${lines}\r\n\r\n`;
    expect(await sendRaw(h.port, raw)).toMatch(/^HTTP\/1\.1 204 /);
  });

  test.each(KINDS)(
    'of two updates of %s under one tag, sent at once, one is refused and changes nothing',
    async (kind) => {
      const { path, id, table } = await make(kind);
      const tag = await currentTag(path);
      const member = ['users', 'tenants', 'issuers', 'budgets'].includes(kind) ? 'name' : 'description';
      const blocker = await h.db.knex.transaction();
      // Both requests have passed every read without the row lock before either may continue.
      await blocker.raw(`select from ${table} where ${NAMED.has(kind) ? 'name' : 'id'} = ? for update`, [id]);
      const replies = ['first', 'second'].map((value) => call('PUT', path, { [member]: value }, { 'if-match': tag }));
      await expect.poll(() => waiting(h), { interval: 10, timeout: 5000 }).toBe(2);
      await blocker.rollback();
      const answers = await Promise.all(replies);
      expect(answers.map(outcome).toSorted()).toEqual(['200', '412 precondition_failed']);
      const kept = answers.find((reply) => reply.status === 200)?.json[member];
      expect((await call('GET', path)).json[member]).toBe(kept);
    },
  );
});

describe('If-None-Match', () => {
  test.each(KINDS)('of a GET of %s that has not changed is 304 with the tag and without a body', async (kind) => {
    const { path } = await make(kind);
    const tag = await currentTag(path);
    for (const sent of [tag, `W/${tag}`, `"x", ${tag}`, '*']) {
      const reply = await call('GET', path, undefined, { 'if-none-match': sent });
      expect([reply.status, reply.text, reply.headers['etag']], sent).toEqual([304, '', tag]);
      expect(reply.headers['content-type']).toBeUndefined();
      expect((await call('HEAD', path, undefined, { 'if-none-match': sent })).status).toBe(304);
    }
    expect((await call('GET', path, undefined, { 'if-none-match': STALE })).status).toBe(200);
  });

  test('of a change prevents it for a resource with that tag', async () => {
    const { path } = await make('roles');
    const tag = await currentTag(path);
    for (const sent of [tag, '*']) {
      const reply = await call('PUT', path, { description: 'Other' }, { 'if-none-match': sent });
      expect(outcome(reply)).toBe('412 precondition_failed');
    }
    expect(outcome(await call('PUT', path, { description: 'Other' }, { 'if-none-match': STALE }))).toBe('200');
  });

  test('is 403 without the permission to read', async () => {
    const { path } = await make('roles');
    const nobody = await h.person('acme', []);
    const reply = await h.api('GET', path, { as: nobody.token, headers: { 'if-none-match': '*' } });
    expect(outcome(reply)).toBe('403 insufficient_permission');
  });
});

/** How many transactions of this database wait for a row. */
async function waiting({ db }: Harness): Promise<number> {
  const { rows } = await db.knex.raw<{ rows: { n: number }[] }>(
    `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rows[0]?.n ?? 0;
}

test('a session has a tag as well, which guards its end and not its use', async () => {
  const someone = await h.person('acme', []);
  const as = someone.token;
  const id = text(rows(await h.api('GET', '/v1/auth/sessions', { as }))[0] ?? {}, 'id');
  const path = `/v1/auth/sessions/${id}`;
  const tag = tagOf(await h.api('GET', path, { as }));
  expect((await h.api('GET', path, { as, headers: { 'if-none-match': tag } })).status).toBe(304);
  await h.db.knex.raw(`update sessions set last_used_at = last_used_at + interval '1 minute' where id = ?`, [id]);
  expect((await h.api('GET', path, { as, headers: { 'if-none-match': tag } })).status).toBe(200);
  expect(outcome(await h.api('DELETE', path, { as, headers: { 'if-match': STALE } }))).toBe('412 precondition_failed');
  expect(outcome(await h.api('DELETE', path, { as, headers: { 'if-match': tag } }))).toBe('204');
});

test('a session of another user has a tag that guards its end', async () => {
  const someone = await h.person('default', []);
  const sessions = `/v1/iam/users/${someone.id}/sessions`;
  const path = `${sessions}/${text(rows(await call('GET', sessions))[0] ?? {}, 'id')}`;
  const tag = tagOf(await call('GET', path));
  const end = async (headers: Record<string, string>) =>
    outcome(await h.api('DELETE', path, { as: h.root.token, headers }));
  expect(await end({ 'if-match': STALE })).toBe('412 precondition_failed');
  expect(await end({ 'if-match': tag })).toBe('204');
  expect(await end({})).toBe('404 not_found');
});

test('the tag of a user does not change with a password reset or the end of its sessions', async () => {
  const { path, made } = await make('users');
  await call('POST', `${path}/password-reset`);
  await call('DELETE', `${path}/sessions`);
  expect(text(made.json, 'id')).not.toBe('');
  expect(await currentTag(path)).toBe(tagOf(made));
});
