import { describe, expect, test } from 'vitest';
import { column, type Harness, it, outcome, type Person, rows, text, unique } from './harness.ts';

const ACME = unique('acme');
const GLOBEX = unique('globex');

let h: Harness;
let boss: Person;
it.beforeAll(async ({ harness }) => {
  h = harness;
  for (const id of [ACME, GLOBEX]) await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  boss = await h.person(ACME, ['tenant-admin']);
});

const KEYS = '/v1/iam/api-keys';
const made = async (body: object = {}, as = boss.token) => {
  const all = { description: 'k', scopes: ['chat:write'], expires_in_days: 30, ...body };
  const { json } = await h.api('POST', KEYS, { as, body: all });
  return { id: text(json, 'id'), key: text(json, 'key') };
};
const revoke = (body: object, { as = boss.token, query = '', headers = {} } = {}) =>
  h.api('POST', `${KEYS}/revoke${query}`, { as, body, headers });
const works = async (key: string) =>
  outcome(await h.api('GET', '/v1/iam/users', { as: key })) === '403 insufficient_permission';
const revocations = async () => (await h.audit('api_key.revoke')).map((row) => [row['target_id'], row['result']]);

describe('revoking several keys', () => {
  test('by id revokes each at once, returns the outcome of each, and leaves an audit row for each revoked key', async () => {
    const [one, two, gone] = [await made({ name: 'one' }), await made(), await made()];
    const theirs = await h.api('POST', KEYS, {
      as: h.root.token,
      tenant: GLOBEX,
      body: { description: 'k', scopes: ['chat:read'], expires_in_days: 1 },
    });
    await h.api('DELETE', `${KEYS}/${gone.id}`, { as: boss.token });
    expect([await works(one.key), await works(two.key)]).toEqual([true, true]);
    const before = (await revocations()).length;
    const missing = 'key_00000000000000000000000000';
    const reply = await revoke({ ids: [two.id, one.id, gone.id, missing, 'no id', text(theirs.json, 'id'), one.id] });
    expect(reply.json).toMatchObject({ dry_run: false, revoked: 2, has_more: false });
    expect(rows(reply).map((row) => [row['id'], row['outcome']])).toEqual([
      [two.id, 'revoked'],
      [one.id, 'revoked'],
      [gone.id, 'already_revoked'],
      [missing, 'not_found'],
      ['no id', 'not_found'],
      [text(theirs.json, 'id'), 'not_found'],
    ]);
    expect(rows(reply)[1]?.['key']).toMatchObject({ name: 'one', description: 'k', last_four: one.key.slice(-4) });
    expect([await works(one.key), await works(two.key), await works(text(theirs.json, 'key'))]).toEqual([
      false,
      false,
      true,
    ]);
    expect((await revocations()).slice(before)).toEqual(
      [one.id, two.id].sort((left, right) => (left < right ? -1 : 1)).map((id) => [id, 'success']),
    );
    const [row] = (await h.audit('api_key.revoke')).slice(-1);
    expect([row?.['before'], row?.['after']]).toMatchObject([{ status: 'active' }, { status: 'revoked' }]);
    expect((await revoke({ ids: [one.id] })).json['revoked']).toBe(0);
    expect((await revocations()).length).toBe(before + 2);
  });

  test('by id reaches the keys of every tenant for a platform administrator that names none', async () => {
    const theirs = await h.person(GLOBEX, ['tenant-admin']);
    const [here, there, own] = [await made(), await made({}, theirs.token), await made({}, h.root.token)];
    const missing = 'key_00000000000000000000000000';
    const ids = [there.id, missing, here.id, own.id, there.id];
    const as = h.root.token;
    const outcomes = (reply: Awaited<ReturnType<typeof revoke>>) =>
      rows(reply).map((row) => [row['id'], row['outcome']]);

    const trial = await revoke({ ids }, { as, query: '?dry_run=true' });
    expect([trial.json['revoked'], outcomes(trial)[0]]).toEqual([3, [there.id, 'would_revoke']]);
    const named = await h.api('POST', `${KEYS}/revoke?dry_run=true`, { as, tenant: ACME, body: { ids } });
    expect([named.json['revoked'], outcomes(named)[0]]).toEqual([1, [there.id, 'not_found']]);
    expect(await works(there.key)).toBe(true);

    const headers = { 'idempotency-key': unique('all') };
    const reply = await revoke({ ids }, { as, headers });
    expect(reply.json).toMatchObject({ dry_run: false, revoked: 3, has_more: false });
    expect(outcomes(reply)).toEqual([
      [there.id, 'revoked'],
      [missing, 'not_found'],
      [here.id, 'revoked'],
      [own.id, 'revoked'],
    ]);
    expect([await works(here.key), await works(there.key), await works(own.key)]).toEqual([false, false, false]);
    expect((await h.audit('api_key.revoke')).slice(-3).map((row) => [row['target_id'], row['tenant_id']])).toEqual(
      expect.arrayContaining([
        [here.id, ACME],
        [there.id, GLOBEX],
        [own.id, 'default'],
      ]),
    );
    const again = await revoke({ ids }, { as, headers });
    expect([again.headers['idempotency-replayed'], again.json]).toEqual(['true', reply.json]);
  });

  test('with dry_run=true revokes nothing and returns the keys that it would revoke', async () => {
    const { id, key } = await made({ name: 'rehearsed' });
    const before = await revocations();
    const reply = await revoke({ filter: { q: 'rehearsed' } }, { query: '?dry_run=true' });
    expect(reply.json).toMatchObject({ dry_run: true, revoked: 1, has_more: false });
    expect(rows(reply).map((row) => [row['id'], row['outcome']])).toEqual([[id, 'would_revoke']]);
    expect([await works(key), await revocations()]).toEqual([true, before]);
    const done = await revoke({ filter: { q: 'rehearsed' } });
    expect(column(done, 'id')).toEqual([id]);
    expect(await works(key)).toBe(false);
  });

  test('by a filter takes active keys unless the filter says expired, and only those of the tenant', async () => {
    const ada = await h.person(ACME, ['developer']);
    const [mine, old, other] = [await made({ user_id: ada.id }), await made({ user_id: ada.id }), await made()];
    await h.db
      .knex('api_keys')
      .where({ id: old.id })
      .update({ expires_at: new Date(Date.now() - 60_000) });
    const chosen = async (filter: object) => column(await revoke({ filter }, { query: '?dry_run=true' }), 'id');
    expect(await chosen({ user_id: ada.id })).toEqual([mine.id]);
    expect(await chosen({ user_id: ada.id, status: 'expired' })).toEqual([old.id]);
    expect(await chosen({ prefix: other.key.slice(0, 8) })).toEqual([other.id]);
    expect(await chosen({ user_id: 'nobody' })).toEqual([]);
    const globex = await h.person(GLOBEX, ['tenant-admin']);
    expect(rows(await revoke({ filter: { prefix: 'psk_' } }, { as: globex.token }))).not.toContainEqual(
      expect.objectContaining({ id: mine.id }),
    );
    expect(await works(mine.key)).toBe(true);
  });

  test('rejects each key with more permissions than the caller, revokes the others, and records both', async () => {
    await h.api('POST', '/v1/iam/roles', {
      as: boss.token,
      body: { name: 'key-clerk', permissions: ['admin:keys', 'chat:*'] },
    });
    const clerk = await h.person(ACME, ['key-clerk']);
    const [weak, strong] = [await made(), await made({ scopes: ['rag:read'] })];
    const reply = await revoke({ ids: [strong.id, weak.id] }, { as: clerk.token });
    expect(rows(reply).map((row) => [row['id'], row['outcome'], row['code']])).toEqual([
      [strong.id, 'rejected', 'escalation'],
      [weak.id, 'revoked', undefined],
    ]);
    expect([await works(weak.key), await works(strong.key)]).toEqual([false, true]);
    expect((await revocations()).slice(-2)).toEqual([
      [weak.id, 'success'],
      [strong.id, 'refused'],
    ]);
  });

  test('needs admin:keys', async () => {
    const ada = await h.person(ACME, ['developer']);
    const { id } = await made({}, ada.token);
    expect(outcome(await revoke({ ids: [id] }, { as: ada.token }))).toBe('403 insufficient_permission');
  });

  test.each<[string, object]>([
    ['neither', {}],
    ['both', { ids: ['key_x'], filter: { q: 'x' } }],
    ['no id', { ids: [] }],
    ['an empty filter', { filter: {} }],
    ['revoked keys', { filter: { status: 'revoked' } }],
    ['1,001 ids', { ids: Array.from({ length: 1001 }, (_, i) => `key_${i}`) }],
  ])('refuses a request with %s', async (_name, body) => {
    expect(outcome(await revoke(body))).toBe('422 invalid_field');
  });

  test('a key may revoke others and itself, once under an Idempotency-Key', async () => {
    const [clerk, other] = [await made({ scopes: ['admin:keys', 'chat:*'] }), await made()];
    const headers = { 'idempotency-key': 'several-1' };
    const reply = await revoke({ ids: [other.id, clerk.id] }, { as: clerk.key, headers });
    expect(column(reply, 'outcome')).toEqual(['revoked', 'revoked']);
    expect(outcome(await revoke({ ids: [other.id] }, { as: clerk.key, headers }))).toBe('401 invalid_credential');
  });

  test('a key of a deleted user holds nothing, so that a caller with fewer permissions than its scopes may revoke it', async () => {
    const strong = await h.person(ACME, ['admin']);
    const as = h.root.token;
    const body = { user_id: strong.id, description: 'k', scopes: ['*'], expires_in_days: 30 };
    const made = await Promise.all([1, 2].map(() => h.api('POST', KEYS, { as, tenant: ACME, body })));
    const [active = '', expired = ''] = made.map(({ json }) => text(json, 'id'));
    await h.db.knex.raw('update api_keys set expires_at = now() where id = ?', [expired]);
    const remove = async () => outcome(await h.api('DELETE', `${KEYS}/${active}`, { as: boss.token }));
    const outcomes = async () =>
      column(await revoke({ ids: [active, expired] }, { query: '?dry_run=true' }), 'outcome');
    expect([await remove(), await outcomes()]).toEqual(['403 escalation', ['rejected', 'rejected']]);
    await h.api('DELETE', `/v1/iam/users/${strong.id}`, { as });
    expect([await remove(), await outcomes()]).toEqual(['204', ['already_revoked', 'would_revoke']]);
  });

  test('takes at most 1,000 keys at a time and says when there are more', async () => {
    await h.db.knex.raw(
      `insert into api_keys (id, tenant_id, name, description, digest, prefix, last_four, scopes, created_by)
       select 'key_' || lpad(i::text, 26, '0'), '${ACME}', 'swarm', 'k', sha256(i::text::bytea), 'psk_0000', '0000', '{chat:read}', 'test'
       from generate_series(1, 1003) i`,
    );
    const first = await revoke({ filter: { q: 'swarm' } });
    expect(first.json).toMatchObject({ revoked: 1000, has_more: true });
    const second = await revoke({ filter: { q: 'swarm' } });
    expect(second.json).toMatchObject({ revoked: 3, has_more: false });
  });

  test('two callers whose keys revoke each other at once, among many, both get an answer', async () => {
    for (let round = 0; round < 5; round++) {
      const many = await Promise.all(Array.from({ length: 6 }, () => made()));
      const [left, right] = [
        await made({ scopes: ['admin:keys', 'chat:*'] }),
        await made({ scopes: ['admin:keys', 'chat:*'] }),
      ];
      const ids = many.map(({ id }) => id);
      const replies = await Promise.all([
        revoke({ ids: [...ids, right.id] }, { as: left.key }),
        revoke({ ids: [left.id, ...ids.toReversed()] }, { as: right.key }),
        h.api('DELETE', `${KEYS}/${left.id}`, { as: boss.token }),
        h.api('PUT', `${KEYS}/${ids[0]}`, { as: boss.token, body: { description: 'changed' } }),
      ]);
      for (const reply of replies) expect([200, 204, 401, 409]).toContain(reply.status);
      expect((await h.db.knex('api_keys').whereIn('id', ids).whereNull('revoked_at')).length % 6).toBe(0);
    }
  });
});
