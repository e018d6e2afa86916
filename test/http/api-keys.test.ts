import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BUILTIN_ROUTES } from '../../src/decision/builtin-routes.ts';
import { runs } from '../support/properties.ts';
import { column, type Harness, it, outcome, type Person, type Reply, rows, text, unique } from './harness.ts';

const ACME = unique('acme');
const GLOBEX = unique('globex');
const INITECH = unique('initech');

let h: Harness;
let boss: Person;
let ada: Person;
it.beforeAll(async ({ harness }) => {
  h = harness;
  for (const id of [ACME, GLOBEX]) await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  boss = await h.person(ACME, ['tenant-admin']);
  ada = await h.person(ACME, ['developer']);
});

const KEYS = '/v1/iam/api-keys';
const DAY_MS = 86_400_000;
const BODY = { description: 'Build server', scopes: ['chat:write'], expires_in_days: 30 };

const create = (body: object = {}, as = boss.token) => h.api('POST', KEYS, { as, body: { ...BODY, ...body } });
const made = async (body: object = {}, as = boss.token) => {
  const reply = await create(body, as);
  return { id: text(reply.json, 'id'), key: text(reply.json, 'key'), path: `${KEYS}/${text(reply.json, 'id')}` };
};
/** Reports whether a key is valid: a valid key gets 403 here, because these keys have no management permission. */
const works = async (key: string) =>
  outcome(await h.api('GET', '/v1/iam/users', { as: key })) === '403 insufficient_permission';

describe('making a key', () => {
  test('answers 201 with the key, once', async () => {
    const labels = { name: 'CI', metadata: { team: 'search', Env: 'prod' } };
    const reply = await create({ ...labels, resource_constraints: { models: ['llama-*'] }, rate_limit_rpm: 60 });
    const key = text(reply.json, 'key');
    expect(key).toMatch(/^psk_[0-9A-Za-z]{38}$/);
    expect([outcome(reply), reply.headers['location']]).toEqual(['201', `${KEYS}/${text(reply.json, 'id')}`]);
    expect(reply.json).toEqual({
      id: expect.stringMatching(/^key_[0-9a-z]{26}$/),
      tenant_id: ACME,
      user_id: null,
      ...labels,
      proof: null,
      imported: false,
      description: 'Build server',
      scopes: ['chat:write'],
      resource_constraints: { models: ['llama-*'] },
      rate_limit_rpm: 60,
      rate_limits: null,
      prefix: key.slice(0, 8),
      last_four: key.slice(-4),
      status: 'active',
      expires_at: expect.any(String),
      created_by: { type: 'user', id: boss.id },
      created_at: expect.any(String),
      updated_at: expect.any(String),
      last_used_at: null,
      key,
    });
    const { key: _key, ...shown } = reply.json;
    expect((await h.api('GET', `${KEYS}/${text(reply.json, 'id')}`, { as: boss.token })).json).toEqual(shown);
    expect(await works(key)).toBe(true);
    const everything = (await h.api('GET', KEYS, { as: boss.token })).text + JSON.stringify(await h.audit());
    expect(everything).not.toContain(key);
  });

  test('gives it to the tenant if an administrator names no owner, and to the caller without admin:keys', async () => {
    expect((await create()).json['user_id']).toBeNull();
    expect((await create({}, ada.token)).json['user_id']).toBe(ada.id);
    expect((await create({ user_id: ada.id }, ada.token)).json['user_id']).toBe(ada.id);
    expect((await create({ user_id: ada.id })).json['user_id']).toBe(ada.id);
  });

  test.each([
    ['no expiry', { expires_in_days: undefined }, '422 invalid_field'],
    ['never', { expires_in_days: undefined, expires_at: null }, '422 invalid_field'],
    ['an expiry in the past', { expires_in_days: undefined, expires_at: '2020-01-01T00:00:00Z' }, '422 invalid_field'],
    [
      'an expiry over ten years away',
      { expires_in_days: undefined, expires_at: '2099-01-01T00:00:00Z' },
      '422 invalid_field',
    ],
    ['an expiry that is no instant', { expires_in_days: undefined, expires_at: 'tomorrow' }, '422 invalid_field'],
    ['both expiries', { expires_at: '2027-01-01T00:00:00Z' }, '422 invalid_field'],
    ['3650 days', { expires_in_days: 3650 }, '201'],
    ['no scope', { scopes: [] }, '422 invalid_field'],
    ['half a wildcard', { scopes: ['cha*:read'] }, '422 invalid_field'],
    ['an unknown owner', { user_id: 'usr_00000000000000000000000000' }, '422 invalid_field'],
    ['an owner that is no id', { user_id: 'ada' }, '422 invalid_field'],
    ['a negative rate', { rate_limit_rpm: -1 }, '422 invalid_field'],
    ['a rate of no model', { rate_limits: [{ models: [], parallel: 1 }] }, '422 invalid_field'],
  ])('%s', async (_name, body, expected) => {
    expect(outcome(await create(body))).toBe(expected);
  });

  test("another tenant's user is an unknown owner", async () => {
    const stranger = await h.person(GLOBEX, []);
    expect(outcome(await create({ user_id: stranger.id }))).toBe('422 invalid_field');
  });

  test('for a user of any tenant belongs to that tenant, if a platform administrator names the user and no tenant', async () => {
    const owner = await h.person(GLOBEX, ['developer']);
    const body = { description: 'k', scopes: ['chat:write'], expires_in_days: 1, user_id: owner.id };
    const headers = { 'idempotency-key': unique('owner') };
    const reply = await h.api('POST', KEYS, { as: h.root.token, body, headers });
    expect([outcome(reply), reply.json['tenant_id'], reply.json['user_id']]).toEqual(['201', GLOBEX, owner.id]);
    const again = await h.api('POST', KEYS, { as: h.root.token, body, headers });
    expect([again.headers['idempotency-replayed'], again.json['id']]).toEqual(['true', reply.json['id']]);
    const named = await h.api('POST', KEYS, { as: h.root.token, tenant: ACME, body });
    expect(outcome(named)).toBe('422 invalid_field');
  });

  test('needs no expiry if the tenant allows that', async () => {
    const put = (settings: object) =>
      h.api('PUT', `/v1/iam/tenants/${GLOBEX}`, { as: h.root.token, body: { settings } });
    await put({ allow_keys_without_expiry: true });
    const reply = await h.api('POST', KEYS, {
      as: h.root.token,
      tenant: GLOBEX,
      body: { description: 'x', scopes: ['chat:read'] },
    });
    expect([outcome(reply), reply.json['expires_at'], reply.json['tenant_id']]).toEqual(['201', null, GLOBEX]);
    await put({ allow_keys_without_expiry: null });
  });

  test('a key makes keys only under its own admin:keys, and none that outlives it', async () => {
    const plain = await made();
    expect(outcome(await create({}, plain.key))).toBe('403 insufficient_permission');
    const maker = await made({ scopes: ['admin:keys', 'chat:*'], expires_in_days: 10 });
    expect(outcome(await create({ expires_in_days: 11 }, maker.key))).toBe('403 escalation');
    expect(outcome(await create({ scopes: ['rag:read'], expires_in_days: 5 }, maker.key))).toBe('403 escalation');
    const child = await made({ expires_in_days: 5 }, maker.key);
    expect(outcome(await h.api('PUT', child.path, { as: maker.key, body: { expires_in_days: 11 } }))).toBe(
      '403 escalation',
    );
    expect(outcome(await h.api('PUT', child.path, { as: maker.key, body: { expires_in_days: 9 } }))).toBe('200');
    // A new secret of a key with a later expiry would outlive the key of the caller.
    const older = await made({ expires_in_days: 300 });
    expect(outcome(await h.api('POST', `${older.path}/rotate`, { as: maker.key }))).toBe('403 escalation');
    expect(outcome(await h.api('POST', `${child.path}/rotate`, { as: maker.key }))).toBe('200');
    expect(outcome(await h.api('POST', `${maker.path}/rotate`, { as: maker.key }))).toBe('200');
  });
});

describe('name and metadata of a key', () => {
  const pairs = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']));
  const shown = ({ json: { name, metadata } }: Reply) => ({ name, metadata });

  test('change with the members that are present: metadata is replaced whole, null and {} remove it', async () => {
    const { path } = await made({ name: 'first', metadata: { a: '1', b: '2' } });
    const put = async (body: object) => shown(await h.api('PUT', path, { as: boss.token, body }));
    expect(await put({ description: 'new' })).toEqual({ name: 'first', metadata: { a: '1', b: '2' } });
    expect(await put({ metadata: { b: '3' } })).toEqual({ name: 'first', metadata: { b: '3' } });
    expect(await put({ name: 'second' })).toEqual({ name: 'second', metadata: { b: '3' } });
    expect(await put({ name: null, metadata: null })).toEqual({ name: null, metadata: {} });
    expect(await put({ metadata: { __proto__x: 'p', constructor: 'c' } })).toEqual({
      name: null,
      metadata: { __proto__x: 'p', constructor: 'c' },
    });
    expect(await put({ metadata: {} })).toEqual({ name: null, metadata: {} });
  });

  test('are in lists and audit rows, and a rotation keeps them', async () => {
    const labels = { name: 'kept', metadata: { ticket: 'OPS-1' } };
    const { id, path } = await made(labels);
    const rotated = await h.api('POST', `${path}/rotate`, { as: boss.token });
    expect(rotated.json).toMatchObject(labels);
    const listed = rows(await h.api('GET', `${KEYS}?limit=200`, { as: boss.token })).find((row) => row['id'] === id);
    expect(listed).toMatchObject(labels);
    const audited = (await h.audit('api_key.create')).find((row) => row['target_id'] === id);
    expect(audited?.['after']).toMatchObject(labels);
  });

  test.each<[string, object, string]>([
    ['16 pairs', { metadata: pairs(16) }, '201'],
    ['17 pairs', { metadata: pairs(17) }, '422 invalid_field'],
    ['a key of 64 characters', { metadata: { ['ö'.repeat(64)]: '' } }, '201'],
    ['a key of 65 characters', { metadata: { ['k'.repeat(65)]: '' } }, '422 invalid_field'],
    ['an empty key', { metadata: { '': 'x' } }, '422 invalid_field'],
    ['a value of 512 characters', { metadata: { k: '😀'.repeat(512) } }, '201'],
    ['a value of 513 characters', { metadata: { k: 'v'.repeat(513) } }, '422 invalid_field'],
    ['a value that is no text', { metadata: { k: 1 } }, '422 invalid_field'],
    ['a list', { metadata: [] }, '422 invalid_field'],
    ['a key with NUL', { metadata: { 'a\0b': 'x' } }, '422 invalid_field'],
    ['a name of 100 characters', { name: 'n'.repeat(100) }, '201'],
    ['a name of 101 characters', { name: 'n'.repeat(101) }, '422 invalid_field'],
    ['a blank name', { name: ' ' }, '422 invalid_field'],
    ['no name', { name: null }, '201'],
  ])('take %s: %s', async (_name, body, expected) => {
    expect(outcome(await create(body))).toBe(expected);
  });
});

describe('the list of keys', () => {
  test('is filtered by prefix and by any part of name, description and metadata, and counted', async () => {
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: INITECH, name: 'Initech' } });
    const lumbergh = await h.person(INITECH, ['tenant-admin']);
    const one = await made({ name: 'TPS reports' }, lumbergh.token);
    const two = await made({ description: 'the stapler', metadata: { Floor: 'Basement' } }, lumbergh.token);
    const other = await made({ name: 'TPS reports' });
    const list = (query: string) => h.api('GET', `${KEYS}?${query}`, { as: lumbergh.token });
    for (const [query, ids] of [
      ['q=tps%20R', [one.id]],
      ['q=STAPLER', [two.id]],
      ['q=floor', [two.id]],
      ['q=base', [two.id]],
      ['q=e', [two.id, one.id]],
      ['q=nothing', []],
      [`prefix=${one.key.slice(0, 8)}`, [one.id]],
      ['prefix=psk_', [two.id, one.id]],
      ['prefix=sk_', []],
      ['q=tps&status=revoked', []],
    ] as const) {
      const reply = await list(`${query}&count=true`);
      expect([query, column(reply, 'id'), reply.json['total']]).toEqual([query, ids, ids.length]);
    }
    for (const query of [
      'q=',
      'prefix=',
      'prefix=%C3%B6',
      'prefix=a%20b',
      `q=${'x'.repeat(201)}`,
      'count=1',
      'count=',
    ]) {
      expect([query, outcome(await list(query))]).toEqual([query, '400 invalid_parameter']);
    }
    const page = await list('q=e&limit=1&count=true');
    expect(page.json).toMatchObject({ has_more: true, total: 2 });
    const next = await list(`q=e&limit=1&cursor=${text(page.json, 'next_cursor')}`);
    expect([column(next, 'id'), next.json['total']]).toEqual([[one.id], undefined]);
    expect(column(await h.api('GET', `${KEYS}?q=tps&tenant_id=*`, { as: h.root.token }), 'id')).toEqual([
      other.id,
      one.id,
    ]);
  });
});

describe('the rate limit of a key', () => {
  const slow = { scopes: ['admin:keys', 'chat:*'], rate_limit_rpm: 10, expires_in_days: 5 };
  const put = async (path: string, key: string, rate: number | null) =>
    outcome(await h.api('PUT', path, { as: key, body: { rate_limit_rpm: rate } }));

  test('is not lifted or removed by the key itself, in one step or in two', async () => {
    const maker = await made(slow);
    for (const rate of [11, 1_000_000, null]) expect(await put(maker.path, maker.key, rate)).toBe('403 escalation');
    for (const rate of [10, 9]) expect(await put(maker.path, maker.key, rate)).toBe('200');
    expect(await put(maker.path, maker.key, 10)).toBe('403 escalation');
    expect((await h.api('GET', maker.path, { as: boss.token })).json['rate_limit_rpm']).toBe(9);
    // A change without the limit is allowed.
    expect(outcome(await h.api('PUT', maker.path, { as: maker.key, body: { description: 'new' } }))).toBe('200');
  });

  test('is not evaded by a key that the key makes or changes', async () => {
    const maker = await made(slow);
    for (const more of [{}, { rate_limit_rpm: null }, { rate_limit_rpm: 11 }]) {
      expect(outcome(await create({ expires_in_days: 1, ...more }, maker.key))).toBe('403 escalation');
    }
    const child = await made({ expires_in_days: 1, rate_limit_rpm: 8 }, maker.key);
    expect(await put(child.path, maker.key, 11)).toBe('403 escalation');
    expect(await put(child.path, maker.key, null)).toBe('403 escalation');
    expect(await put(child.path, maker.key, 10)).toBe('200');
    // Only the added rate of a change counts: a limit on an unlimited key adds none.
    const free = await made({ expires_in_days: 1 });
    expect(await put(free.path, maker.key, 100)).toBe('200');
    expect(await put(free.path, maker.key, 101)).toBe('403 escalation');
  });

  test('is not evaded by the secret of a key that the key rotates, nor by the proof of one', async () => {
    const maker = await made(slow);
    const rotate = async (path: string, key: string) => outcome(await h.api('POST', `${path}/rotate`, { as: key }));
    const free = await made({ expires_in_days: 1 });
    expect(await rotate(free.path, maker.key)).toBe('403 escalation');
    expect(await rotate(free.path, boss.token)).toBe('200');
    const slower = await made({ expires_in_days: 1, rate_limit_rpm: 10 });
    expect(await rotate(slower.path, maker.key)).toBe('200');
    const ruled = await made({ ...slow, rate_limit_rpm: null, rate_limits: [{ models: ['*'], parallel: 1 }] });
    expect(await rotate(free.path, ruled.key)).toBe('403 escalation');

    const name = unique('ci');
    const issuer = { name, issuer: `https://${name}.example`, audiences: ['postern'] };
    await h.api('POST', '/v1/iam/issuers', { as: boss.token, body: issuer });
    const proof = () => ({ issuer: name, subject: unique('s') });
    const proveAgain = async (more: object) => {
      const proved = await create({ expires_in_days: 1, proof: proof(), ...more });
      const path = `${KEYS}/${text(proved.json, 'id')}`;
      return outcome(await h.api('PUT', path, { as: maker.key, body: { proof: proof() } }));
    };
    expect(await proveAgain({})).toBe('403 escalation');
    expect(await proveAgain({ rate_limit_rpm: 10 })).toBe('200');
    // Its own secret, last: the former one writes nothing afterwards.
    expect(await rotate(maker.path, maker.key)).toBe('200');
  });

  test('is set freely by a key without one, and by the users that may change the key', async () => {
    const maker = await made({ scopes: ['admin:keys', 'chat:*'], expires_in_days: 5 });
    const child = await made({ expires_in_days: 1, rate_limit_rpm: 5 }, maker.key);
    expect(await put(child.path, maker.key, null)).toBe('200');
    const own = await made({ rate_limit_rpm: 5 }, ada.token);
    expect(await put(own.path, ada.token, 50)).toBe('200');
    expect(await put(own.path, boss.token, null)).toBe('200');
  });
});

describe('the limits by model of a key', () => {
  const rules = [{ models: ['llama-*'], requests_per_minute: 5 }];
  const other = [{ models: ['llama-*'], requests_per_minute: 6 }];
  const put = async (path: string, key: string, rates: unknown) =>
    outcome(await h.api('PUT', path, { as: key, body: { rate_limits: rates } }));

  test('stay as they are for the key itself, and every key that the key makes or enables has the same', async () => {
    const maker = await made({ scopes: ['admin:keys', 'chat:*'], rate_limits: rules, expires_in_days: 5 });
    for (const rates of [other, [], null]) expect(await put(maker.path, maker.key, rates)).toBe('403 escalation');
    expect(await put(maker.path, maker.key, rules)).toBe('200');
    for (const rates of [{}, { rate_limits: null }, { rate_limits: other }]) {
      expect(outcome(await create({ expires_in_days: 1, ...rates }, maker.key))).toBe('403 escalation');
    }
    const child = await made({ expires_in_days: 1, rate_limits: rules }, maker.key);
    expect(await put(child.path, maker.key, null)).toBe('403 escalation');
    expect(await put(child.path, boss.token, other)).toBe('200');
    expect(outcome(await h.api('POST', `${child.path}/disable`, { as: boss.token }))).toBe('200');
    expect(outcome(await h.api('POST', `${child.path}/enable`, { as: maker.key }))).toBe('403 escalation');
  });

  test('are set freely by a key without them, and by the users that may change the key', async () => {
    const maker = await made({ scopes: ['admin:keys', 'chat:*'], expires_in_days: 5 });
    const child = await made({ expires_in_days: 1, rate_limits: rules }, maker.key);
    expect(await put(child.path, maker.key, other)).toBe('200');
    expect(await put(child.path, boss.token, [])).toBe('200');
    expect((await h.api('GET', child.path, { as: boss.token })).json['rate_limits']).toBeNull();
  });
});

describe('access to keys', () => {
  test('without admin:keys covers only the keys of the caller', async () => {
    const mine = await made({}, ada.token);
    const theirs = await made();
    const as = ada.token;
    expect(new Set(column(await h.api('GET', KEYS, { as }), 'user_id'))).toEqual(new Set([ada.id]));
    expect(outcome(await h.api('GET', `${KEYS}?user_id=${ada.id}`, { as }))).toBe('200');
    expect(outcome(await h.api('GET', `${KEYS}?user_id=${boss.id}`, { as }))).toBe('403 insufficient_permission');
    expect(outcome(await h.api('GET', mine.path, { as }))).toBe('200');
    expect(outcome(await h.api('PUT', mine.path, { as, body: { description: 'new' } }))).toBe('200');
    for (const path of [theirs.path, `${KEYS}/key_00000000000000000000000000`, `${KEYS}/x`]) {
      expect(outcome(await h.api('GET', path, { as }))).toBe('403 insufficient_permission');
      expect(outcome(await h.api('DELETE', path, { as }))).toBe('403 insufficient_permission');
    }
    expect(outcome(await h.api('GET', mine.path, { as: mine.key }))).toBe('403 insufficient_permission');
  });

  test('is checked before the body for a caller that has no keys of its own, and for the owner that a body names', async () => {
    const mine = await made({}, ada.token);
    const requests: [method: string, path: string, body?: object][] = [
      ['POST', KEYS, {}],
      ['POST', `${KEYS}?strict=true`, { ...BODY, scopes: ['chat:wriet'] }],
      ['POST', `${KEYS}?unknown=1`, BODY],
      ['PUT', mine.path, { scopes: 3 }],
      ['PATCH', mine.path, { scopes: ['cha*:read'] }],
      ['POST', `${mine.path}/rotate`, { grace_seconds: -1 }],
      ['GET', `${KEYS}?status=unknown`],
      ['GET', `${mine.path}/permissions?limit=0`],
    ];
    for (const [method, path, body] of requests) {
      const reply = await h.api(method, path, { as: mine.key, ...(body && { body }) });
      expect([method, path, outcome(reply)]).toEqual([method, path, '403 insufficient_permission']);
    }
    for (const user_id of ['bob', 'usr_00000000000000000000000000', boss.id])
      expect(outcome(await create({ user_id }, ada.token))).toBe('403 insufficient_permission');
    expect(outcome(await create({ user_id: 'bob' }))).toBe('422 invalid_field');
    expect(outcome(await create({ user_id: ada.id }, ada.token))).toBe('201');
  });

  test("a deny on admin:keys applies to the caller's own keys too", async () => {
    const body = {
      name: 'no-keys',
      effect: 'deny',
      actions: ['admin:keys'],
      resources: ['*'],
      attached_roles: ['developer'],
    };
    await h.api('POST', '/v1/iam/policies', { as: boss.token, body });
    expect(outcome(await create({}, ada.token))).toBe('403 denied_by_policy');
    expect(outcome(await h.api('GET', KEYS, { as: ada.token }))).toBe('403 denied_by_policy');
    expect(outcome(await create({ scopes: 3 }, ada.token))).toBe('403 denied_by_policy');
    await h.api('DELETE', '/v1/iam/policies/no-keys', { as: boss.token });
  });

  test('is newest first, or sorted by each member in both directions, and pages of an order stay stable while keys are added', async () => {
    const tenant = unique('sorted');
    await h.api('POST', '/v1/iam/tenants', {
      as: h.root.token,
      body: { id: tenant, name: tenant, settings: { allow_keys_without_expiry: true } },
    });
    const owner = await h.person(tenant, ['tenant-admin']);
    const create = async (body: object) => {
      const base = { description: 'k', scopes: ['chat:read'], expires_at: null };
      return text((await h.api('POST', KEYS, { as: owner.token, body: { ...base, ...body } })).json, 'id');
    };
    const a = await create({ name: 'Beta', expires_in_days: 9, expires_at: undefined });
    const b = await create({ name: 'alpha', user_id: owner.id });
    const c = await create({ expires_in_days: 2, expires_at: undefined });
    await h.db.knex.raw(`update api_keys set last_used_at = now() - interval '40 days' where id = ?`, [c]);
    await h.db.knex.raw(`update api_keys set last_used_at = now() where id = ?`, [a]);
    await h.db.knex.raw(`update api_keys set created_at = created_at - interval '50 days' where id in (?, ?)`, [b, c]);
    const get = (query: string) => h.api('GET', `${KEYS}?${query}`, { as: owner.token });
    const ids = async (query: string) => column(await get(query), 'id');
    for (const [query, expected] of [
      ['', [a, c, b]],
      ['sort=created_at', [b, c, a]],
      ['sort=-last_used_at', [a, c, b]],
      ['sort=last_used_at', [c, a, b]],
      ['sort=expires_at', [c, a, b]],
      ['sort=-expires_at', [a, c, b]],
      ['sort=name', [b, a, c]],
      ['sort=-name', [a, b, c]],
      ['without_expiry=true', [b]],
      ['unused_days=30', [c, b]],
      [`q=${encodeURIComponent(`${owner.id}@`.toUpperCase())}`, [b]],
    ] as const) {
      expect([query, await ids(query)]).toEqual([query, expected]);
      const first = await get(`${query}&limit=1`);
      if (expected.length > 1) {
        const added = await create({ name: 'between', expires_in_days: 5, expires_at: undefined });
        const rest = await ids(`${query}&cursor=${text(first.json, 'next_cursor')}`);
        expect([query, rest.filter((id) => id !== added)]).toEqual([query, expected.slice(1)]);
        await h.db.knex('api_keys').where({ id: added }).delete();
      }
    }
    for (const query of ['sort=id', 'sort=', 'unused_days=0', 'without_expiry=false', 'include=secret']) {
      expect([query, outcome(await get(query))]).toEqual([query, '400 invalid_parameter']);
    }
  });

  describe('with wider_than_used=true', () => {
    const PLATFORM = [...new Set(BUILTIN_ROUTES.flatMap((route) => route.permissions.map(({ text }) => text)))];
    const FIRSTS = [...new Set(BUILTIN_ROUTES.map((route) => route.permissions[0].text))];
    const parts = (part: 0 | 1) => PLATFORM.map((name) => name.split(':')[part] ?? '');
    const words = (part: 0 | 1) => fc.constantFrom('*', 'admin', 'nothing', ...new Set(parts(part)));
    const scope = fc.oneof(
      fc.constantFrom('*', 'chat:*', 'rag:query', 'rag:read', 'admin:keys', ...PLATFORM),
      fc.tuple(words(0), words(1)).map(([resource, action]) => `${resource}:${action}`),
    );
    const use = fc.record({ permission: fc.constantFrom(...FIRSTS), daysAgo: fc.constantFrom(0, 1, 29, 32) });
    const keySpec = fc.record({
      scopes: fc.array(scope, { minLength: 1, maxLength: 3 }),
      ageDays: fc.constantFrom(0, 29, 31, 400),
      uses: fc.array(use, { maxLength: 8 }),
      /** Every permission of the platform is used, except these. */
      usesAllExcept: fc.option(fc.subarray(FIRSTS, { maxLength: 2 }), { nil: undefined }),
    });
    type Spec = typeof keySpec extends fc.Arbitrary<infer T> ? T : never;

    const dayOf = (daysAgo: number) => new Date(Date.now() - daysAgo * DAY_MS).toISOString().slice(0, 10);

    /** The rule in the simplest words. */
    function covered(scopes: readonly string[], permission: string): boolean {
      const [resource, action] = permission.split(':');
      return scopes.some((pattern) => {
        const [ofResource = '', ofAction = '*'] = pattern.split(':');
        return [resource, '*'].includes(ofResource) && [action, '*'].includes(ofAction);
      });
    }

    function usesOf({ uses, usesAllExcept }: Spec): ReadonlyMap<string, number> {
      const days = new Map<string, number>();
      for (const { permission, daysAgo } of uses)
        days.set(permission, Math.min(daysAgo, days.get(permission) ?? Number.POSITIVE_INFINITY));
      if (usesAllExcept !== undefined) {
        for (const name of FIRSTS) if (!usesAllExcept.includes(name)) days.set(name, 2);
      }
      return days;
    }

    /** The permissions that the key may use, with the day of the last use among the last 30. */
    function naive(spec: Spec): ReadonlyMap<string, string | null> {
      const days = usesOf(spec);
      const names = PLATFORM.filter((name) => covered(spec.scopes, name));
      return new Map(
        names.map((name) => {
          const routes = BUILTIN_ROUTES.filter((route) => route.permissions.some(({ text }) => text === name));
          const ages = routes.map((route) => days.get(route.permissions[0].text) ?? Number.POSITIVE_INFINITY);
          const last = Math.min(...ages);
          return [name, last <= 30 ? dayOf(last) : null];
        }),
      );
    }

    test('lists the keys of at least 30 days with a permission that they have not used in 30 days, as their pages of permissions say', async () => {
      const tenants = [unique('wider'), unique('wider')];
      for (const id of tenants) {
        const settings = { allow_keys_without_expiry: true };
        await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id, settings } });
      }
      const [tenant = '', other = ''] = tenants;
      const [owner, stranger] = [await h.person(tenant, ['tenant-admin']), await h.person(other, ['tenant-admin'])];
      const ids = await Promise.all(
        Array.from({ length: 6 }, async () => {
          const body = { description: 'k', scopes: ['chat:read'], expires_at: null };
          return text((await h.api('POST', KEYS, { as: owner.token, body })).json, 'id');
        }),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(keySpec, { minLength: 6, maxLength: 6 }), async (specs) => {
          const keys = specs.map((spec, i) => ({ ...spec, id: ids[i] ?? '' }));
          await h.db.knex('key_permissions_used').whereIn('key_id', ids).delete();
          for (const { id, scopes, ageDays } of keys) {
            const made = new Date(Date.now() - ageDays * DAY_MS);
            await h.db.knex('api_keys').where({ id }).update({ scopes, created_at: made });
          }
          const used = keys.flatMap((key) =>
            Array.from(usesOf(key), ([permission, daysAgo]) => ({
              ...{ key_id: key.id, permission, last_used_on: dayOf(daysAgo) },
            })),
          );
          if (used.length > 0) await h.db.knex('key_permissions_used').insert(used);
          const wide = keys.filter((key) => key.ageDays >= 30 && [...naive(key).values()].includes(null));
          const reply = await h.api('GET', `${KEYS}?wider_than_used=true&count=true&sort=name`, { as: owner.token });
          expect(column(reply, 'id').toSorted()).toEqual(wide.map(({ id }) => id).toSorted());
          expect(reply.json['total']).toBe(wide.length);
          const [first] = keys;
          if (first === undefined) return;
          const shown = await h.api('GET', `${KEYS}/${first.id}/permissions?limit=200`, { as: owner.token });
          expect(new Map(rows(shown).map((row) => [row['permission'], row['last_used_on']]))).toEqual(naive(first));
        }),
        { numRuns: runs(25) },
      );
      await h.db.knex('key_permissions_used').whereIn('key_id', ids).delete();
      const wide = { scopes: ['*'], created_at: new Date(Date.now() - 31 * DAY_MS) };
      await h.db.knex('api_keys').whereIn('id', ids).update(wide);
      expect(rows(await h.api('GET', `${KEYS}?wider_than_used=true`, { as: owner.token }))).toHaveLength(6);
      expect(rows(await h.api('GET', `${KEYS}?wider_than_used=true`, { as: stranger.token }))).toEqual([]);
      expect(outcome(await h.api('GET', `${KEYS}/${ids[0]}/permissions`, { as: stranger.token }))).toBe(
        '404 not_found',
      );
    });

    test('is no filter of a revocation, and takes no other value', async () => {
      const body = { filter: { wider_than_used: true } };
      expect(outcome(await h.api('POST', `${KEYS}/revoke`, { as: boss.token, body }))).toBe('422 invalid_field');
      expect(outcome(await h.api('GET', `${KEYS}?wider_than_used=false`, { as: boss.token }))).toBe(
        '400 invalid_parameter',
      );
    });

    test('pages of permissions continue after their last row, for the owner of the key too', async () => {
      const { path } = await made({ scopes: ['chat:*', 'models:read'], user_id: ada.id });
      const first = await h.api('GET', `${path}/permissions?limit=2&count=true`, { as: ada.token });
      expect(first.json['total']).toBe(3);
      const cursor = text(first.json, 'next_cursor');
      const rest = await h.api('GET', `${path}/permissions?limit=2&cursor=${cursor}`, { as: ada.token });
      expect([...column(first, 'permission'), ...column(rest, 'permission')]).toEqual([
        'chat:read',
        'chat:write',
        'models:read',
      ]);
      const { path: others } = await made();
      expect(outcome(await h.api('GET', `${others}/permissions`, { as: ada.token }))).toBe(
        '403 insufficient_permission',
      );
    });
  });

  test('shows the name and address of owners with include=owner to callers that may see users', async () => {
    const mine = await made({ user_id: ada.id });
    const list = async (as: string, query: string) => h.api('GET', `${KEYS}?include=owner${query}`, { as });
    const shown = rows(await list(boss.token, '')).find(({ id }) => id === mine.id);
    expect(shown?.['owner']).toEqual({ id: ada.id, name: expect.any(String), email: `${ada.id}@example.test` });
    const clerk = text(
      (
        await h.api('POST', KEYS, {
          as: boss.token,
          body: { description: 'k', scopes: ['admin:keys'], expires_in_days: 1 },
        })
      ).json,
      'key',
    );
    expect(outcome(await list(clerk, ''))).toBe('403 insufficient_permission');
    // Without the permission to see users, a search does not reveal their addresses.
    const found = await h.api('GET', `${KEYS}?q=${encodeURIComponent(`${ada.id}@example`)}`, { as: clerk });
    expect(rows(found)).toEqual([]);
  });

  test('filters narrow by status, owner and expiry', async () => {
    const soon = await made({ user_id: ada.id, expires_in_days: 2 });
    const gone = await made({ user_id: ada.id });
    await h.api('DELETE', gone.path, { as: boss.token });
    const old = await made();
    await h.db.knex.raw(`update api_keys set expires_at = now() - interval '1 hour' where id = ?`, [old.id]);
    const ids = async (query: string) =>
      column(await h.api('GET', `${KEYS}?limit=200&${query}`, { as: boss.token }), 'id');
    expect(await ids('status=revoked')).toEqual([gone.id]);
    expect(await ids('status=expired')).toEqual([old.id]);
    const before = encodeURIComponent(new Date(Date.now() + 3 * DAY_MS).toISOString());
    expect(await ids(`status=active&user_id=${ada.id}&expires_before=${before}`)).toEqual([soon.id]);
    expect(await ids('user_id=nobody')).toEqual([]);
    expect(outcome(await h.api('GET', `${KEYS}?expires_before=soon`, { as: boss.token }))).toBe(
      '400 invalid_parameter',
    );
  });
});

describe('the creator of a key', () => {
  test('is the user or the key that created it, and a filter of lists and of revocations', async () => {
    const maker = await h.person(ACME, ['tenant-admin']);
    const own = await made({ user_id: maker.id, scopes: ['admin:keys', 'chat:*'] }, maker.token);
    const forAda = await made({ user_id: ada.id }, maker.token);
    const ofTenant = await made({}, maker.token);
    const byKey = await made({ expires_in_days: 1 }, own.key);
    const ids = async (query: string, as = boss.token) =>
      new Set(column(await h.api('GET', `${KEYS}?limit=200&${query}`, { as }), 'id'));
    const creator = async (path: string) => (await h.api('GET', path, { as: boss.token })).json['created_by'];
    expect(await creator(ofTenant.path)).toEqual({ type: 'user', id: maker.id });
    expect(await creator(byKey.path)).toEqual({ type: 'api_key', id: own.id });
    expect(await ids(`created_by=${maker.id}`)).toEqual(new Set([own.id, forAda.id, ofTenant.id]));
    expect(await ids(`created_by=${maker.id}&user_id=${ada.id}&status=active`)).toEqual(new Set([forAda.id]));
    expect(await ids(`created_by=${maker.id}&q=build`)).toEqual(new Set([own.id, forAda.id, ofTenant.id]));
    expect(await ids(`created_by=${own.id}`)).toEqual(new Set([byKey.id]));
    expect(await ids('created_by=nobody')).toEqual(new Set());
    // Without admin:keys the list holds the caller's own keys only.
    expect(await ids(`created_by=${maker.id}`, ada.token)).toEqual(new Set([forAda.id]));
    const revoked = await h.api('POST', `${KEYS}/revoke`, {
      as: boss.token,
      body: { filter: { created_by: maker.id } },
    });
    expect(revoked.json['revoked']).toBe(3);
    expect(await ids(`created_by=${maker.id}&status=active`)).toEqual(new Set());
    expect(await ids(`created_by=${own.id}&status=active`)).toEqual(new Set([byKey.id]));
  });
});

describe('changing a key', () => {
  test('takes effect at once', async () => {
    const { key, path } = await made({ scopes: ['admin:users'] });
    expect(outcome(await h.api('GET', '/v1/iam/users', { as: key }))).toBe('200');
    const put = await h.api('PUT', path, { as: boss.token, body: { scopes: ['chat:read'] } });
    expect(put.json).toMatchObject({ scopes: ['chat:read'], description: 'Build server' });
    expect(put.json['key']).toBeUndefined();
    expect(outcome(await h.api('GET', '/v1/iam/users', { as: key }))).toBe('403 insufficient_permission');
  });

  test('revoking ends it at once and permanently, and may be repeated', async () => {
    const { key, path } = await made();
    expect(await works(key)).toBe(true);
    expect(outcome(await h.api('DELETE', path, { as: boss.token }))).toBe('204');
    expect(outcome(await h.api('GET', '/v1/iam/users', { as: key }))).toBe('401 invalid_credential');
    expect(outcome(await h.api('DELETE', path, { as: boss.token }))).toBe('204');
    expect((await h.api('GET', path, { as: boss.token })).json['status']).toBe('revoked');
    expect(outcome(await h.api('PUT', path, { as: boss.token, body: { description: 'x' } }))).toBe('409 revoked');
    expect(outcome(await h.api('POST', `${path}/rotate`, { as: boss.token }))).toBe('409 revoked');
  });

  test('disabling ends it at once, until it is enabled; both may be repeated, and each change has its audit row', async () => {
    const { id, key, path } = await made();
    const act = async (action: string) => outcome(await h.api('POST', `${path}/${action}`, { as: boss.token }));
    const statusOf = async () => (await h.api('GET', path, { as: boss.token })).json['status'];
    expect(await works(key)).toBe(true);
    const disabled = await h.api('POST', `${path}/disable`, { as: boss.token });
    expect([outcome(disabled), disabled.json['id'], disabled.json['status']]).toEqual(['200', id, 'disabled']);
    expect([await act('disable'), await statusOf()]).toEqual(['200', 'disabled']);
    const refused = await h.api('GET', '/v1/iam/users', { as: key });
    const unknown = await h.api('GET', '/v1/iam/users', { as: `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}` });
    expect([outcome(refused), refused.json['detail']]).toEqual(['401 invalid_credential', unknown.json['detail']]);
    const listed = await h.api('GET', `${KEYS}?status=disabled`, { as: boss.token });
    expect(column(listed, 'id')).toContain(id);
    expect([await act('enable'), await act('enable'), await statusOf(), await works(key)]).toEqual([
      '200',
      '200',
      'active',
      true,
    ]);
    const rows = [...(await h.audit('api_key.disable')), ...(await h.audit('api_key.enable'))]
      .filter((row) => row['target_id'] === id)
      .map((row) => [row['before'], row['after']]);
    expect(rows[0]).toMatchObject([{ status: 'active' }, { status: 'disabled' }]);
    expect(rows[2]).toMatchObject([{ status: 'disabled' }, { status: 'active' }]);
    await h.api('DELETE', path, { as: boss.token });
    expect([await act('disable'), await act('enable')]).toEqual(['409 revoked', '409 revoked']);
  });

  test('a disabled key stays disabled when it is rotated or updated, and its old secret is rejected in the grace too', async () => {
    const { key, path } = await made();
    const first = await h.api('POST', `${path}/rotate`, { as: boss.token, body: { grace_seconds: 3600 } });
    const second = text(first.json, 'key');
    expect([await works(key), await works(second)]).toEqual([true, true]);
    await h.api('POST', `${path}/disable`, { as: boss.token });
    expect([await works(key), await works(second)]).toEqual([false, false]);
    const rotated = await h.api('POST', `${path}/rotate`, { as: boss.token, body: { grace_seconds: 3600 } });
    const third = text(rotated.json, 'key');
    const updated = await h.api('PUT', path, { as: boss.token, body: { description: 'x' } });
    expect([rotated.json['status'], updated.json['status']]).toEqual(['disabled', 'disabled']);
    expect([await works(second), await works(third)]).toEqual([false, false]);
    await h.api('POST', `${path}/enable`, { as: boss.token });
    expect([await works(second), await works(third)]).toEqual([true, true]);
  });

  test('rotating gives a new secret under the same id; the old one works through the grace and no longer', async () => {
    const { id, key, path } = await made();
    const rotate = async (body?: object) =>
      h.api('POST', `${path}/rotate`, { as: boss.token, ...(body === undefined ? {} : { body }) });
    const first = await rotate({ grace_seconds: 3600 });
    const second = text(first.json, 'key');
    expect([outcome(first), first.json['id'], first.json['last_four']]).toEqual(['200', id, second.slice(-4)]);
    expect([await works(key), await works(second)]).toEqual([true, true]);
    const third = text((await rotate({ grace_seconds: 0 })).json, 'key');
    expect([await works(key), await works(second), await works(third)]).toEqual([false, false, true]);
    for (const grace_seconds of [2_592_001, -1, 0.5, null]) {
      expect(outcome(await rotate({ grace_seconds }))).toBe('422 invalid_field');
    }
    expect(outcome(await rotate({ grace_seconds: 2_592_000 }))).toBe('200');
    const graceOf = async () => {
      const found = await h.db
        .knex('api_keys')
        .where({ id })
        .select(h.db.knex.raw('extract(epoch from previous_until - updated_at)::int as s'));
      return Number(found[0].s);
    };
    expect(await graceOf()).toBeCloseTo(2_592_000, -1);
    await rotate();
    expect(await graceOf()).toBeCloseTo(3600, -1);
    await h.api('DELETE', path, { as: boss.token });
    expect(await works(third)).toBe(false);
  });
});
