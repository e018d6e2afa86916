import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Fault } from '../../src/domain/errors.ts';
import { makeId, type UserId } from '../../src/domain/ids.ts';
import { refresh as refreshToken } from '../../src/iam/auth/refresh.ts';
import { MAX_REFRESHES } from '../../src/iam/sessions/queries.ts';
import { opaqueDigest } from '../../src/identity/opaque-tokens.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { addPerson, auditOf, clear, everythingStored, PASSWORD } from './people.ts';
import { bearer, type Reply, refreshTokenOf, type Stand, startStand } from './stand.ts';

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

const login = (): Promise<Reply> => stand.post('/v1/auth/login', { email: 'ada@example.com', password: PASSWORD });
const refresh = (token: string, at: Stand = stand): Promise<Reply> =>
  at.post('/v1/auth/refresh', { refresh_token: token });
const isIn = async (reply: Reply): Promise<boolean> => (await stand.get('/v1/auth/me', bearer(reply))).status === 200;

/** Dates every issue and use of a token back by the interval. */
async function passed(interval: string): Promise<void> {
  await stand.db.knex.raw(
    `update refresh_tokens set issued_at = issued_at - cast(:interval as interval), used_at = used_at - cast(:interval as interval)`,
    { interval },
  );
}

async function successorsMade(): Promise<readonly string[]> {
  const { rows } = await stand.db.knex.raw<{ rows: { digest: string }[] }>(
    `select encode(successor_digest, 'hex') as digest from refresh_tokens where successor_digest is not null`,
  );
  return rows.map((row) => row.digest);
}

function expectRefused(reply: Reply): void {
  expect([reply.status, reply.json['code']]).toEqual([401, 'invalid_credential']);
}

describe('a refresh', () => {
  test('answers as login does, with another pair of the same session', async () => {
    const first = await login();
    const second = await refresh(refreshTokenOf(first));
    expect(second.status).toBe(200);
    expect(second.json).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: 3600,
      refresh_token: expect.stringMatching(/^prt_/),
    });
    expect(refreshTokenOf(second)).not.toBe(refreshTokenOf(first));
    expect(second.json['access_token']).not.toBe(first.json['access_token']);
    expect(await isIn(second)).toBe(true);
    expect(await stand.db.knex('sessions').count('* as n')).toEqual([{ n: 1 }]);
  });

  test('leaves no token in the database, old or new', async () => {
    const first = await login();
    const second = await refresh(refreshTokenOf(first));
    const stored = await everythingStored(stand.db);
    for (const token of [refreshTokenOf(first), refreshTokenOf(second)]) {
      expect(stored).not.toContain(token);
      expect(stored).not.toContain(token.slice(4));
      expect(stored).not.toContain(Buffer.from(token.slice(4), 'base64url').toString('hex'));
    }
  });

  test('of fifty at once, at two servers, gives one successor, and that one works', async () => {
    const other = await startStand(database.url);
    const token = refreshTokenOf(await login());
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, i) => refresh(token, i % 2 === 0 ? stand : other)),
    );
    await other.close();
    expect(new Set(replies.map((reply) => reply.status))).toEqual(new Set([200]));
    const successors = new Set(replies.map(refreshTokenOf));
    expect(successors.size).toBe(1);
    const [successor = ''] = successors;
    expect((await refresh(successor)).status).toBe(200);
    expect(await stand.db.knex('refresh_tokens').count('* as n')).toEqual([{ n: 3 }]);
  });

  test('at many processes at once gives one successor too', async () => {
    const token = refreshTokenOf(await login());
    const from = {
      address: undefined,
      throttledAs: undefined,
      userAgent: undefined,
      requestId: makeId('req', 0, randomBytes(10)),
      nowMs: Date.now(),
    };
    const pairs = await Promise.all(
      Array.from({ length: 16 }, () =>
        refreshToken({ ...stand.parts, claims: new Map() }, { text: token, via: 'body' }, from),
      ),
    );
    expect(new Set(pairs.map((pair) => pair.refreshToken)).size).toBe(1);
    expect(await stand.db.knex('refresh_tokens').count('* as n')).toEqual([{ n: 2 }]);
  });

  test('whose answer was lost in a crash is answered again by the server that takes over', async () => {
    const token = refreshTokenOf(await login());
    const lost = refreshTokenOf(await refresh(token));
    await stand.close();
    stand = await startStand(database.url);
    await passed('3 seconds');
    const again = await refresh(token);
    expect(refreshTokenOf(again)).toBe(lost);
    expect((await refresh(lost)).status).toBe(200);
  });

  test('that failed between its claim and its answer returns the claimed successor when it is repeated', async () => {
    const token = refreshTokenOf(await login());
    const doomed = await startStand(database.url, {
      tokens: (real) => ({
        ...{ lifetimeMs: real.lifetimeMs, issuer: real.issuer, audience: real.audience },
        verify: (text) => real.verify(text),
        issue: () => Promise.reject(new Fault('the process dies here')),
      }),
    });
    const failed = await Promise.all([1, 2, 3].map(() => refresh(token, doomed)));
    await doomed.close();
    expect(failed.map((reply) => reply.status)).toEqual([503, 503, 503]);
    const [claimed] = await successorsMade();
    const again = await refresh(token);
    expect(again.status).toBe(200);
    expect(await successorsMade()).toEqual([claimed]);
    expect(opaqueDigest(refreshTokenOf(again)).toString('hex')).toBe(claimed);
    expect((await refresh(refreshTokenOf(again))).status).toBe(200);
  });

  test('of a token that the server did not issue is rejected', async () => {
    await login();
    for (const token of ['', 'x', `prt_${'a'.repeat(43)}`, `prt_${'a'.repeat(16_000)}`, 'psk_1234'])
      expectRefused(await refresh(token));
  });

  test('without a token, in body or cookie, is rejected', async () => {
    expectRefused(await stand.post('/v1/auth/refresh', {}));
    expectRefused(await stand.post('/v1/auth/refresh', undefined));
    expectRefused(await stand.post('/v1/auth/refresh', {}, { cookie: '__Secure-postern_refresh=' }));
  });

  test('with a token that is no text, or with an unknown member, is 422', async () => {
    for (const body of [{ refresh_token: null }, { refresh_token: 7 }, { refresh_token: 'x', scope: '*' }]) {
      const reply = await stand.post('/v1/auth/refresh', body);
      expect([reply.status, reply.json['code']]).toEqual([422, 'invalid_field']);
    }
  });
});

describe('a second use', () => {
  async function expectEnded(family: Reply, bystander: Reply): Promise<void> {
    expect(await isIn(family)).toBe(false);
    expect(await isIn(bystander)).toBe(true);
    expect((await refresh(refreshTokenOf(bystander))).status).toBe(200);
    const reuses = (await auditOf(stand.db)).filter((line) => line.action === 'auth.refresh_reuse');
    expect(reuses).toEqual([
      {
        actor: 'anonymous',
        tenant: 'acme',
        action: 'auth.refresh_reuse',
        target: expect.stringMatching(/^ses_/),
        result: 'refused',
        address: '127.0.0.1',
      },
    ]);
  }

  test('after ten seconds ends that session, its access tokens too, and no other', async () => {
    const [bystander, first] = [await login(), await login()];
    const second = await refresh(refreshTokenOf(first));
    expect(await isIn(second)).toBe(true);
    await passed('11 seconds');
    expectRefused(await refresh(refreshTokenOf(first)));
    expectRefused(await refresh(refreshTokenOf(second)));
    expectRefused(await refresh(refreshTokenOf(first)));
    await expectEnded(second, bystander);
  });

  test('after the successor was used ends that session at once, and no other', async () => {
    const [bystander, first] = [await login(), await login()];
    const second = await refresh(refreshTokenOf(first));
    const third = await refresh(refreshTokenOf(second));
    expect(await isIn(third)).toBe(true);
    expectRefused(await refresh(refreshTokenOf(first)));
    expectRefused(await refresh(refreshTokenOf(third)));
    await expectEnded(third, bystander);
  });

  test('ends the session however old the token is', async () => {
    const [bystander, first] = [await login(), await login()];
    const second = await refresh(refreshTokenOf(first));
    await stand.db.knex.raw(`update refresh_tokens set issued_at = issued_at - interval '8 days', used_at = used_at - interval '8 days'
      where used_at is not null`);
    expectRefused(await refresh(refreshTokenOf(first)));
    await expectEnded(second, bystander);
  });

  test('concurrent with the use of the successor leaves one unused token and at most one new successor', async () => {
    const first = await login();
    const second = refreshTokenOf(await refresh(refreshTokenOf(first)));
    const replies = await Promise.all([
      refresh(second),
      refresh(refreshTokenOf(first)),
      refresh(second),
      refresh(refreshTokenOf(first)),
    ]);
    const unused = await stand.db.knex('refresh_tokens').whereNull('used_at').count('* as n');
    expect(unused).toEqual([{ n: 1 }]);
    const thirds = new Set(
      replies
        .filter((reply) => reply.status === 200)
        .map(refreshTokenOf)
        .filter((token) => token !== second),
    );
    expect(thirds.size).toBeLessThanOrEqual(1);
  });
});

describe('a refresh token is good', () => {
  test('for seven days unused, and each use starts a new period', async () => {
    const first = await login();
    await passed('6 days 23 hours');
    const second = await refresh(refreshTokenOf(first));
    await passed('6 days 23 hours');
    const third = await refresh(refreshTokenOf(second));
    expect(third.status).toBe(200);
    await passed('7 days 1 second');
    expectRefused(await refresh(refreshTokenOf(third)));
  });

  test('for thirty days at most, with any number of uses', async () => {
    const first = await login();
    const { rows } = await stand.db.knex.raw<{ rows: { days: number }[] }>(
      `select round(extract(epoch from expires_at - created_at) / 86400)::int as days from sessions`,
    );
    expect(rows).toEqual([{ days: 30 }]);
    await stand.db.knex.raw(`update sessions set expires_at = clock_timestamp() - interval '1 second'`);
    expectRefused(await refresh(refreshTokenOf(first)));
  });

  test('for 50,000 refreshes at most, because each use is kept', async () => {
    const last = await refresh(refreshTokenOf(await login()));
    await stand.db.knex.raw('update sessions set refreshes = ?', [MAX_REFRESHES - 1]);
    const beyond = await refresh(refreshTokenOf(last));
    expect(beyond.status).toBe(200);
    expectRefused(await refresh(refreshTokenOf(beyond)));
  });

  test('while its user is active', async () => {
    const first = await login();
    await stand.db.knex('users').where({ id: ada }).update({ status: 'deactivated' });
    expectRefused(await refresh(refreshTokenOf(first)));
  });

  test('while its session has not ended, also within the ten seconds', async () => {
    const first = await login();
    await refresh(refreshTokenOf(first));
    await stand.db.knex.raw('update sessions set ended_at = clock_timestamp()');
    expectRefused(await refresh(refreshTokenOf(first)));
    expect((await auditOf(stand.db)).map((line) => line.action)).toEqual(['auth.login']);
  });

  test('still, after its tenant was suspended for a while: the refusal does not use it up', async () => {
    const first = await login();
    await stand.db.knex('tenants').where({ id: 'acme' }).update({ status: 'suspended' });
    for (let i = 0; i < 2; i++) {
      const reply = await refresh(refreshTokenOf(first));
      expect([reply.status, reply.json['code']]).toEqual([403, 'tenant_suspended']);
    }
    await stand.db.knex('tenants').where({ id: 'acme' }).update({ status: 'active' });
    expect((await refresh(refreshTokenOf(first))).status).toBe(200);
  });

  test('for its second use too, when its tenant was suspended between the two', async () => {
    const first = await login();
    const second = refreshTokenOf(await refresh(refreshTokenOf(first)));
    await stand.db.knex('tenants').where({ id: 'acme' }).update({ status: 'suspended' });
    expect((await refresh(refreshTokenOf(first))).json['code']).toBe('tenant_suspended');
    await stand.db.knex('tenants').where({ id: 'acme' }).update({ status: 'active' });
    expect(refreshTokenOf(await refresh(refreshTokenOf(first)))).toBe(second);
  });
});

describe('a session of a cookie', () => {
  const OWN = { origin: 'https://console.test', host: 'console.test' };
  /** The demonstration: Envoy on loopback, without TLS, which names the scheme. */
  const DEMO = { origin: 'http://127.0.0.1:10000', host: '127.0.0.1:10000', 'x-forwarded-proto': 'http' };

  function cookieOf(reply: Reply): string {
    const lines = [reply.headers['set-cookie']].flat();
    expect(lines).toEqual([
      expect.stringMatching(
        /^__Secure-postern_refresh=prt_[^;]+; Max-Age=604800; Path=\/v1\/auth; HttpOnly; Secure; SameSite=Strict$/,
      ),
    ]);
    return String(lines[0]).split(';')[0] ?? '';
  }
  const begin = (): Promise<Reply> =>
    stand.post('/v1/auth/login', { email: 'ada@example.com', password: PASSWORD, session: 'cookie' }, OWN);

  test('keeps the refresh token out of the body, at login and at refresh', async () => {
    const first = await begin();
    expect(Object.keys(first.json)).toEqual(['access_token', 'token_type', 'expires_in']);
    const second = await stand.post('/v1/auth/refresh', undefined, { ...OWN, cookie: cookieOf(first) });
    expect(second.status).toBe(200);
    expect(Object.keys(second.json)).toEqual(['access_token', 'token_type', 'expires_in']);
    expect(cookieOf(second)).not.toBe(cookieOf(first));
    expect(await isIn(second)).toBe(true);
  });

  test('is refreshed by cookie only from a page of its own origin, and a rejected refresh uses no token up', async () => {
    const cookie = cookieOf(await begin());
    const token = cookie.slice('__Secure-postern_refresh='.length);
    const foreign = { ...OWN, origin: 'https://evil.example' };
    expectRefused(await stand.post('/v1/auth/refresh', {}, { ...foreign, cookie }));
    expectRefused(await stand.post('/v1/auth/refresh', {}, { host: 'console.test', cookie }));
    expectRefused(await stand.post('/v1/auth/refresh', {}, { ...OWN, origin: 'null', cookie }));
    expectRefused(await stand.post('/v1/auth/refresh', { refresh_token: token }, OWN));
    expect((await stand.post('/v1/auth/refresh', {}, { ...OWN, cookie })).status).toBe(200);
    expect((await auditOf(stand.db)).map((line) => line.action)).toEqual(['auth.login']);
  });

  test('is not begun, refreshed or ended from the same host without TLS, which any machine on the network can impersonate', async () => {
    const plain = { ...OWN, origin: 'http://console.test' };
    const body = { email: 'ada@example.com', password: PASSWORD, session: 'cookie' };
    for (const headers of [plain, { ...plain, 'x-forwarded-proto': 'https' }]) {
      expectRefused(await stand.post('/v1/auth/login', body, headers));
      const first = await begin();
      expectRefused(await stand.post('/v1/auth/refresh', {}, { ...headers, cookie: cookieOf(first) }));
      expect((await stand.post('/v1/auth/logout', undefined, { ...headers, cookie: cookieOf(first) })).status).toBe(
        401,
      );
      expect(await isIn(first)).toBe(true);
    }
  });

  test('has a cookie without TLS if a trusted proxy reports the request as plain HTTP from this machine, and no other peer may report that', async () => {
    const body = { email: 'ada@example.com', password: PASSWORD, session: 'cookie' };
    const first = await stand.post('/v1/auth/login', body, DEMO);
    const cookie = String([first.headers['set-cookie']].flat()[0]).split(';')[0] ?? '';
    expect(cookie).toMatch(/^postern_refresh=prt_/);
    expectRefused(await stand.post('/v1/auth/refresh', {}, { ...DEMO, 'x-forwarded-proto': 'https', cookie }));
    const second = await stand.post('/v1/auth/refresh', {}, { ...DEMO, cookie });
    expect([second.status, String(second.headers['set-cookie'])]).toEqual([
      200,
      expect.stringMatching(/^postern_refresh=prt_/),
    ]);
    const untrusting = await startStand(database.url, { trustedProxies: [] });
    const claims = { origin: 'http://console.test', host: 'console.test', 'x-forwarded-proto': 'http' };
    const refused = await untrusting.post('/v1/auth/login', body, claims);
    await untrusting.close();
    expectRefused(refused);
  });

  test('does not come from a cookie of the former name, which a page without TLS can set', async () => {
    const cookie = cookieOf(await begin()).replace('__Secure-', '');
    expectRefused(await stand.post('/v1/auth/refresh', {}, { ...OWN, cookie }));
  });

  test('is not begun by the page of another site', async () => {
    const reply = await stand.post(
      '/v1/auth/login',
      { email: 'ada@example.com', password: PASSWORD, session: 'cookie' },
      { ...OWN, origin: 'https://evil.example' },
    );
    expectRefused(reply);
    expect(reply.headers['set-cookie']).toBeUndefined();
  });

  test('accepts no token that was issued in a body', async () => {
    const cookie = `__Secure-postern_refresh=${refreshTokenOf(await login())}`;
    expectRefused(await stand.post('/v1/auth/refresh', {}, { ...OWN, cookie }));
  });

  test('belongs to the configured origins, if there are any', async () => {
    const strict = await startStand(database.url, { origins: ['https://ai.example.com'] });
    const cookie = cookieOf(await begin());
    expectRefused(await strict.post('/v1/auth/refresh', {}, { ...OWN, cookie }));
    const reply = await strict.post('/v1/auth/refresh', {}, { ...OWN, origin: 'https://ai.example.com', cookie });
    await strict.close();
    expect(reply.status).toBe(200);
  });

  test('ends by its cookie, which the answer deletes, with an expired access token', async () => {
    const first = await begin();
    const cookie = cookieOf(first);
    const reply = await stand.post('/v1/auth/logout', undefined, {
      ...OWN,
      cookie,
      authorization: 'Bearer aaa.bbb.ccc',
    });
    expect(reply.status).toBe(204);
    expect(reply.headers['set-cookie']).toEqual([
      expect.stringMatching(/^__Secure-postern_refresh=; Max-Age=0; Path=\/v1\/auth;/),
    ]);
    expect(await isIn(first)).toBe(false);
  });

  test('does not end by the cookie that another site makes the browser send', async () => {
    const first = await begin();
    const reply = await stand.post('/v1/auth/logout', undefined, {
      ...OWN,
      origin: 'https://evil.example',
      cookie: cookieOf(first),
    });
    expect(reply.status).toBe(401);
    expect(await isIn(first)).toBe(true);
  });
});

describe('logging out', () => {
  test('by refresh token ends that session and no other; again it is 204 too', async () => {
    const [bystander, first] = [await login(), await login()];
    const second = await refresh(refreshTokenOf(first));
    expect(await isIn(second)).toBe(true);
    for (let i = 0; i < 2; i++) {
      expect((await stand.post('/v1/auth/logout', { refresh_token: refreshTokenOf(second) })).status).toBe(204);
    }
    expect(await isIn(second)).toBe(false);
    expectRefused(await refresh(refreshTokenOf(second)));
    expect(await isIn(bystander)).toBe(true);
    const logouts = (await auditOf(stand.db)).filter((line) => line.action === 'auth.logout');
    expect(logouts).toEqual([expect.objectContaining({ actor: ada, tenant: 'acme', result: 'success' })]);
  });

  test('by access token ends its session; again it is 204 too', async () => {
    const [bystander, first] = [await login(), await login()];
    expect(await isIn(first)).toBe(true);
    for (let i = 0; i < 2; i++)
      expect((await stand.post('/v1/auth/logout', undefined, bearer(first))).status).toBe(204);
    expect(await isIn(first)).toBe(false);
    expectRefused(await refresh(refreshTokenOf(first)));
    expect(await isIn(bystander)).toBe(true);
  });

  test('is the same answer for a refresh token that the server did not issue', async () => {
    expect((await stand.post('/v1/auth/logout', { refresh_token: 'made up' })).status).toBe(204);
  });

  test('needs something to log out', async () => {
    const nothing = await stand.post('/v1/auth/logout');
    expect([nothing.status, nothing.json['code']]).toEqual([401, 'missing_credential']);
    expectRefused(await stand.post('/v1/auth/logout', undefined, { authorization: 'Bearer aaa.bbb.ccc' }));
    const basic = await stand.post('/v1/auth/logout', undefined, { authorization: 'Basic YTpi' });
    expectRefused(basic);
    expect(basic.headers['www-authenticate']).toBe('Bearer realm="postern"');
  });
});
