/** Logging in, staying in and getting out, against a real server. */

import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Client,
  type ClientOptions,
  ConnectionError,
  createClient,
  ProblemError,
  type SessionEnd,
  type SessionStorage,
  type Tokens,
} from '../../client/index.ts';
import { type Browser, browser, type Network, network } from './support/network.ts';
import { ADMIN, startTestServer, type TestServer, TOKEN_LIFE_MS, TOLERANCE_MS } from './support/server.ts';
import { LONG_TIMEOUT_MS, type TestTiming, TIMEOUT_MS, testTiming } from './support/timing.ts';

const REFRESHED = 'POST /v1/auth/refresh 200';
const ME = '/v1/auth/me';
const MANY = Array.from({ length: 50 }, (_, index) => index);

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  await server?.close();
});

interface Stand {
  readonly client: Client;
  readonly net: Network;
  readonly timing: TestTiming;
  readonly ends: SessionEnd[];
}

function stand(options: ClientOptions = {}, inner?: typeof fetch): Stand {
  const net = network(inner);
  const timing = testTiming();
  const ends: SessionEnd[] = [];
  const onSessionEnd = (end: SessionEnd): void => void ends.push(end);
  const client = createClient({
    baseUrl: server.url,
    fetch: net.fetch,
    timing,
    timeoutMs: TIMEOUT_MS,
    onSessionEnd,
    ...options,
  });
  return { client, net, timing, ends };
}

async function loggedIn(options: ClientOptions = {}, inner?: typeof fetch): Promise<Stand> {
  const made = stand(options, inner);
  await made.client.login(ADMIN);
  return made;
}

const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'no failure',
    (error: unknown) => error,
  );
const me = (client: Client): Promise<unknown> => client.request('GET', ME).then(({ email }) => email);

/** The server no longer takes the tokens that it has given out; the client does not know. */
const expireAtServer = (): void => server.age(TOKEN_LIFE_MS + TOLERANCE_MS + 1000);

async function sessionsAlive(): Promise<number> {
  const { rows } = await server.db.knex.raw<{ rows: unknown[] }>('select 1 from sessions where ended_at is null');
  return rows.length;
}

describe('a login', () => {
  it('lets calls through as the user', async () => {
    const { client } = await loggedIn();
    expect(await client.request('GET', ME)).toMatchObject({ email: ADMIN.email, platform_admin: true });
  });

  it('that the server rejects is an error, and begins no session', async () => {
    const { client, ends } = stand();
    const refused = await failure(client.login({ ...ADMIN, password: 'not the password' }));
    expect(refused).toMatchObject({
      name: 'ProblemError',
      status: 401,
      code: 'invalid_credential',
      requestId: expect.stringMatching(/^req_/),
    });
    expect(await failure(client.request('GET', ME))).toMatchObject({ code: 'missing_credential' });
    expect(ends).toEqual([]);
  });

  it('through a directory names the directory in its request', async () => {
    const { client } = stand();
    const login = { auth_type: 'ldap', username: 'ada', password: 'not the password' } as const;
    expect(await failure(client.login(login))).toMatchObject({ code: 'invalid_credential' });
  });

  it('is not tried again by itself: the server may count each', async () => {
    const { client, net } = stand();
    net.losing = () => true;
    expect(await failure(client.login(ADMIN))).toBeInstanceOf(ConnectionError);
    expect(net.seen).toEqual(['POST /v1/auth/login lost']);
  });
});

describe('before its time is over', () => {
  it('a token is renewed, once for 50 calls at a time', async () => {
    const { client, net, timing } = await loggedIn();
    timing.advance(TOKEN_LIFE_MS * 0.9 - 1000);
    await me(client);
    expect(net.count(REFRESHED)).toBe(0);
    timing.advance(2000);
    expect(new Set(await Promise.all(MANY.map(() => me(client))))).toEqual(new Set([ADMIN.email]));
    expect(net.count(REFRESHED)).toBe(1);
    expect(net.count(`GET ${ME} 200`)).toBe(51);
    expect(net.count(`GET ${ME} 401`)).toBe(0);
  });

  it('a token remains in use while a renewal fails, and the client pauses before the next renewal', async () => {
    const { client, net, timing, ends } = await loggedIn();
    timing.advance(TOKEN_LIFE_MS * 0.95);
    net.cut = (_method, path) => path === '/v1/auth/refresh';
    expect(await me(client)).toBe(ADMIN.email);
    net.cut = () => false;
    expect(await me(client)).toBe(ADMIN.email);
    expect(net.count(REFRESHED)).toBe(0);
    timing.advance(TOKEN_LIFE_MS);
    expect(await me(client)).toBe(ADMIN.email);
    expect(net.count(REFRESHED)).toBe(1);
    expect(ends).toEqual([]);
  });
});

describe('a token that the server no longer takes', () => {
  it('is renewed once for 50 calls, each of which is repeated once', async () => {
    const { client, net } = await loggedIn();
    expireAtServer();
    expect(new Set(await Promise.all(MANY.map(() => me(client))))).toEqual(new Set([ADMIN.email]));
    expect(net.count(REFRESHED)).toBe(1);
    expect(net.count(`GET ${ME} 401`)).toBe(50);
    expect(net.count(`GET ${ME} 200`)).toBe(50);
  });

  it('is not renewed again for a call whose refusal comes after the renewal', async () => {
    const { client, net } = await loggedIn();
    expireAtServer();
    const late = Promise.withResolvers<void>();
    let calls = 0;
    net.hold = (path) => (path === ME && ++calls === 1 ? late.promise : Promise.resolve());
    const first = me(client);
    const second = me(client);
    expect(await second).toBe(ADMIN.email);
    late.resolve();
    expect(await first).toBe(ADMIN.email);
    expect(net.count(REFRESHED)).toBe(1);
    expect(net.count(`GET ${ME} 401`)).toBe(2);
  });

  it('is no reason to do something twice: the repeated POST has the key of the first', async () => {
    const keys: (string | null)[] = [];
    const { client } = await loggedIn({}, (input, init) => {
      if (String(input).endsWith('/v1/iam/roles')) keys.push(new Headers(init?.headers).get('idempotency-key'));
      return fetch(input, init);
    });
    expireAtServer();
    await client.request('POST', '/v1/iam/roles', { body: { name: 'reader', permissions: ['chat:read'] } });
    expect(keys).toHaveLength(2);
    expect(keys[0]).toMatch(/^[0-9a-f]{32}$/);
    expect(keys[1]).toBe(keys[0]);
  });

  it('is renewed at most once for a call, also if the server rejects the new token', async () => {
    const answer = JSON.stringify({ code: 'token_expired', request_id: 'req_1' });
    const headers = { 'content-type': 'application/problem+json' };
    const { client, net } = await loggedIn({}, (input, init) =>
      String(input).endsWith(ME) ? Promise.resolve(new Response(answer, { status: 401, headers })) : fetch(input, init),
    );
    expect(await failure(me(client))).toMatchObject({ code: 'token_expired' });
    expect(net.seen).toEqual(['POST /v1/auth/login 200', `GET ${ME} 401`, REFRESHED, `GET ${ME} 401`]);
  });
});

describe('a renewal', () => {
  it('whose answer is lost is repeated, and the session continues', async () => {
    const { client, net, ends } = await loggedIn();
    expireAtServer();
    let losses = 2;
    net.losing = (_method, path) => path === '/v1/auth/refresh' && losses-- > 0;
    expect(await me(client)).toBe(ADMIN.email);
    expect(net.count('POST /v1/auth/refresh lost')).toBe(2);
    expireAtServer();
    expect(await me(client)).toBe(ADMIN.email);
    expect(ends).toEqual([]);
  });

  it('is sent again while its answer is on the way, and the first answer counts, however late it is', async () => {
    const { client, net, timing, ends } = await loggedIn({ timeoutMs: LONG_TIMEOUT_MS });
    expireAtServer();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    net.hold = (path) => (path === '/v1/auth/refresh' ? released : Promise.resolve());
    const name = me(client);
    await timing.waiting;
    release();
    expect(await name).toBe(ADMIN.email);
    expect(timing.waits).toEqual([3_000, 6_000]);
    expect(ends).toEqual([]);
  });

  it.each(['cut', 'losing'] as const)('that fails for the network does not end the session: %s', async (how) => {
    const { client, net, ends } = await loggedIn();
    expireAtServer();
    net[how] = (_method, path) => path === '/v1/auth/refresh';
    expect(await failure(me(client))).toBeInstanceOf(ConnectionError);
    net[how] = () => false;
    expect(await me(client)).toBe(ADMIN.email);
    expect(ends).toEqual([]);
  });

  it('that fails for a fault of the server does not end the session', async () => {
    let down = false;
    const fault = { status: 503, headers: { 'content-type': 'application/problem+json', 'retry-after': '1' } };
    const { client, ends } = await loggedIn({}, (input, init) =>
      down && String(input).endsWith('/refresh')
        ? Promise.resolve(new Response(JSON.stringify({ code: 'unavailable' }), fault))
        : fetch(input, init),
    );
    expireAtServer();
    down = true;
    expect(await failure(me(client))).toMatchObject({ status: 503, code: 'unavailable', retryAfter: 1 });
    down = false;
    expect(await me(client)).toBe(ADMIN.email);
    expect(ends).toEqual([]);
  });

  it('that the server rejects ends the session: the client reports it once and sends no further request', async () => {
    const { client, net, ends } = await loggedIn();
    await server.endSessions();
    expireAtServer();
    const errors = await Promise.all(MANY.map(() => failure(me(client))));
    expect(new Set(errors.map((error) => error instanceof ProblemError && error.code))).toEqual(
      new Set(['invalid_credential']),
    );
    expect(ends).toEqual([{ reason: 'refused' }]);
    expect(net.count('POST /v1/auth/refresh 401')).toBe(1);
    expect(await failure(me(client))).toMatchObject({ code: 'missing_credential' });
    expect(net.count('POST /v1/auth/refresh 401')).toBe(1);
    await client.login(ADMIN);
    expect(await me(client)).toBe(ADMIN.email);
  });

  it('continues for the other waiting calls when one of them is aborted', async () => {
    const { client, net } = await loggedIn();
    expireAtServer();
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    net.hold = async (path) => {
      if (path !== '/v1/auth/refresh') return;
      asked.resolve();
      await answer.promise;
    };
    const stop = new AbortController();
    const given = failure(client.request('GET', ME, { signal: stop.signal }));
    const kept = me(client);
    await asked.promise;
    const reason = new Error('changed my mind');
    stop.abort(reason);
    expect(await given).toBe(reason);
    answer.resolve();
    expect(await kept).toBe(ADMIN.email);
    expect(net.count(REFRESHED)).toBe(1);
  });
});

it('a call of one user is never completed with the token of another user who logs in during the call', async () => {
  const { client, net } = await loggedIn();
  const eve = { email: 'eve@example.com', password: 'the password of eve in a test' };
  await client.users.create({ ...eve, name: 'Eve' });
  expireAtServer();
  const asked = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  net.hold = async (path) => {
    if (path !== ME) return;
    asked.resolve();
    await held.promise;
  };
  const call = failure(me(client));
  await asked.promise;
  await client.login(eve);
  held.resolve();
  expect(await call).toMatchObject({ code: 'token_expired' });
  expect(await me(client)).toBe(eve.email);
});

it('a login that is under way makes a renewal needless', async () => {
  const { client, net, timing } = await loggedIn();
  timing.advance(TOKEN_LIFE_MS);
  const answer = Promise.withResolvers<void>();
  net.hold = (path) => (path === '/v1/auth/login' ? answer.promise : Promise.resolve());
  const login = client.login(ADMIN);
  const call = me(client);
  answer.resolve();
  await login;
  expect(await call).toBe(ADMIN.email);
  expect(net.count(REFRESHED)).toBe(0);
});

describe('a logout', () => {
  it('ends the session at the server and in this client, without an event for other sessions', async () => {
    const bearers: string[] = [];
    const { client, ends } = await loggedIn({}, (input, init) => {
      bearers.push(new Headers(init?.headers).get('authorization') ?? 'none');
      return fetch(input, init);
    });
    await me(client);
    const bearer = bearers.at(-1) ?? '';
    await client.logout();
    expect(await failure(me(client))).toMatchObject({ code: 'missing_credential' });
    const again = await fetch(`${server.url}${ME}`, { headers: { authorization: bearer } });
    expect(again.status).toBe(401);
    await client.logout();
    expect(ends).toEqual([]);
  });

  it('drops the tokens also if the request to the server fails, and reports the failure', async () => {
    const { client, net } = await loggedIn();
    net.cut = () => true;
    expect(await failure(client.logout())).toBeInstanceOf(ConnectionError);
    net.cut = () => false;
    expect(await failure(me(client))).toMatchObject({ code: 'missing_credential' });
  });

  it('resolves with the address at which a browser also ends its session at a provider', async () => {
    const url = 'https://login.example/logout?client_id=console';
    const { client } = await loggedIn({}, (input, init) =>
      String(input).endsWith('/v1/auth/logout')
        ? Promise.resolve(Response.json({ logout_url: url }))
        : fetch(input, init),
    );
    expect(await client.logout()).toBe(url);
    const { client: other } = await loggedIn();
    expect(await other.logout()).toBeUndefined();
  });

  it('during a renewal is the last word', async () => {
    const before = await sessionsAlive();
    const { client, net } = await loggedIn();
    expireAtServer();
    const renewing = Promise.withResolvers<void>();
    net.cut = (_method, path) => {
      if (path === '/v1/auth/refresh') renewing.resolve();
      return false;
    };
    const call = failure(me(client));
    await renewing.promise;
    await client.logout();
    expect(await call).toMatchObject({ status: 401 });
    expect(await failure(me(client))).toMatchObject({ code: 'missing_credential' });
    expect(await sessionsAlive()).toBe(before);
  });
});

describe('with the refresh token in a cookie', () => {
  const COOKIE = { session: 'cookie' } as const;
  const page = (): Browser => browser(server.url);

  it('no part of it gets to the client, and renewing works all the same', async () => {
    const answers: string[] = [];
    const user = page();
    const { client, net } = await loggedIn(COOKIE, async (input, init) => {
      const answer = await user.fetch(input, init);
      answers.push(await answer.clone().text());
      return answer;
    });
    expireAtServer();
    expect(await me(client)).toBe(ADMIN.email);
    expect(net.count(REFRESHED)).toBe(1);
    const token = user.cookie?.split('=')[1] ?? '';
    expect(token).toMatch(/^prt_/);
    expect(answers.join()).not.toContain('prt_');
  });

  it('a page that is loaded again finds its session, with its first call or when it asks', async () => {
    const user = page();
    await loggedIn(COOKIE, user.fetch);
    expect(await me(stand(COOKIE, user.fetch).client)).toBe(ADMIN.email);
    const { client, net } = stand(COOKIE, user.fetch);
    expect(await client.resume()).toBe(true);
    expect(await client.resume()).toBe(true);
    expect(net.seen).toEqual([REFRESHED]);
  });

  it('a page without a session sends one request and gets no event of an ended session', async () => {
    const { client, net, ends } = stand(COOKIE, page().fetch);
    expect(await failure(me(client))).toMatchObject({ code: 'missing_credential' });
    expect(await failure(me(client))).toMatchObject({ code: 'missing_credential' });
    expect(net.seen).toEqual(['POST /v1/auth/refresh 401', `GET ${ME} 401`, `GET ${ME} 401`]);
    expect(await client.resume()).toBe(false);
    expect(ends).toEqual([]);
  });

  it('a session that ended since the last load is over for a reloaded page', async () => {
    const user = page();
    await loggedIn(COOKIE, user.fetch);
    await server.endSessions();
    expect(await stand(COOKIE, user.fetch).client.resume()).toBe(false);
  });

  it('tabs renew at the same moment, and again later, and all stay logged in', async () => {
    const user = page();
    const tabs = [await loggedIn(COOKIE, user.fetch), stand(COOKIE, user.fetch), stand(COOKIE, user.fetch)];
    for (const _round of [1, 2, 3]) {
      expireAtServer();
      const seen = await Promise.all(tabs.flatMap(({ client }) => [me(client), me(client)]));
      expect(new Set(seen)).toEqual(new Set([ADMIN.email]));
    }
    expect(tabs.flatMap(({ ends }) => ends)).toEqual([]);
  });

  it('a tab never continues as another user who logged in in another tab', async () => {
    const user = page();
    const { client, ends } = await loggedIn(COOKIE, user.fetch);
    const ada = { email: 'ada@example.com', password: 'the password of ada in a test' };
    await client.request('POST', '/v1/iam/users', { body: { ...ada, name: 'Ada' } });
    const other = stand(COOKIE, user.fetch);
    await other.client.login(ada);
    expireAtServer();
    expect(await failure(me(client))).toMatchObject({ status: 401 });
    expect(ends).toEqual([{ reason: 'replaced' }]);
    expect(await failure(me(client))).toMatchObject({ code: 'missing_credential' });
    expect(await me(other.client)).toBe(ada.email);
  });

  it('a logout takes the cookie away, also when it is the first thing that a page does', async () => {
    const user = page();
    await loggedIn(COOKIE, user.fetch);
    await stand(COOKIE, user.fetch).client.logout();
    expect(user.cookie).toBeUndefined();
    expect(await stand(COOKIE, user.fetch).client.resume()).toBe(false);
  });
});

describe('with a storage', () => {
  function memory(): SessionStorage & { kept: Tokens | undefined } {
    const made = {
      kept: undefined as Tokens | undefined,
      read: async () => made.kept,
      write: async (tokens: Tokens | undefined) => {
        made.kept = tokens;
      },
    };
    return made;
  }

  it('a program that restarts continues its session, and sends no renewal while the token is valid', async () => {
    const storage = memory();
    await loggedIn({ storage });
    storage.kept = JSON.parse(JSON.stringify(storage.kept));
    const { client, net } = stand({ storage });
    expect(await me(client)).toBe(ADMIN.email);
    expect(net.seen).toEqual([`GET ${ME} 200`]);
  });

  it('what one program has renewed another takes over: the old token is not used again', async () => {
    const storage = memory();
    const first = await loggedIn({ storage });
    const second = stand({ storage });
    await me(second.client);
    for (const _round of [1, 2, 3]) {
      expireAtServer();
      const calls = MANY.map((index) => me(index % 2 === 0 ? first.client : second.client));
      expect(new Set(await Promise.all(calls))).toEqual(new Set([ADMIN.email]));
    }
    expect(first.net.count(REFRESHED) + second.net.count(REFRESHED)).toBe(3);
    expect([...first.ends, ...second.ends]).toEqual([]);
  });

  it('a session that is over, or left, is kept no longer', async () => {
    const storage = memory();
    const { client, ends } = await loggedIn({ storage });
    await server.endSessions();
    expect(await failure(me(client))).toMatchObject({ code: 'invalid_credential' });
    expect(ends).toEqual([{ reason: 'refused' }]);
    expect(storage.kept).toBeUndefined();
    await client.login(ADMIN);
    expect(storage.kept).toBeDefined();
    await client.logout();
    expect(storage.kept).toBeUndefined();
    expect(await stand({ storage }).client.resume()).toBe(false);
  });

  it('is not for cookies', () => {
    expect(() => createClient({ session: 'cookie', storage: memory() })).toThrow(TypeError);
  });
});

it('no token and no password is in an error, or in the client as it is printed', async () => {
  const secrets: string[] = [];
  const { client, net } = stand({}, async (input, init) => {
    const answer = await fetch(input, init);
    const text = await answer.clone().text();
    secrets.push(...(text.match(/"(?:access|refresh)_token":"[^"]+"/g) ?? []).map((each) => each.split('"')[3] ?? ''));
    return answer;
  });
  const errors = [await failure(client.login({ ...ADMIN, password: 'a wrong password' }))];
  await client.login(ADMIN);
  errors.push(await failure(client.request('GET', '/v1/iam/users/{id}', { path: { id: 'usr_none' } })));
  await server.endSessions();
  const printed = [inspect(client, { depth: 20, showHidden: true, getters: true }), JSON.stringify(client)];
  net.losing = (_method, path) => path === '/v1/auth/refresh';
  errors.push(await failure(me(client)));
  net.losing = () => false;
  errors.push(await failure(me(client)));
  expect(errors.map((error) => error instanceof Error)).toEqual([true, true, true, true]);
  printed.push(...errors.map((error) => inspect(error, { depth: 20, showHidden: true })));
  expect(secrets).toHaveLength(2);
  for (const secret of [...secrets, ADMIN.password, 'a wrong password']) expect(printed.join()).not.toContain(secret);
});
