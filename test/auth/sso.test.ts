/**
 * The login to the console by an issuer, as a browser walks through it. Each failure has a login beside it that works.
 */

import { createHmac, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { parseId } from '../../src/domain/ids.ts';
import { newState, sealState } from '../../src/iam/sso/state.ts';
import { type Harness, startHarness, unique } from '../http/harness.ts';
import { blocks } from '../http/rights/blocks.ts';
import { makeIssuerKey, sendJson } from '../support/issuer.ts';
import { logInAtProvider, type OidcProvider, startOidcProvider } from '../support/oidc-provider.ts';
import { type Login, type ScriptedProvider, startScriptedProvider } from '../support/scripted-provider.ts';
import { SECRET_KEY } from '../support/wiring.ts';
import { Browser, type Issuer, locationOf, makeIssuer } from './sso-stand.ts';

const SIGNED_IN = '/console/signed-in';
const failedWith = (error: string): string => `/console/sign-in?sso_error=${error}`;

let h: Harness;
const providers: ScriptedProvider[] = [];
/** An issuer that many tests share: its first login creates the user. */
let shared: Issuer;

beforeAll(async () => {
  h = await startHarness({ settings: { POSTERN_ISSUERS_ALLOWED_HOSTS: '["localhost", "127.0.0.1"]' } });
  shared = await issuer();
});
afterAll(async () => {
  for (const provider of providers) await provider.close();
  await h.close();
});

async function tenant(): Promise<string> {
  const id = unique('acme');
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  return id;
}

/** A provider of its own, as the issuer of a tenant of its own. */
async function issuer(members: Parameters<typeof makeIssuer>[3] = {}): Promise<Issuer> {
  const provider = await startScriptedProvider();
  providers.push(provider);
  return makeIssuer(h, provider, await tenant(), members);
}

async function change({ id, tenant: of }: Issuer, body: object): Promise<void> {
  const reply = await h.api('PUT', `/v1/iam/issuers/${id}`, { as: h.root.token, tenant: of, body });
  expect(reply.status, reply.text).toBe(200);
}

const lastFailure = async ({ tenant: of }: Issuer): Promise<unknown> =>
  (await h.audit('auth.login')).findLast(({ tenant_id }) => tenant_id === of);

describe('a login by an issuer', () => {
  test('creates the user of the first login, gives the mapped roles, and a session whose refresh token is a cookie', async () => {
    const own = await issuer({
      users: {
        create: true,
        email_claim: 'email',
        name_claim: 'name',
        default_roles: ['analyst'],
        roles: [{ claim: 'groups', in: ['staff-*'], roles: ['developer'] }],
      },
    });
    const browser = new Browser(h);
    const email = `${unique('ada')}@example.com`;
    const claims = { email, name: 'Ada', groups: ['staff-berlin'] };
    expect(await browser.logIn(own, { claims })).toBe(SIGNED_IN);
    expect(browser.cookie('postern_sso')).toBeUndefined();
    const refreshed = await browser.refresh();
    expect(refreshed.status).toBe(200);
    const me = await h.api('GET', '/v1/auth/me', { as: String(refreshed.json['access_token']) });
    expect(me.json).toMatchObject({ tenant_id: own.tenant, name: 'Ada', email, source: 'issuer:company' });
    expect(new Set(me.json['roles'] as string[])).toEqual(new Set(['analyst', 'developer']));
    const row = (await h.audit('auth.login')).findLast(({ actor_id }) => actor_id === me.json['id']);
    expect(row).toMatchObject({ result: 'success', after: { issuer: 'company', subject: 'ada' } });

    expect(
      await browser.logIn(own, { claims: { ...claims, groups: [], iat: Math.floor(Date.now() / 1000) + 1 } }),
    ).toBe(SIGNED_IN);
    const again = await h.api('GET', '/v1/auth/me', { as: String((await browser.refresh()).json['access_token']) });
    expect(again.json).toMatchObject({ id: me.json['id'], roles: ['analyst'] });
  });

  test('works at a real provider, which requires PKCE, before and after it has changed its keys', async () => {
    await using real: AsyncDisposable & OidcProvider = Object.assign(await startOidcProvider(), {
      [Symbol.asyncDispose]: async () => undefined,
    });
    const made = await h.api('POST', '/v1/iam/issuers', {
      as: h.root.token,
      tenant: await tenant(),
      body: {
        name: 'real',
        issuer: real.issuer,
        audiences: ['postern'],
        users: { create: true, default_roles: ['analyst'] },
        sso: {
          client_id: real.clientId,
          client_secret: real.clientSecret,
          label: 'Real',
          required_acr: 'urn:example:mfa',
        },
      },
    });
    const id = String(made.json['id']);
    real.register(h.url, id);
    real.person('grace', { name: 'Grace' }, 'urn:example:mfa');
    real.person('linus', { name: 'Linus' });
    const logIn = async (subject: string): Promise<string> => {
      const browser = new Browser(h);
      const at = locationOf(await browser.go('GET', `/v1/auth/sso/${id}/start`));
      const back = new URL(await logInAtProvider(at, subject));
      return locationOf(await browser.go('GET', `${back.pathname}${back.search}`));
    };
    expect(await logIn('grace')).toBe(SIGNED_IN);
    await real.rotate();
    expect(await logIn('grace')).toBe(SIGNED_IN);
    expect(await logIn('linus')).toBe(failedWith('invalid'));
    expect(await logIn('stranger')).toBe(failedWith('denied'));
    await real.close();
  });

  test('asks the provider for a code with PKCE, state and nonce, at an address of this server', async () => {
    const own = await issuer({ sso: { scopes: ['openid', 'groups'], required_acr: 'mfa' } });
    const browser = new Browser(h);
    const reply = await browser.go('GET', `/v1/auth/sso/${own.id}/start`);
    const url = new URL(locationOf(reply));
    expect(url.origin + url.pathname).toBe(`${own.provider.issuer.url}/authorize`);
    const random = expect.stringMatching(/^[\w-]{43}$/);
    expect(Object.fromEntries(url.searchParams)).toEqual({
      client_id: own.provider.clientId,
      response_type: 'code',
      scope: 'openid groups',
      redirect_uri: `${h.url}/v1/auth/sso/${own.id}/callback`,
      state: random,
      nonce: random,
      code_challenge: random,
      code_challenge_method: 'S256',
      acr_values: 'mfa',
    });
    expect(reply.headers['set-cookie']).toEqual([
      expect.stringMatching(/^postern_sso=[\w-]+; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
    ]);
    expect(reply.headers['referrer-policy']).toBe('no-referrer');
    const sealed = Buffer.from(browser.cookie('postern_sso') ?? '', 'base64url').toString('latin1');
    expect(sealed).not.toContain(url.searchParams.get('state'));
  });

  test('keeps its state in a cookie that only a page with TLS can set, behind a proxy that says so', async () => {
    const reply = await h.api('GET', `/v1/auth/sso/${shared.id}/start`, { headers: { host: 'ai.example.com' } });
    expect(String(reply.headers['set-cookie'])).toMatch(/^__Host-postern_sso=/);
    const { searchParams } = new URL(locationOf(reply));
    expect(searchParams.get('redirect_uri')).toBe(`https://ai.example.com/v1/auth/sso/${shared.id}/callback`);
  });

  test('leads to the requested page of the console, and never to another server', async () => {
    const browser = new Browser(h);
    for (const next of ['/keys?status=revoked', 'https://evil.example', '//evil.example']) {
      const at = await browser.start(shared, `?${new URLSearchParams({ next })}`);
      const end = await browser.finish(shared, shared.provider.authorize(at));
      expect(end).toBe(`${SIGNED_IN}?${new URLSearchParams({ next })}`);
    }
  });

  test('reaches the user that is linked to the subject, and no user that has the address of the token', async () => {
    const own = await issuer({ users: { create: false, email_claim: 'email' } });
    const person = await h.person(own.tenant, ['developer']);
    const browser = new Browser(h);
    const claims = { email: `${person.id}@example.test` };
    expect(await browser.logIn(own, { claims })).toBe(failedWith('no_account'));
    const linked = await h.api('PUT', `/v1/iam/users/${person.id}`, {
      as: h.root.token,
      tenant: own.tenant,
      body: { identities: [{ issuer: 'company', subject: 'ada' }] },
    });
    expect(linked.status, linked.text).toBe(200);
    expect(await browser.logIn(own, { claims })).toBe(SIGNED_IN);
    const me = await h.api('GET', '/v1/auth/me', { as: String((await browser.refresh()).json['access_token']) });
    expect(me.json['id']).toBe(person.id);

    await change(own, { users: { create: true, email_claim: 'email' } });
    const other = { claims: { ...claims, sub: 'eve', iat: Math.floor(Date.now() / 1000) + 1 } };
    expect(await new Browser(h).logIn(own, other)).toBe(failedWith('email_in_use'));
    expect(await lastFailure(own)).toMatchObject({
      result: 'failure',
      after: { reason: 'email_in_use', subject: 'eve' },
    });
  });

  test('ends with the user, the tenant and the issuer: none of them logs in or refreshes afterwards', async () => {
    const own = await issuer();
    const browser = new Browser(h);
    expect(await browser.logIn(own)).toBe(SIGNED_IN);
    const token = String((await browser.refresh()).json['access_token']);
    const { id } = (await h.api('GET', '/v1/auth/me', { as: token })).json;
    const as = { as: h.root.token, tenant: own.tenant };

    await h.api('POST', `/v1/iam/users/${id}/deactivate`, as);
    expect((await browser.refresh()).status).toBe(401);
    expect(await browser.logIn(own)).toBe(failedWith('no_account'));
    expect(await lastFailure(own)).toMatchObject({ after: { reason: 'deactivated' }, target_id: id });
    await h.api('POST', `/v1/iam/users/${id}/activate`, as);
    expect(await browser.logIn(own)).toBe(SIGNED_IN);

    await h.api('POST', `/v1/iam/tenants/${own.tenant}/suspend`, { as: h.root.token });
    expect(await browser.logIn(own)).toBe(failedWith('tenant_suspended'));
    await h.api('POST', `/v1/iam/tenants/${own.tenant}/activate`, { as: h.root.token });
    expect(await browser.logIn(own)).toBe(SIGNED_IN);
    expect((await browser.refresh()).status).toBe(200);

    const at = await browser.start(own);
    await change(own, { enabled: false });
    expect((await browser.refresh()).status).toBe(401);
    expect(await browser.finish(own, own.provider.authorize(at))).toBe(failedWith('unknown_issuer'));
    expect(await browser.start(own)).toBe(failedWith('unknown_issuer'));
    await change(own, { enabled: true });
    expect((await browser.refresh()).status).toBe(401);
  });
});

test.each([
  ['its login is removed', { sso: null }],
  ['it is disabled', { enabled: false }],
  ['its tokens prove no users any more', { sso: null, users: null }],
  ['it requires another claim', { required_claims: [{ claim: 'groups', in: ['staff'] }] }],
])('a change of the issuer while the provider confirms a login applies to it: %s', async (_name, members) => {
  const own = await issuer();
  own.provider.beforeToken = () => change(own, members);
  const browser = new Browser(h);
  const ended = await browser.logIn(own);
  expect([ended, (await browser.refresh()).status]).toEqual([expect.stringMatching(/sso_error=/), 401]);
});

test('a login that waits while an administrator removes its identity begins no session', async () => {
  const own = await issuer();
  // The same token again changes no roles, so the second login takes no lock before its session begins.
  const claims = { iat: Math.floor(Date.now() / 1000) };
  const browser = new Browser(h);
  expect(await browser.logIn(own, { claims })).toBe(SIGNED_IN);
  const { id } = (await h.api('GET', '/v1/auth/me', { as: String((await browser.refresh()).json['access_token']) }))
    .json;
  const other = new Browser(h);
  const answer = own.provider.authorize(await other.start(own), { claims });
  const finished = await h.db.knex.transaction(async (trx) => {
    const { rows } = await trx.raw<{ rows: [{ pid: number }] }>(
      'select pg_backend_pid() as pid from users where id = ? for update',
      [String(id)],
    );
    const finishing = other.finish(own, answer);
    await vi.waitFor(async () => expect(await blocks(h.db, rows[0].pid)).toBe(true));
    await trx.raw('delete from user_identities where user_id = ?', [String(id)]);
    return { finishing };
  });
  expect(await finished.finishing).toBe(failedWith('no_account'));
  expect((await other.refresh()).status).toBe(401);
});

test('a session does not refresh once its issuer is disabled or deleted, also if the session itself has not ended', async () => {
  const own = await issuer();
  for (const end of [
    { sql: 'update issuers set enabled = false where id = ?', undo: 'update issuers set enabled = true where id = ?' },
    { sql: 'update sessions set issuer_id = null where issuer_id = ?', undo: 'select ?' },
  ]) {
    const browser = new Browser(h);
    expect(await browser.logIn(own)).toBe(SIGNED_IN);
    expect((await browser.refresh()).status).toBe(200);
    await h.db.knex.raw(end.sql, [own.id]);
    expect((await browser.refresh()).status).toBe(401);
    await h.db.knex.raw(end.undo, [own.id]);
  }
});

describe('an answer of the provider', () => {
  const later = { exp: 1, iat: 1 };
  const hs256 = (claims: object): string => {
    const text = [{ alg: 'HS256', typ: 'JWT' }, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    return `${text}.${createHmac('sha256', 'secret of the + client %').update(text).digest('base64url')}`;
  };
  const unsigned = (claims: object): string =>
    `${[{ alg: 'none' }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')}.`;

  test.each<[string, Login, string]>([
    ['of another issuer', { answer: { iss: 'https://other.example' } }, 'invalid'],
    ['without the issuer that it announces', { answer: { iss: undefined } }, 'invalid'],
    ['without a code', { answer: { code: undefined } }, 'invalid'],
    ['with an invented code', { answer: { code: 'invented' } }, 'invalid'],
    ['without the state', { answer: { state: undefined } }, 'expired'],
    ['with another state', { answer: { state: randomUUID() } }, 'expired'],
    ['that the user did not agree', { answer: { code: undefined, error: 'access_denied' } }, 'denied'],
    ['with another nonce', { claims: { nonce: randomUUID() } }, 'invalid'],
    ['without a nonce', { claims: { nonce: undefined } }, 'invalid'],
    ['with the ID token of another client', { claims: { aud: 'another client' } }, 'invalid'],
    [
      'with an ID token for several clients that another one asked for',
      { claims: { aud: ['console', 'x'], azp: 'x' } },
      'invalid',
    ],
    ['with an ID token that another client asked for', { claims: { azp: 'x' } }, 'invalid'],
    ['with an ID token of another issuer', { claims: { iss: 'https://other.example' } }, 'invalid'],
    ['with an ID token that has expired', { claims: later }, 'invalid'],
    ['with an ID token without a subject', { claims: { sub: undefined } }, 'invalid'],
    ['with an ID token that another key signed', { key: makeIssuerKey('ES256') }, 'invalid'],
    ['with an ID token that the secret of the client signed', { sign: hs256 }, 'invalid'],
    ['with an ID token that no key signed', { sign: unsigned }, 'invalid'],
  ])('%s begins no session', async (_name, login, error) => {
    const browser = new Browser(h);
    expect(await browser.logIn(shared, login)).toBe(failedWith(error));
    expect(browser.cookie('postern_refresh')).toBeUndefined();
    expect(browser.cookie('postern_sso')).toBeUndefined();
    expect(await browser.logIn(shared)).toBe(SIGNED_IN);
  });

  test('with a repeated parameter begins no session', async () => {
    const browser = new Browser(h);
    const query = shared.provider.authorize(await browser.start(shared));
    expect(await browser.finish(shared, `${query}&code=another`)).toBe(failedWith('invalid'));
    expect(await browser.logIn(shared)).toBe(SIGNED_IN);
  });

  test.each([
    [
      'the context class that the issuer requires',
      { sso: { required_acr: 'mfa' } },
      { acr: 'pwd' },
      { acr: 'mfa' },
      'acr',
    ],
    [
      'the claims that the issuer requires',
      { required_claims: [{ claim: 'hd', in: ['acme.example'] }] },
      { hd: 'evil.example' },
      { hd: 'acme.example' },
      'claims',
    ],
    [
      'its groups, but a link to them',
      { users: { create: true, roles: [{ claim: 'groups', in: ['x'], roles: ['analyst'] }] } },
      { _claim_names: { groups: 'src1' } },
      { groups: ['x'] },
      'linked_claims',
    ],
    ['a subject', { users: { create: true, subject_claim: 'oid' } }, { oid: 7 }, { oid: 'o-7' }, 'no_subject'],
  ])('whose ID token lacks %s begins no session', async (_name, members, wrong, right, reason) => {
    const own = await issuer(members);
    expect(await new Browser(h).logIn(own, { claims: wrong })).toMatch(/sso_error=(invalid|no_account)$/);
    expect(await lastFailure(own)).toMatchObject({ result: 'failure', after: { reason } });
    expect(await new Browser(h).logIn(own, { claims: right })).toBe(SIGNED_IN);
  });

  test('whose ID token is older than the issuer accepts begins no session', async () => {
    const own = await issuer();
    const reply = await h.api('POST', `/v1/iam/issuers/${own.id}/revoke-before`, {
      as: h.root.token,
      tenant: own.tenant,
      body: {},
    });
    expect(reply.status, reply.text).toBe(200);
    const nowS = Math.floor(Date.now() / 1000);
    expect(await new Browser(h).logIn(own, { claims: { iat: nowS - 60 } })).toBe(failedWith('invalid'));
    expect(await new Browser(h).logIn(own, { claims: { iat: nowS + 1 } })).toBe(SIGNED_IN);
  });

  test('that a provider cannot confirm now leads back to the sign-in page, and the next login works', async () => {
    const own = await issuer();
    const browser = new Browser(h);
    own.provider.tokenStatus = 503;
    expect(await browser.logIn(own)).toBe(failedWith('unavailable'));
    own.provider.tokenStatus = undefined;
    expect(await browser.logIn(own)).toBe(SIGNED_IN);
  });
});

describe('the answer of a provider', () => {
  const metadataOf = async (of: Issuer, metadata: object) => {
    const body = { description: 'own', scopes: ['chat:write'], expires_in_days: 1, metadata };
    return (await h.api('POST', '/v1/iam/api-keys', { as: h.root.token, tenant: of.tenant, body })).json['metadata'];
  };
  const encoded = (text: string) => Buffer.from(text).toString('base64url');

  test('with an ID token that cannot be read does not change how the names of later bodies are read', async () => {
    const own = await issuer();
    const member = unique('m');
    const sign = () => `${encoded(`{"${member}":"a","\\\\":0}`)}.${encoded('{}')}.c2ln`;
    expect(await new Browser(h).logIn(own, { sign })).toBe(failedWith('unavailable'));
    const metadata = { [member]: 'a', '"': 'b' };
    expect(await metadataOf(own, metadata)).toEqual(metadata);
    expect(await new Browser(h).logIn(own)).toBe(SIGNED_IN);
  });

  test('of too many values is not parsed', async () => {
    const own = await issuer();
    const { answer } = own.provider.issuer;
    own.provider.issuer.answer = (request, response) => {
      if (request.url !== '/token') return answer?.(request, response) === true;
      sendJson(response, { x: Array(100_000).fill([]) });
      return true;
    };
    expect(await new Browser(h).logIn(own)).toBe(failedWith('unavailable'));
    expect(await lastFailure(own)).toMatchObject({ after: { detail: 'The body holds more than 64000 values.' } });
  });
});

describe('the state of a login', () => {
  test('belongs to the browser that began it', async () => {
    const [attacker, victim] = [new Browser(h), new Browser(h)];
    const answer = shared.provider.authorize(await attacker.start(shared));
    expect(await victim.finish(shared, answer)).toBe(failedWith('expired'));
    await victim.start(shared);
    expect(await victim.finish(shared, answer)).toBe(failedWith('expired'));
    expect(victim.cookie('postern_refresh')).toBeUndefined();
    expect(await attacker.finish(shared, answer)).toBe(SIGNED_IN);
  });

  test('counts once, also for a browser that kept its cookie, and of eight answers at once for one', async () => {
    const browser = new Browser(h);
    const answer = shared.provider.authorize(await browser.start(shared));
    const kept = Array.from({ length: 8 }, () => new Browser(h).take(browser));
    const ends = await Promise.all(kept.map((each) => each.finish(shared, answer)));
    expect(ends.filter((end) => end === SIGNED_IN)).toHaveLength(1);
    expect(new Set(ends)).toEqual(new Set([SIGNED_IN, failedWith('expired')]));
    expect(await new Browser(h).take(browser).finish(shared, answer)).toBe(failedWith('expired'));
    expect(await lastFailure(shared)).toMatchObject({ after: { reason: 'replayed' } });
  });

  test('belongs to one issuer: the answer of another one does not finish it', async () => {
    const other = await issuer();
    const browser = new Browser(h);
    const at = await browser.start(shared);
    expect(await browser.finish(other, other.provider.authorize(at))).toBe(failedWith('expired'));
    const again = await browser.start(shared);
    expect(await browser.finish(shared, other.provider.authorize(again))).toBe(failedWith('invalid'));
    expect(await browser.logIn(shared)).toBe(SIGNED_IN);
  });

  test.each([
    ['is accepted for less than 10 min', 'expired', 600_000],
    ['does not come from the future', 'expired', -60_000],
    ['is accepted while it is new', 'invalid', 590_000],
  ])('%s', async (_name, error, ageMs) => {
    const id = parseId('iss', shared.id);
    if (id === undefined) throw new Error('no id');
    const redirectUri = `${h.url}/v1/auth/sso/${id}/callback`;
    const state = newState({ issuerId: id, redirectUri, next: undefined, startedMs: Date.now() - ageMs });
    const browser = new Browser(h);
    browser.set('postern_sso', sealState({ secretKey: SECRET_KEY }, state));
    const query = new URLSearchParams({ code: 'x', state: state.state, iss: shared.provider.issuer.url });
    expect(await browser.finish(shared, query.toString())).toBe(failedWith(error));
  });

  test('cannot be changed', async () => {
    const browser = new Browser(h);
    const answer = shared.provider.authorize(await browser.start(shared));
    const cookie = browser.cookie('postern_sso') ?? '';
    const changed = new Browser(h);
    changed.set('postern_sso', `${cookie.slice(0, 40)}${cookie[40] === 'A' ? 'B' : 'A'}${cookie.slice(41)}`);
    expect(await changed.finish(shared, answer)).toBe(failedWith('expired'));
    expect(await browser.finish(shared, answer)).toBe(SIGNED_IN);
  });
});

describe('the beginning of a login', () => {
  test('lists the enabled issuers that have one, and with `tenant` those of the tenant', async () => {
    const own = await issuer();
    const ids = async (query = ''): Promise<unknown> =>
      ((await h.api('GET', `/v1/auth/sso${query}`)).json['data'] as { id: string }[]).map(({ id }) => id);
    expect(await ids()).toEqual(expect.arrayContaining([shared.id, own.id]));
    expect((await h.api('GET', `/v1/auth/sso?tenant=${own.tenant}`)).json).toEqual({
      data: [{ id: own.id, label: 'Company' }],
      only: false,
    });
    expect(await ids('?tenant=No%20tenant')).toEqual([]);
    await change(own, { enabled: false });
    expect(await ids(`?tenant=${own.tenant}`)).toEqual([]);
  });

  test('leads back to the sign-in page for an issuer that is unknown, has no login, or belongs to another tenant', async () => {
    const browser = new Browser(h);
    const without = await issuer();
    await change(without, { sso: null });
    expect(await browser.start(without)).toBe(failedWith('unknown_issuer'));
    expect(await browser.start({ ...shared, id: 'iss_nothing' })).toBe(failedWith('unknown_issuer'));
    expect(await browser.start(shared, '?tenant=default')).toBe(failedWith('unknown_issuer'));
    expect(await browser.start(shared, `?tenant=${shared.tenant}`)).toContain('/authorize?');
  });

  test.each([undefined, 5, '/authorize', 'javascript:alert(1)'])(
    'leads back to the sign-in page if %s is the login page of the provider',
    async (page) => {
      const own = await issuer();
      own.provider.discovery = { authorization_endpoint: page };
      expect(await new Browser(h).start(own)).toBe(failedWith('unavailable'));
    },
  );

  test.each(['cross-site', 'same-site'])(
    'by a %s page leads to the sign-in page and changes no cookie',
    async (site) => {
      const browser = new Browser(h);
      const path = `/v1/auth/sso/${shared.id}/start?next=%2Fkeys`;
      const reply = await browser.go('GET', path, { 'sec-fetch-site': site });
      expect(locationOf(reply)).toBe('/console/sign-in?next=%2Fkeys');
      expect(reply.headers['set-cookie']).toBeUndefined();
      for (const own of ['same-origin', 'none']) {
        expect(locationOf(await browser.go('GET', path, { 'sec-fetch-site': own }))).toContain('/authorize?');
      }
    },
  );

  test.each([
    ['the address', () => '192.0.2.1', '192.0.2.2'],
    ['the /64 network of an IPv6 address', (i: number) => `2001:db8:0:1::${i}`, '2001:db8:0:2::1'],
  ])('is limited by %s, and another one is not affected', async (_what, addressOf, other) => {
    const stand = await startHarness({ settings: { POSTERN_HTTP_TRUSTED_PROXIES: '["127.0.0.1"]' } });
    const start = async (address: string): Promise<string> =>
      locationOf(
        await stand.api('GET', '/v1/auth/sso/iss_00000000000000000000000000/start', {
          headers: { 'x-forwarded-for': address },
        }),
      );
    // The limit is by time: on a busy machine, an address may send two more for each second that the test takes.
    const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    onTestFinished(() => clock.mockRestore());
    const ends = new Set<string>();
    for (let i = 0; i < 130; i++) ends.add(await start(addressOf(i)));
    expect(ends).toEqual(new Set([failedWith('unknown_issuer'), failedWith('too_many_attempts')]));
    expect(await start(other)).toBe(failedWith('unknown_issuer'));
    await stand.close();
  });
});
