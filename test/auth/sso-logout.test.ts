/** Logouts of sessions that began at a provider: by its logout tokens, and by the user. */

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Harness, type Reply, startHarness, unique } from '../http/harness.ts';
import { makeIssuerKey } from '../support/issuer.ts';
import { LOGOUT_EVENT, type ScriptedProvider, startScriptedProvider } from '../support/scripted-provider.ts';
import { Browser, type Issuer, makeIssuer } from './sso-stand.ts';

let h: Harness;
const providers: ScriptedProvider[] = [];
let shared: Issuer;

beforeAll(async () => {
  h = await startHarness({
    settings: {
      POSTERN_ISSUERS_ALLOWED_HOSTS: '["127.0.0.1"]',
      POSTERN_HTTP_TRUSTED_PROXIES: '["127.0.0.1"]',
    },
  });
  shared = await issuer();
});
afterAll(async () => {
  for (const provider of providers) await provider.close();
  await h.close();
});

async function issuer(): Promise<Issuer> {
  const provider = await startScriptedProvider();
  providers.push(provider);
  const tenant = unique('acme');
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: tenant, name: tenant } });
  const made = await makeIssuer(h, provider, tenant);
  // As the job of the API process does.
  const fetched = await h.api('POST', `/v1/iam/issuers/${made.id}/refresh`, { as: h.root.token, tenant });
  expect(fetched.status, fetched.text).toBe(200);
  return made;
}

interface LoggedIn {
  readonly browser: Browser;
  readonly token: string;
}

/** Logs a subject in. Each `sid` is a session at the provider; undefined: its ID token names none. */
async function logIn(at: Issuer, sub: string, sid: string | undefined): Promise<LoggedIn> {
  const browser = new Browser(h);
  expect(await browser.logIn(at, { claims: { sub, sid } })).toBe('/console/signed-in');
  return { browser, token: String((await browser.refresh()).json['access_token']) };
}

const isIn = async ({ token }: LoggedIn): Promise<boolean> =>
  (await h.api('GET', '/v1/auth/me', { as: token })).status === 200;

function send({ id }: Issuer, logoutToken: string, address = '192.0.2.1'): Promise<Reply> {
  return h.api('POST', `/v1/auth/sso/${id}/backchannel-logout`, {
    raw: new URLSearchParams({ logout_token: logoutToken }).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'x-forwarded-for': address },
  });
}

describe('a logout token', () => {
  test('of a session ends this session at once, and no other', async () => {
    const [ended, other, stranger] = [
      await logIn(shared, 'ada', 'one'),
      await logIn(shared, 'ada', 'two'),
      await logIn(shared, 'eve', 'three'),
    ];
    const reply = await send(shared, shared.provider.logoutToken({ sub: undefined, sid: 'one' }));
    expect([reply.status, reply.headers['cache-control'], reply.text]).toEqual([200, 'no-store', '']);
    expect([await isIn(ended), await isIn(other), await isIn(stranger)]).toEqual([false, true, true]);
    expect((await ended.browser.refresh()).status).toBe(401);
    expect((await other.browser.refresh()).status).toBe(200);
    const row = (await h.audit('auth.logout')).at(-1);
    expect(row).toMatchObject({ actor_type: 'system', result: 'success', after: { issuer: 'company' } });
  });

  test('of a subject ends all of its sessions at this issuer, and those of no other', async () => {
    const elsewhere = await issuer();
    const [one, two] = [await logIn(shared, 'bob', 'b1'), await logIn(shared, 'bob', 'b2')];
    const [other, same] = [await logIn(shared, 'eve', 'b3'), await logIn(elsewhere, 'bob', 'b1')];
    expect((await send(shared, shared.provider.logoutToken({ sub: 'bob' }))).status).toBe(200);
    const ended = await Promise.all([one, two, other, same].map(isIn));
    expect(ended).toEqual([false, false, true, true]);
    const both = shared.provider.logoutToken({ sub: 'ada', sid: 'b3' });
    expect((await send(shared, both)).status).toBe(200);
    expect(await isIn(other)).toBe(true);
  });

  test('of a subject and a session ends the sessions of the subject whose ID token had no session', async () => {
    const [unnamed, named] = [await logIn(shared, 'dan', undefined), await logIn(shared, 'dan', 'd1')];
    const stranger = await logIn(shared, 'eve', undefined);
    expect((await send(shared, shared.provider.logoutToken({ sub: 'dan', sid: 'd2' }))).status).toBe(200);
    const inNow = () => Promise.all([unnamed, named, stranger].map(isIn));
    expect(await inNow()).toEqual([false, true, true]);
    const bySession = shared.provider.logoutToken({ sub: undefined, sid: 'd1' });
    expect((await send(shared, bySession)).status).toBe(200);
    expect(await inNow()).toEqual([false, false, true]);
  });

  test('counts once, and is no error for a session that has ended', async () => {
    const session = await logIn(shared, 'carol', 'c1');
    const token = shared.provider.logoutToken({ sub: 'carol' });
    expect((await send(shared, token)).status).toBe(200);
    const again = await logIn(shared, 'carol', 'c2');
    expect((await send(shared, token)).status).toBe(400);
    expect([await isIn(session), await isIn(again)]).toEqual([false, true]);
    expect((await send(shared, shared.provider.logoutToken({ sub: 'stranger' }))).status).toBe(200);
  });

  test.each<[string, string, Record<string, string | undefined>]>([
    ['of its subject', 'ends it', { sub: 'ada' }],
    ['of its session at the provider', 'ends it', { sub: undefined, sid: 'now' }],
    ['of its subject and session', 'ends it', { sub: 'ada', sid: 'now' }],
    ['of another subject', 'leaves it', { sub: 'eve' }],
    ['of another session', 'leaves it', { sub: 'ada', sid: 'earlier' }],
  ])('%s that arrives while a login is under way %s', async (_name, outcome, claims) => {
    const ends = outcome === 'ends it';
    const own = await issuer();
    const earlier = await logIn(own, 'ada', 'earlier');
    own.provider.beforeToken = async () => {
      own.provider.beforeToken = () => Promise.resolve();
      expect((await send(own, own.provider.logoutToken(claims))).status).toBe(200);
    };
    const browser = new Browser(h);
    const end = await browser.logIn(own, { claims: { sub: 'ada', sid: 'now' } });
    expect(end).toBe(ends ? '/console/sign-in?sso_error=denied' : '/console/signed-in');
    expect((await browser.refresh()).status).toBe(ends ? 401 : 200);
    expect(await isIn(earlier)).toBe(!('sub' in claims && claims['sub'] === 'ada' && claims['sid'] !== 'now'));
    const { rows } = await h.db.knex.raw<{ rows: { n: number }[] }>(
      `select count(*)::int as n from sessions where issuer_id = :id and sso_sid = 'now' and ended_at is null`,
      { id: own.id },
    );
    expect(rows[0]?.n).toBe(ends ? 0 : 1);
    // The logout does not count for a login that begins after it.
    expect(await isIn(await logIn(own, 'ada', 'now'))).toBe(true);
  });

  test.each([
    ['the subject ends', 'ada'],
    ['another subject leaves', 'eve'],
  ])('of a session of %s a login under way whose ID token has no session', async (_name, sub) => {
    const own = await issuer();
    own.provider.beforeToken = async () => {
      own.provider.beforeToken = () => Promise.resolve();
      expect((await send(own, own.provider.logoutToken({ sub, sid: 'now' }))).status).toBe(200);
    };
    const end = await new Browser(h).logIn(own, { claims: { sub: 'ada', sid: undefined } });
    expect(end).toBe(sub === 'ada' ? '/console/sign-in?sso_error=denied' : '/console/signed-in');
    // The logout does not count for a login that begins after it.
    expect(await isIn(await logIn(own, 'ada', undefined))).toBe(true);
  });

  test('that was used before ends no login that is under way', async () => {
    const own = await issuer();
    const token = own.provider.logoutToken({ sub: 'ada' });
    expect((await send(own, token)).status).toBe(200);
    own.provider.beforeToken = async () => {
      expect((await send(own, token)).status).toBe(400);
    };
    expect(await isIn(await logIn(own, 'ada', 'one'))).toBe(true);
  });

  test('that a new key signed is accepted after one fetch of the keys', async () => {
    const own = await issuer();
    const session = await logIn(own, 'ada', 'one');
    own.provider.issuer.rotate();
    // The last fetch was just now, and unknown keys cause one only every 5 s.
    expect((await send(own, own.provider.logoutToken())).status).toBe(400);
    await h.db.knex.raw(
      `update issuer_keys set attempted_at = clock_timestamp() - interval '6 seconds' where issuer_id = ?`,
      [own.id],
    );
    expect((await send(own, own.provider.logoutToken())).status).toBe(200);
    expect(await isIn(session)).toBe(false);
  });

  const nowS = Math.floor(Date.now() / 1000);
  const twice = randomUUID();
  const ID_TOKEN = { nonce: 'n', events: undefined };
  test.each<[string, () => string]>([
    ['of another client', () => shared.provider.logoutToken({ aud: 'another client' })],
    ['of another issuer', () => shared.provider.logoutToken({ iss: 'https://other.example' })],
    [
      'that another key signed',
      () => shared.provider.logoutToken({}, {}, makeIssuerKey('ES256', shared.provider.issuer.key.kid)),
    ],
    ['with an unknown key', () => shared.provider.logoutToken({}, {}, makeIssuerKey('ES256'))],
    ['without an event', () => shared.provider.logoutToken({ events: undefined })],
    ['with another event', () => shared.provider.logoutToken({ events: { 'https://example/other': {} } })],
    ['whose event is no object', () => shared.provider.logoutToken({ events: { [LOGOUT_EVENT]: true } })],
    ['with a nonce', () => shared.provider.logoutToken({ nonce: 'n' })],
    ['without an id', () => shared.provider.logoutToken({ jti: undefined })],
    ['without subject and session', () => shared.provider.logoutToken({ sub: undefined })],
    ['that has expired', () => shared.provider.logoutToken({ exp: nowS - 60 })],
    ['that is older than 10 min', () => shared.provider.logoutToken({ iat: nowS - 660, exp: nowS + 600 })],
    ['of the future', () => shared.provider.logoutToken({ iat: nowS + 600, exp: nowS + 900 })],
    ['without a time', () => shared.provider.logoutToken({ iat: undefined })],
    ['of another type', () => shared.provider.logoutToken({}, { typ: 'at+jwt' })],
    ['that is an ID token', () => shared.provider.logoutToken(ID_TOKEN, { typ: 'JWT' })],
    [
      'that no key signed',
      () => `${Buffer.from('{"alg":"none"}').toString('base64url')}.${shared.provider.logoutToken().split('.')[1]}.`,
    ],
    ['that is no token', () => 'x'],
    ['that is empty', () => ''],
    ['of more than 16 KiB', () => shared.provider.logoutToken({ more: 'x'.repeat(12.5 * 1024) })],
  ])('%s is rejected and ends nothing', async (_name, make) => {
    const session = await logIn(shared, 'ada', twice);
    const reply = await send(shared, make(), '192.0.2.9');
    expect([reply.status, reply.json['code']]).toEqual([400, 'invalid_parameter']);
    expect(await isIn(session)).toBe(true);
    expect((await send(shared, shared.provider.logoutToken())).status).toBe(200);
    expect(await isIn(session)).toBe(false);
  });

  test('does not change how the names of later bodies are read', async () => {
    const member = unique('m');
    const encoded = (text: string) => Buffer.from(text).toString('base64url');
    const token = `${encoded(`{"${member}":"a","\\\\":0}`)}.${encoded('{}')}.c2ln`;
    expect((await send(shared, token)).status).toBe(400);
    const metadata = { [member]: 'a', '"': 'b' };
    const body = { description: 'own', scopes: ['chat:write'], expires_in_days: 1, metadata };
    const made = await h.api('POST', '/v1/iam/api-keys', { as: h.root.token, tenant: shared.tenant, body });
    expect(made.json['metadata']).toEqual(metadata);
  });

  test('is a parameter of a form, once', async () => {
    const path = `/v1/auth/sso/${shared.id}/backchannel-logout`;
    const token = shared.provider.logoutToken();
    const json = await h.api('POST', path, { body: { logout_token: token } });
    expect(json.status).toBe(415);
    const form = (raw: string) =>
      h.api('POST', path, { raw, headers: { 'content-type': 'application/x-www-form-urlencoded' } });
    expect((await form(`logout_token=${token}&logout_token=${token}`)).status).toBe(400);
    expect((await form('')).status).toBe(400);
    expect((await form(`logout_token=${token}&more=1`)).status).toBe(200);
  });

  test('of an issuer that is disabled is rejected', async () => {
    const own = await issuer();
    expect((await send(own, own.provider.logoutToken())).status).toBe(200);
    await h.api('PUT', `/v1/iam/issuers/${own.id}`, { as: h.root.token, tenant: own.tenant, body: { enabled: false } });
    expect((await send(own, own.provider.logoutToken())).status).toBe(400);
  });

  test('is rejected with 429 from an address that sends too many wrong ones, and accepted from another', async () => {
    // The limit is by time: on a busy machine, an address may send two more for each second that the test takes.
    const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    onTestFinished(() => clock.mockRestore());
    const wrong: number[] = [];
    for (let i = 0; i < 130; i++) wrong.push((await send(shared, 'x', '192.0.2.66')).status);
    expect([wrong[0], wrong.at(-1)]).toEqual([400, 429]);
    expect((await send(shared, shared.provider.logoutToken(), '192.0.2.66')).status).toBe(429);
    expect((await send(shared, shared.provider.logoutToken(), '192.0.2.67')).status).toBe(200);
  });
});

describe('a logout of the user', () => {
  test('ends the session here, and says where the browser ends that of the provider', async () => {
    const session = await logIn(shared, 'ada', 'rp');
    const reply = await session.browser.logOut();
    expect(reply.status).toBe(200);
    const url = new URL(String(reply.json['logout_url']));
    expect(url.origin + url.pathname).toBe(`${shared.provider.issuer.url}/logout`);
    expect(Object.fromEntries(url.searchParams)).toEqual({
      client_id: shared.provider.clientId,
      post_logout_redirect_uri: `${h.url}/console/sign-in`,
      id_token_hint: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
    });
    expect(await isIn(session)).toBe(false);
    expect((await session.browser.logOut()).status).toBe(401);
  });

  test('says it once, and to the browser only', async () => {
    const session = await logIn(shared, 'ada', 'once');
    const copy = new Browser(h).take(session.browser);
    expect((await session.browser.logOut()).status).toBe(200);
    expect((await copy.logOut()).status).toBe(204);
    const other = await logIn(shared, 'ada', 'twice');
    const bearer = await h.api('POST', '/v1/auth/logout', { as: other.token, body: {} });
    expect([bearer.status, await isIn(other)]).toEqual([204, false]);
  });

  test('ends the session here while the provider does not respond', async () => {
    const own = await issuer();
    const session = await logIn(own, 'ada', 'one');
    await h.db.knex('issuers').where({ id: own.id }).update({ updated_at: new Date() });
    own.provider.issuer.answer = (_request, response) => {
      response.writeHead(503).end();
      return true;
    };
    expect((await session.browser.logOut()).status).toBe(204);
    expect(await isIn(session)).toBe(false);
  });

  test('ends the session here if the provider names no usable address for it', async () => {
    const own = await issuer();
    own.provider.discovery = { end_session_endpoint: '/logout' };
    const session = await logIn(own, 'ada', 'one');
    expect((await session.browser.logOut()).status).toBe(204);
    expect(await isIn(session)).toBe(false);
  });

  test('keeps no ID token that the database alone reveals', async () => {
    await logIn(shared, 'ada', 'sealed');
    const { rows } = await h.db.knex.raw<{ rows: { sso_id_token_sealed: Buffer | null }[] }>(
      `select sso_id_token_sealed from sessions where sso_sid = 'sealed'`,
    );
    const sealed = rows[0]?.sso_id_token_sealed;
    expect(sealed?.length).toBeGreaterThan(100);
    expect(sealed?.toString('latin1')).not.toContain('eyJ');
  });
});
