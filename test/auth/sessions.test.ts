/** The sessions of the caller, and those of a user for an administrator: listing and ending them. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { UserId } from '../../src/domain/ids.ts';
import { MAX_SESSIONS } from '../../src/iam/sessions/queries.ts';
import { makeApiKey } from '../../src/identity/api-keys.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { addPerson, auditOf, clear, PASSWORD } from './people.ts';
import { bearer, fromAddress, type Reply, refreshTokenOf, type Stand, startStand } from './stand.ts';

let database: FreshDatabase;
let stand: Stand;
let ada: UserId;

beforeAll(async () => {
  database = await freshDatabase();
  stand = await startStand(database.url);
});
beforeEach(async () => {
  ada = await addPerson(stand.db, { email: 'ada@example.com', tenant: 'acme', roles: ['developer'] });
});
afterEach(async () => {
  await clear(database.db);
  await stand.parts.feed.catchUp();
});
afterAll(async () => {
  await stand.close();
  await database.close();
});

const SESSIONS = '/v1/auth/sessions';
const MISSING = 'ses_00000000000000000000000000';

const login = (email = 'ada@example.com', headers: Record<string, string> = {}): Promise<Reply> =>
  stand.post('/v1/auth/login', { email, password: PASSWORD }, headers);
const refresh = (reply: Reply): Promise<Reply> =>
  stand.post('/v1/auth/refresh', { refresh_token: refreshTokenOf(reply) });
const list = (by: Reply, query = ''): Promise<Reply> => stand.get(`${SESSIONS}${query}`, bearer(by));

function dataOf(reply: Reply): readonly Readonly<Record<string, unknown>>[] {
  const { data } = reply.json;
  if (!Array.isArray(data)) throw new Error(`no list in ${reply.status} ${reply.text}`);
  return data;
}

async function idOf(reply: Reply): Promise<string> {
  return String(dataOf(await list(reply)).find((session) => session['current'] === true)?.['id']);
}

/** Whether its access token and its refresh token still prove anything. The refresh token is used up. */
async function alive(reply: Reply): Promise<readonly [boolean, boolean]> {
  const me = await stand.get('/v1/auth/me', bearer(reply));
  return [me.status === 200, (await refresh(reply)).status === 200];
}

const outcome = (reply: Reply): string => `${reply.status} ${String(reply.json['code'] ?? '')}`.trim();

describe('the number of active sessions of one user', () => {
  test('is 1,000: a login beyond ends the least recently used one, and no other', async () => {
    const [oldest, other] = [await login(), await login()];
    await stand.db.knex.raw(`update sessions set last_used_at = clock_timestamp() - interval '2 hours' where id = ?`, [
      await idOf(oldest),
    ]);
    await stand.db.query({
      text: `insert into sessions (id, user_id, expires_at, last_used_at)
        select 'ses_' || lpad(n::text, 26, '0'), $1, clock_timestamp() + interval '1 day', clock_timestamp() - interval '1 hour'
        from generate_series(1, $2::int) n`,
      values: [ada, MAX_SESSIONS - 2],
    });
    expect((await stand.get('/v1/auth/me', bearer(oldest))).status).toBe(200);
    const newest = await login();
    await stand.parts.feed.catchUp();
    expect([await alive(oldest), await alive(other), await alive(newest)]).toEqual([
      [false, false],
      [true, true],
      [true, true],
    ]);
    const { rows } = await stand.db.knex.raw<{ rows: { active: number }[] }>(
      'select count(*)::int as active from sessions where user_id = ? and ended_at is null',
      [ada],
    );
    expect(rows[0]?.active).toBe(MAX_SESSIONS);
  });
});

describe('the list of sessions', () => {
  test("shows the caller's active ones, the newest first, with their client address and the current one marked", async () => {
    await addPerson(stand.db, { email: 'bob@example.com', tenant: 'acme' });
    await login('bob@example.com');
    const laptop = await login('ada@example.com', { ...fromAddress('203.0.113.9'), 'user-agent': 'Laptop/1.0' });
    const browser = await stand.post(
      '/v1/auth/login',
      { email: 'ada@example.com', password: PASSWORD, session: 'cookie' },
      { origin: 'https://console.test', host: 'console.test' },
    );
    const reply = await list(laptop);
    expect(reply.status).toBe(200);
    expect(reply.json).toEqual({
      object: 'list',
      data: [
        expect.objectContaining({ id: await idOf(browser), cookie: true, current: false, user_agent: null }),
        {
          id: expect.stringMatching(/^ses_[0-9a-z]{26}$/),
          created_at: expect.any(String),
          last_used_at: expect.any(String),
          expires_at: expect.any(String),
          address: '203.0.113.9',
          user_agent: 'Laptop/1.0',
          cookie: false,
          issuer: null,
          scope: null,
          current: true,
        },
      ],
      has_more: false,
      next_cursor: null,
    });
    const [, shown] = dataOf(reply);
    const days = (Date.parse(String(shown?.['expires_at'])) - Date.parse(String(shown?.['created_at']))) / 86_400_000;
    expect(days).toBeCloseTo(30, 3);
    expect((await stand.get(`${SESSIONS}/${String(shown?.['id'])}`, bearer(laptop))).json).toEqual(shown);
  });

  test('shows when a session was last refreshed', async () => {
    const first = await login();
    const before = dataOf(await list(first))[0];
    const after = dataOf(await list(await refresh(first)))[0];
    expect(after?.['id']).toBe(before?.['id']);
    expect(Date.parse(String(after?.['last_used_at']))).toBeGreaterThanOrEqual(
      Date.parse(String(before?.['last_used_at'])),
    );
    expect(after?.['last_used_at']).not.toBe(before?.['last_used_at']);
  });

  test('comes in pages without gaps or repeats while sessions end and begin, and rejects cursors of another user', async () => {
    const logins: Reply[] = [];
    for (let i = 0; i < 5; i++) logins.push(await login());
    const [oldest, , , fourth, newest] = logins;
    if (oldest === undefined || fourth === undefined || newest === undefined) throw new Error('five logins');
    const ids = dataOf(await list(oldest)).map((session) => session['id']);
    const first = await list(oldest, '?limit=2');
    expect(dataOf(first).map((session) => session['id'])).toEqual(ids.slice(0, 2));
    expect(first.json['has_more']).toBe(true);
    await stand.delete(`${SESSIONS}/${await idOf(fourth)}`, bearer(oldest));
    await login();
    const cursor = String(first.json['next_cursor']);
    const second = await list(oldest, `?limit=2&cursor=${cursor}`);
    expect(dataOf(second).map((session) => session['id'])).toEqual(ids.slice(2, 4));
    await addPerson(stand.db, { email: 'bob@example.com', tenant: 'acme' });
    expect(outcome(await list(await login('bob@example.com'), `?cursor=${cursor}`))).toBe('400 invalid_parameter');
    expect(outcome(await list(oldest, '?status=active'))).toBe('400 invalid_parameter');
  });

  test.each([
    ['ended', `ended_at = clock_timestamp()`],
    ['past its absolute end', `expires_at = clock_timestamp() - interval '1 second'`],
    ['idle for too long', `last_used_at = clock_timestamp() - interval '7 days 1 second'`],
  ])('does not show a session that is %s, and it can be neither shown nor ended', async (_name, change) => {
    const [here, other] = [await login(), await login()];
    const id = await idOf(other);
    await stand.db.knex.raw(`update sessions set ${change} where id = ?`, [id]);
    expect(dataOf(await list(here)).map((session) => session['current'])).toEqual([true]);
    expect(outcome(await stand.get(`${SESSIONS}/${id}`, bearer(here)))).toBe('404 not_found');
    expect(outcome(await stand.delete(`${SESSIONS}/${id}`, bearer(here)))).toBe('404 not_found');
  });

  test('still shows an idle session whose access token works', async () => {
    const hasty = await startStand(database.url, { login: { refreshIdleMs: 60_000 } });
    const here = await login();
    await stand.db.knex.raw(`update sessions set last_used_at = clock_timestamp() - interval '59 minutes'`);
    const reply = await hasty.get(SESSIONS, bearer(here));
    await hasty.close();
    expect(dataOf(reply)).toHaveLength(1);
  });
});

describe('ending a session', () => {
  test('ends its access token and its refresh token at once, and no other session', async () => {
    const [here, other, bystander] = [await login(), await login(), await login()];
    const id = await idOf(other);
    const reply = await stand.delete(`${SESSIONS}/${id}`, bearer(here));
    expect([reply.status, reply.text]).toEqual([204, '']);
    expect(await alive(other)).toEqual([false, false]);
    expect(await alive(here)).toEqual([true, true]);
    expect(await alive(bystander)).toEqual([true, true]);
    expect(outcome(await stand.delete(`${SESSIONS}/${id}`, bearer(here)))).toBe('404 not_found');
    expect((await auditOf(stand.db)).filter((line) => line.action === 'auth.end_session')).toEqual([
      { actor: ada, tenant: 'acme', action: 'auth.end_session', target: id, result: 'success', address: '127.0.0.1' },
    ]);
  });

  test('is possible for the current one', async () => {
    const here = await login();
    expect((await stand.delete(`${SESSIONS}/${await idOf(here)}`, bearer(here))).status).toBe(204);
    expect(await alive(here)).toEqual([false, false]);
  });

  test('during its refresh leaves no valid token', async () => {
    const [here, other] = [await login(), await login()];
    const id = await idOf(other);
    const [ended, ...pairs] = await Promise.all([
      stand.delete(`${SESSIONS}/${id}`, bearer(here)),
      ...Array.from({ length: 5 }, () => refresh(other)),
    ]);
    expect(ended.status).toBe(204);
    for (const pair of pairs.filter((each) => each.status === 200)) expect(await alive(pair)).toEqual([false, false]);
  });

  test('can require the tag of the session with If-Match; a refresh in between does not change the tag', async () => {
    const [here, other] = [await login(), await login()];
    const path = `${SESSIONS}/${await idOf(other)}`;
    const etag = String((await stand.get(path, bearer(here))).headers['etag']);
    expect((await stand.get(path, { ...bearer(here), 'if-none-match': etag })).status).toBe(304);
    expect(outcome(await stand.delete(path, { ...bearer(here), 'if-match': '"another"' }))).toBe(
      '412 precondition_failed',
    );
    const next = await refresh(other);
    expect((await stand.delete(path, { ...bearer(here), 'if-match': etag })).status).toBe(204);
    expect(await alive(next)).toEqual([false, false]);
  });
});

describe('another user’s session', () => {
  /** Returns the answer, except the parts that differ with every request. */
  function visible({ status, headers, json }: Reply): unknown {
    const { date: _date, 'x-request-id': _id, ...shown } = headers;
    return { status, shown, json: { ...json, request_id: '' } };
  }

  test.each([
    ['of the same tenant', 'acme', ['developer']],
    ['to a tenant administrator', 'acme', ['tenant-admin']],
    ['of another tenant', 'globex', ['developer']],
    ['to a platform administrator', 'default', ['admin']],
  ])('is answered exactly like a missing one and continues: %s', async (_name, tenant, roles) => {
    await addPerson(stand.db, { email: 'eve@example.com', tenant, roles });
    const [hers, eve] = [await login(), await login('eve@example.com')];
    const id = await idOf(hers);
    for (const ask of [stand.get, stand.delete]) {
      const foreign = await ask(`${SESSIONS}/${id}`, bearer(eve));
      expect(outcome(foreign)).toBe('404 not_found');
      for (const missing of [MISSING, 'ses_x', ada, '%20'])
        expect(visible(await ask(`${SESSIONS}/${missing}`, bearer(eve)))).toEqual(visible(foreign));
    }
    expect(await alive(hers)).toEqual([true, true]);
  });
});

describe('ending all sessions', () => {
  test('spares the current one', async () => {
    await addPerson(stand.db, { email: 'bob@example.com', tenant: 'acme' });
    const [here, one, two, bob] = [await login(), await login(), await login(), await login('bob@example.com')];
    expect((await stand.delete(SESSIONS, bearer(here))).status).toBe(204);
    expect(await alive(one)).toEqual([false, false]);
    expect(await alive(two)).toEqual([false, false]);
    expect(await alive(bob)).toEqual([true, true]);
    expect(dataOf(await list(here))).toHaveLength(1);
    expect(await alive(here)).toEqual([true, true]);
    expect(await auditOf(stand.db)).toContainEqual(
      expect.objectContaining({
        actor: ada,
        tenant: 'acme',
        action: 'auth.end_sessions',
        target: ada,
        result: 'success',
      }),
    );
  });

  test('also ends the current one on request', async () => {
    const [here, other] = [await login(), await login()];
    expect((await stand.delete(`${SESSIONS}?current=true`, bearer(here))).status).toBe(204);
    expect(await alive(other)).toEqual([false, false]);
    expect(await alive(here)).toEqual([false, false]);
  });

  test('does nothing for a parameter that it does not know', async () => {
    const [here, other] = [await login(), await login()];
    for (const query of ['?current=yes', '?all=true'])
      expect(outcome(await stand.delete(`${SESSIONS}${query}`, bearer(here)))).toBe('400 invalid_parameter');
    expect(await alive(other)).toEqual([true, true]);
  });

  test("of a user by an administrator ends both kinds of token, and no other user's", async () => {
    await addPerson(stand.db, { email: 'boss@example.com', tenant: 'acme', roles: ['tenant-admin'] });
    const [one, two, boss] = [await login(), await login(), await login('boss@example.com')];
    const reply = await stand.delete(`/v1/iam/users/${ada}/sessions`, bearer(boss));
    expect([reply.status, reply.json['id']]).toEqual([200, ada]);
    expect(await alive(one)).toEqual([false, false]);
    expect(await alive(two)).toEqual([false, false]);
    expect(await alive(boss)).toEqual([true, true]);
  });

  test('of a stronger user is refused, and they live on', async () => {
    await addPerson(stand.db, { email: 'root@example.com', tenant: 'acme', roles: ['admin'] });
    await addPerson(stand.db, { email: 'boss@example.com', tenant: 'acme', roles: ['tenant-admin'] });
    const [root, boss] = [await login('root@example.com'), await login('boss@example.com')];
    const me = await stand.get('/v1/auth/me', bearer(root));
    const path = `/v1/iam/users/${String(me.json['id'])}/sessions`;
    expect(outcome(await stand.delete(path, bearer(boss)))).toBe('403 escalation');
    expect(await alive(root)).toEqual([true, true]);
  });
});

test('an API key sees and ends no session, not even its owner’s', async () => {
  const here = await login();
  const id = await idOf(here);
  const key = makeApiKey();
  await stand.db.knex('api_keys').insert({
    id: 'key_00000000000000000000000000',
    tenant_id: 'acme',
    user_id: ada,
    description: 'a robot',
    digest: Buffer.from(key.digest, 'hex'),
    prefix: key.prefix,
    last_four: key.lastFour,
    scopes: ['*'],
    created_by: ada,
  });
  const robot = { authorization: `Bearer ${key.text}` };
  for (const path of [SESSIONS, `${SESSIONS}/${id}`, `${SESSIONS}/${MISSING}`])
    for (const ask of [stand.get, stand.delete])
      expect(outcome(await ask(path, robot))).toBe('403 insufficient_permission');
  for (const ask of [stand.get, stand.delete]) expect(outcome(await ask(SESSIONS))).toBe('401 missing_credential');
  expect(await alive(here)).toEqual([true, true]);
});

describe('the sessions of a user', () => {
  const ofUser = (user: string, rest = ''): string => `/v1/iam/users/${user}/sessions${rest}`;
  const boss = async (): Promise<Reply> => {
    await addPerson(stand.db, { email: 'boss@example.com', tenant: 'acme', roles: ['tenant-admin'] });
    return login('boss@example.com');
  };

  test('are listed to an administrator, the newest first, as the user sees them', async () => {
    const older = await login('ada@example.com', { 'user-agent': 'Older/1' });
    const newer = await login('ada@example.com', { 'user-agent': 'Newer/1' });
    const by = await boss();
    const hers = dataOf(await list(newer)).map((session) => ({ ...session, current: false }));
    expect(dataOf(await stand.get(ofUser(ada), bearer(by)))).toEqual(hers);
    expect(hers.map((session) => 'user_agent' in session && session['user_agent'])).toEqual(['Newer/1', 'Older/1']);
    const first = await stand.get(ofUser(ada, '?limit=1&count=true'), bearer(by));
    expect([dataOf(first), first.json['total']]).toEqual([hers.slice(0, 1), 2]);
    const next = ofUser(ada, `?limit=1&cursor=${String(first.json['next_cursor'])}`);
    expect(dataOf(await stand.get(next, bearer(by)))).toEqual(hers.slice(1));
    const id = await idOf(older);
    expect((await stand.get(ofUser(ada, `/${id}`), bearer(by))).json).toEqual(hers[1]);
  });

  test('end one by one: both kinds of token of that one, and of no other, with one audit row about the user', async () => {
    const [one, two, by] = [await login(), await login(), await boss()];
    const id = await idOf(one);
    expect((await stand.delete(ofUser(ada, `/${id}`), bearer(by))).status).toBe(204);
    expect(await alive(one)).toEqual([false, false]);
    expect(await alive(two)).toEqual([true, true]);
    expect(outcome(await stand.delete(ofUser(ada, `/${id}`), bearer(by)))).toBe('404 not_found');
    expect(await auditOf(stand.db)).toContainEqual(
      expect.objectContaining({ tenant: 'acme', action: 'user.end_session', target: ada, result: 'success' }),
    );
  });

  test('of a stronger user do not end, and those of another tenant or of another user are missing', async () => {
    const root = await addPerson(stand.db, { email: 'root@example.com', tenant: 'acme', roles: ['admin'] });
    const eve = await addPerson(stand.db, { email: 'eve@example.com', tenant: 'globex' });
    const [hers, rootsOwn, eves, by] = [
      await login(),
      await login('root@example.com'),
      await login('eve@example.com'),
      await boss(),
    ];
    expect(outcome(await stand.delete(ofUser(root, `/${await idOf(rootsOwn)}`), bearer(by)))).toBe('403 escalation');
    for (const path of [ofUser(eve), ofUser(eve, `/${await idOf(eves)}`), ofUser(ada, `/${await idOf(eves)}`)])
      expect(outcome(await stand.get(path, bearer(by)))).toBe('404 not_found');
    for (const path of [
      ofUser(eve, `/${await idOf(eves)}`),
      ofUser(ada, `/${await idOf(eves)}`),
      ofUser(ada, '/ses_x'),
    ])
      expect(outcome(await stand.delete(path, bearer(by)))).toBe('404 not_found');
    for (const reply of [hers, rootsOwn, eves]) expect(await alive(reply)).toEqual([true, true]);
  });

  test('are shown to no caller without admin:users, the user included', async () => {
    const hers = await login();
    const id = await idOf(hers);
    for (const path of [ofUser(ada), ofUser(ada, `/${id}`)])
      expect(outcome(await stand.get(path, bearer(hers)))).toBe('403 insufficient_permission');
    expect(outcome(await stand.delete(ofUser(ada, `/${id}`), bearer(hers)))).toBe('403 insufficient_permission');
    expect(await alive(hers)).toEqual([true, true]);
  });
});
