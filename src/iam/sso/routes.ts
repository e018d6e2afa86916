/**
 * /v1/auth/sso: the login to the console by an issuer. A browser follows the addresses, so each failure leads back to
 * the sign-in page, which shows it. No address of a request decides where the browser goes: `next` is a parameter of a
 * page of the console, which accepts paths of the console only.
 */

import { type Static, Type } from 'typebox';
import { Refusal } from '../../domain/errors.ts';
import { parseId, parseTenantId } from '../../domain/ids.ts';
import { type Answers, shows } from '../../http/answers.ts';
import { EXCHANGE_BODY_BYTES } from '../../http/body-limits.ts';
import { type Answer, type Endpoint, publicEndpoint, type RequestInput } from '../../http/endpoint.ts';
import { cookieName, readCookie, setCookie } from '../auth/cookie.ts';
import { ownOrigin, pageScheme } from '../auth/origin.ts';
import { type AnyInput, pageOf, provenance } from '../auth/provenance.ts';
import { component, flagOf, optionalText, shownText } from '../schema/keywords.ts';
import { closed } from '../schema/schemas.ts';
import { finishLogin, startLogin } from './login.ts';
import { logoutByProvider } from './logout.ts';
import { SIGN_IN, type SsoError, type SsoParts } from './parts.ts';
import { MAX_SHOWN_ISSUERS, shownIssuers } from './queries.ts';
import { clearStateCookie, setStateCookie, stateCookieName } from './state.ts';

const SIGNED_IN = '/console/signed-in';

/** Addresses of the provider and of this server would show other servers the pages of the browser. */
const HEADERS = { 'referrer-policy': 'no-referrer' };

const SsoIssuers = component(
  'SsoIssuers',
  Type.Object({
    data: Type.Array(
      Type.Object({
        id: Type.String({ examples: ['iss_01jd5k3v8m2x7q9w4r6t0y1z3b'] }),
        label: shownText('The text of the button.'),
      }),
      { maxItems: MAX_SHOWN_ISSUERS },
    ),
    only: flagOf('The console hides the form for passwords.'),
  }),
);

const tenantQuery = {
  tenant: optionalText(64, 'Only the issuers of this tenant.'),
};
const StartQuery = Type.Object(
  {
    ...tenantQuery,
    next: optionalText(2048, 'The path of the console after the login.'),
  },
  closed,
);

const REDIRECTS: Answers = {
  302: { description: 'Where the browser goes on.', headers: ['location', 'set-cookie'] },
};

const LogoutBody = component(
  'BackchannelLogout',
  Type.Object({
    logout_token: Type.Optional(shownText('OpenID Connect Back-Channel Logout 1.0, section 2.4.')),
  }),
);

export function ssoEndpoints(parts: SsoParts): readonly Endpoint[] {
  return [
    publicEndpoint({
      method: 'GET',
      path: '/v1/auth/sso',
      operationId: 'listSsoIssuers',
      summary: `List the issuers by which users log in to the console, by label: at most ${MAX_SHOWN_ISSUERS}.`,
      query: Type.Object(tenantQuery, closed),
      answers: shows('The issuers.', SsoIssuers),
      run: async ({ query }) => {
        const tenant = query.tenant === undefined ? undefined : parseTenantId(query.tenant);
        const isNone = query.tenant !== undefined && tenant === undefined;
        const data = isNone ? [] : await shownIssuers(parts.db.knex, tenant);
        return { data, only: parts.sso.only };
      },
    }),
    publicEndpoint({
      method: 'GET',
      path: '/v1/auth/sso/:id/start',
      operationId: 'startSso',
      summary: 'Begin a login to the console by an issuer. Leads the browser to the login page of the provider.',
      query: StartQuery,
      answers: REDIRECTS,
      handler: (input) => handleStart(parts, input),
    }),
    publicEndpoint({
      method: 'GET',
      path: '/v1/auth/sso/:id/callback',
      operationId: 'finishSso',
      summary: 'Finish a login to the console by an issuer. The provider leads the browser here.',
      // Providers add parameters of their own.
      query: Type.Object({}),
      answers: REDIRECTS,
      handler: (input) => handleCallback(parts, input),
    }),
    publicEndpoint({
      method: 'POST',
      path: '/v1/auth/sso/:id/backchannel-logout',
      operationId: 'logoutByProvider',
      summary: 'End the sessions that a logout token of the provider names.',
      body: LogoutBody,
      form: true,
      maxBodyBytes: EXCHANGE_BODY_BYTES,
      takesAnyText: () => true,
      answers: { 200: { description: 'The sessions have ended.', headers: ['cache-control'] } },
      refusals: ['too_many_attempts'],
      handler: (input) => handleLogout(parts, input),
    }),
  ];
}

async function handleStart(parts: SsoParts, input: RequestInput<unknown, Static<typeof StartQuery>>): Promise<Answer> {
  const { tenant, next } = input.query;
  // A page of another site must not log a browser in without its user. The user can choose the issuer on the page.
  if (isFromElsewhere(input)) return redirect(pageAddress(SIGN_IN, { next }));
  const origin = ownOrigin(pageOf(input), parts.origins);
  const issuerId = parseId('iss', input.param('id'));
  if (origin === undefined) return failure('unavailable', next);
  const redirectUri = `${origin}/v1/auth/sso/${issuerId}/callback`;
  const started = await startLogin(parts, { issuerId, tenant, next, redirectUri }, provenance(input));
  if (started.kind === 'failed') return failure(started.error, next);
  return redirect(started.url, [setStateCookie(stateCookieOf(input), started.sealed)]);
}

/** Browsers say where a navigation began. Programs do not send the header. */
function isFromElsewhere(input: AnyInput): boolean {
  const site = input.header('sec-fetch-site');
  return site !== undefined && site !== 'same-origin' && site !== 'none';
}

async function handleCallback(parts: SsoParts, input: RequestInput<unknown, unknown>): Promise<Answer> {
  const cookie = stateCookieOf(input);
  const sealed = readCookie(input.header('cookie'), cookie);
  const answer = parametersOf(input.query);
  const issuerId = parseId('iss', input.param('id'));
  const { next, result } = await finishLogin(parts, issuerId, sealed, answer, provenance(input));
  // Another login may be under way in the browser. Its cookie stays.
  const cleared = sealed === undefined ? [] : [clearStateCookie(cookie)];
  if (result.kind === 'failed') {
    parts.onLogin?.(outcomeOf(result.error));
    return failure(result.error, next, cleared);
  }
  parts.onLogin?.('success');
  const name = cookieName(pageScheme(pageOf(input)));
  const { refreshToken } = result.pair;
  // The page requests the tokens: the browser sends a cookie of SameSite=Strict to no address that the provider led to.
  return redirect(pageAddress(SIGNED_IN, { next }), [
    ...cleared,
    setCookie(name, refreshToken, parts.login.refreshIdleMs),
  ]);
}

function outcomeOf(error: SsoError) {
  if (error === 'too_many_attempts') return 'throttled';
  return error === 'tenant_suspended' || error === 'unavailable' ? 'refused' : 'failure';
}

async function handleLogout(parts: SsoParts, input: RequestInput<Static<typeof LogoutBody>, unknown>): Promise<Answer> {
  const from = provenance(input);
  const { rejectedLogouts } = parts.sso;
  const waitSeconds = rejectedLogouts.waitSeconds(from.throttledAs);
  if (waitSeconds > 0) {
    throw new Refusal('too_many_attempts', 'Too many rejected logout tokens. Wait before trying again.', {
      retryAfter: waitSeconds,
    });
  }
  const { logout_token: token } = input.body;
  const issuerId = parseId('iss', input.param('id'));
  if (token === undefined || !(await logoutByProvider(parts, issuerId, token, from))) {
    rejectedLogouts.count(from.throttledAs);
    throw new Refusal('invalid_parameter', 'The logout token is not valid.', { param: 'logout_token' });
  }
  return { status: 200, headers: { 'cache-control': 'no-store' } };
}

function stateCookieOf(input: AnyInput): string {
  return stateCookieName(pageScheme(pageOf(input)));
}

/** Returns a repeated parameter as often as it was sent: the checks of the provider's answer reject it. */
function parametersOf(query: unknown): URLSearchParams {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(Object(query))) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (typeof each === 'string') parameters.append(name, each);
    }
  }
  return parameters;
}

function failure(error: SsoError, next: string | undefined, cookies: readonly string[] = []): Answer {
  return redirect(pageAddress(SIGN_IN, { sso_error: error, next }), cookies);
}

function pageAddress(path: string, search: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(search).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

function redirect(location: string, cookies: readonly string[] = []): Answer {
  return {
    status: 302,
    headers: { ...HEADERS, location, ...(cookies.length === 0 ? {} : { 'set-cookie': [...cookies] }) },
  };
}
