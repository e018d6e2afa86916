/** /v1/auth: login, refresh and logout, the caller's own password and sessions. */

import { type Static, Type } from 'typebox';
import type { CredentialResolver } from '../../credential-cache/resolution.ts';
import { Refusal } from '../../domain/errors.ts';
import type { SessionId } from '../../domain/ids.ts';
import { fieldSentence } from '../../domain/problem-details.ts';
import { type Answers, DONE, shows } from '../../http/answers.ts';
import { EXCHANGE_BODY_BYTES } from '../../http/body-limits.ts';
import { type Answer, callerEndpoint, type Endpoint, publicEndpoint, type RequestInput } from '../../http/endpoint.ts';
import { joinApiKeys, readCredential } from '../../identity/credential.ts';
import type { LoginOutcome } from '../../telemetry/login-metrics.ts';
import { invalidCredential } from '../caller/admission.ts';
import { aPassword } from '../schema/grammar.ts';
import { asksAlso, component, described, shownText } from '../schema/keywords.ts';
import { oneOf } from '../schema/schemas.ts';
import { ownSessionEndpoints } from '../sessions/routes.ts';
import { changePassword, resetPassword } from './change-password.ts';
import { clearCookie, cookieName, readCookie, setCookie } from './cookie.ts';
import { exchange } from './exchange.ts';
import { ACCESS_TOKEN_TYPE, ExchangeForm, readExchange } from './exchange-request.ts';
import { type LoginRequest, login } from './login.ts';
import { LoginAttemptLimiter } from './login-attempt-limiter.ts';
import { logoutByAccessToken, logoutByRefreshToken } from './logout.ts';
import { me } from './me.ts';
import { isOwnOrigin, type PageHeaders, pageScheme } from './origin.ts';
import type { AuthParts, IssuedTokens, LoginParts } from './parts.ts';
import { type AnyInput, pageOf, provenance } from './provenance.ts';
import { type PresentedToken, type RefreshParts, refresh } from './refresh.ts';
import * as resources from './response-schemas.ts';

export interface AuthHttpParts extends AuthParts {
  /** `http.origins`. Undefined: the origin of the Host header. */
  readonly origins: readonly string[] | undefined;
  /**
   * Returns the address at which a browser also ends its session at the provider by which a session began; undefined if
   * there is none. Default: there is none.
   */
  readonly providerLogoutUrl?: (session: SessionId, page: PageHeaders) => Promise<string | undefined>;
  /** Resolves the tokens that clients exchange. */
  readonly resolver: CredentialResolver;
  readonly onLogin?: (outcome: LoginOutcome) => void;
}

const CLOSED = { additionalProperties: false } as const;

/** A login has an email address, or a directory's username with `auth_type`, and no mixture of them. */
const NEITHER_LOGIN = {
  anyOf: [
    { required: ['email', 'username'] },
    { required: ['email', 'auth_type'] },
    { required: ['username'], not: { required: ['auth_type'] } },
    { not: { anyOf: [{ required: ['email'] }, { required: ['username'] }] } },
  ],
};

const LoginBody = component(
  'Login',
  Type.Object(
    {
      email: Type.Optional(Type.String()),
      username: Type.Optional(Type.String()),
      auth_type: Type.Optional(oneOf('ldap')),
      password: Type.String(),
      session: Type.Optional(described(oneOf('cookie'), 'The refresh token comes as an HttpOnly cookie.')),
    },
    {
      ...CLOSED,
      ...asksAlso({ not: NEITHER_LOGIN }),
      examples: [{ email: 'ada@acme.example', password: 'a lake of tin whistles' }],
    },
  ),
);
const refreshToken = {
  refresh_token: Type.Optional(shownText('Absent if the refresh token is sent as a cookie.')),
};

const RefreshBody = component(
  'RefreshToken',
  Type.Object(refreshToken, {
    ...CLOSED,
    description: 'A browser that keeps the refresh token in a cookie sends an empty object or no body.',
  }),
);
const LogoutBody = component(
  'Logout',
  Type.Object(refreshToken, {
    ...CLOSED,
    description: 'Empty if the access token or the cookie identifies the session.',
  }),
);
const PasswordBody = component(
  'PasswordChange',
  Type.Object({ old_password: Type.String(), new_password: Type.String(aPassword) }, CLOSED),
);
const ResetBody = component(
  'NewPassword',
  Type.Object({ token: shownText('A `password_setup_token`.'), new_password: Type.String(aPassword) }, CLOSED),
);

/** The directory decides which usernames it accepts. */
function isOfDirectory(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'auth_type' in body && body.auth_type === 'ldap';
}

const LOGGED_OUT: Answers = {
  ...shows("The session has ended here. The browser can also end the provider's session.", resources.ProviderLogout, [
    'set-cookie',
  ]),
  204: { description: 'The session has ended.', headers: ['set-cookie'] },
};

/** @param attempts the limiter of login attempts, one for each process */
export function authEndpoints(
  server: AuthHttpParts,
  attempts: LoginAttemptLimiter = new LoginAttemptLimiter(),
): readonly Endpoint[] {
  const parts = { ...server, attempts, claims: new Map() };
  return [...loginEndpoints(parts), ...passwordEndpoints(parts), ...ownSessionEndpoints(parts)];
}

function loginEndpoints(parts: AuthHttpParts & LoginParts & RefreshParts): readonly Endpoint[] {
  return [
    publicEndpoint({
      method: 'POST',
      path: '/v1/auth/login',
      operationId: 'login',
      summary:
        'Log in with email and password, or with a directory username. Returns an access token and a refresh token.',
      body: LoginBody,
      takesAnyText: isOfDirectory,
      answers: shows('The tokens.', resources.TokenPair, ['set-cookie']),
      refusals: ['invalid_field', 'invalid_credential', 'tenant_suspended', 'password_expired', 'too_many_attempts'],
      handler: (input) => handleLogin(parts, input),
    }),
    publicEndpoint({
      method: 'POST',
      path: '/v1/auth/refresh',
      operationId: 'refresh',
      summary: 'Exchange a refresh token, from the body or the cookie, for a new pair of tokens.',
      body: RefreshBody,
      answers: shows('The next tokens.', resources.TokenPair, ['set-cookie']),
      refusals: ['invalid_credential', 'tenant_suspended'],
      handler: (input) => handleRefresh(parts, input),
    }),
    publicEndpoint({
      method: 'POST',
      path: '/v1/auth/token',
      operationId: 'exchangeToken',
      summary: 'Exchange a token of another issuer for an access token (RFC 8693).',
      form: true,
      oauth: true,
      body: ExchangeForm,
      maxBodyBytes: EXCHANGE_BODY_BYTES,
      takesAnyText: () => true,
      answers: shows('The access token.', resources.ExchangedToken, ['cache-control']),
      refusals: [
        'invalid_subject_token',
        'unsupported_grant_type',
        'invalid_scope',
        'invalid_target',
        'tenant_suspended',
        'rate_limit_exceeded',
        'too_many_attempts',
      ],
      handler: (input) => handleExchange(parts, input),
    }),
    publicEndpoint({
      method: 'POST',
      path: '/v1/auth/logout',
      operationId: 'logout',
      summary: "End the session of a refresh token, or of the request's access token.",
      body: LogoutBody,
      takesCredential: true,
      answers: LOGGED_OUT,
      refusals: ['missing_credential', 'invalid_credential', 'token_expired'],
      handler: (input) => handleLogout(parts, input),
    }),
    callerEndpoint({
      method: 'GET',
      path: '/v1/auth/me',
      operationId: 'getMe',
      summary: "Get the principal of the request's credential.",
      permission: 'any',
      answers: shows('The principal.', resources.Me),
      run: ({ caller }) => me(parts, caller),
    }),
  ];
}

function passwordEndpoints(parts: AuthHttpParts & LoginParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'POST',
      path: '/v1/auth/password',
      operationId: 'changePassword',
      summary: "Change your own password. The caller's other sessions end.",
      permission: 'self',
      body: PasswordBody,
      answers: DONE,
      refusals: ['too_many_attempts'],
      run: (input) => {
        const change = { oldPassword: input.body.old_password, newPassword: input.body.new_password };
        return changePassword(parts, input.caller, change, provenance(input));
      },
    }),
    publicEndpoint({
      method: 'POST',
      path: '/v1/auth/password/reset',
      operationId: 'resetPassword',
      summary: 'Set a password with a one-time token. All sessions of the user end.',
      body: ResetBody,
      answers: DONE,
      refusals: ['invalid_credential'],
      run: (input) => {
        const reset = { token: input.body.token, newPassword: input.body.new_password };
        return resetPassword(parts, reset, provenance(input));
      },
    }),
  ];
}

async function handleLogin(
  parts: AuthHttpParts & LoginParts,
  input: RequestInput<Static<typeof LoginBody>, unknown>,
): Promise<Answer> {
  const cookie = input.body.session === 'cookie';
  const account = accountOf(input.body);
  // A page of another site must not log a browser in as another user. Programs send no Origin.
  if (cookie && input.header('origin') !== undefined && !fromOwnPage(parts, input)) throw invalidCredential();
  try {
    const pair = await login(parts, { account, password: input.body.password, cookie }, provenance(input));
    parts.onLogin?.('success');
    return tokenAnswer(parts, input, pair);
  } catch (error) {
    if (error instanceof Refusal) parts.onLogin?.(outcomeOf(error));
    throw error;
  }
}

function outcomeOf({ code }: Refusal): LoginOutcome {
  return code === 'too_many_attempts' ? 'throttled' : code === 'invalid_credential' ? 'failure' : 'refused';
}

function accountOf(body: Static<typeof LoginBody>): LoginRequest['account'] {
  const wanted = body.auth_type === 'ldap' ? 'username' : 'email';
  const other = body.auth_type === 'ldap' ? 'email' : 'username';
  const name = body[wanted];
  if (name === undefined) throw badMember(wanted, 'This member is required.');
  if (body[other] !== undefined) throw badMember(other, 'This member does not belong to this kind of login.');
  return wanted === 'email' ? { kind: 'email', email: name } : { kind: 'directory', username: name };
}

function badMember(member: string, message: string): Refusal {
  const path = `/${member}`;
  return new Refusal('invalid_field', `The body is not valid: ${fieldSentence({ path, message })}`, {
    param: member,
    errors: [{ path, message }],
  });
}

async function handleRefresh(
  parts: AuthHttpParts & RefreshParts,
  input: RequestInput<Static<typeof RefreshBody>, unknown>,
): Promise<Answer> {
  const presented = bodyToken(input.body) ?? cookieToken(parts, input);
  if (presented === undefined) throw invalidCredential();
  return tokenAnswer(parts, input, await refresh(parts, presented, provenance(input)));
}

async function handleExchange(
  parts: AuthHttpParts & LoginParts,
  input: RequestInput<Static<typeof ExchangeForm>, unknown>,
): Promise<Answer> {
  const { audience, issuer } = parts.tokens;
  const { accessToken, expiresIn, scope } = await exchange(
    parts,
    readExchange(input.body, [audience, issuer]),
    provenance(input),
  );
  const body = {
    access_token: accessToken,
    issued_token_type: ACCESS_TOKEN_TYPE,
    token_type: 'Bearer',
    expires_in: expiresIn,
    scope: scope.join(' '),
  };
  return { status: 200, body, headers: { 'cache-control': 'no-store' } };
}

/**
 * If the body has a refresh token, only that one counts. A browser sends its cookie together with its access token, and
 * either may have expired.
 */
async function handleLogout(
  parts: AuthHttpParts,
  input: RequestInput<Static<typeof LogoutBody>, unknown>,
): Promise<Answer> {
  const named = bodyToken(input.body);
  const brought = named ?? cookieToken(parts, input);
  const session = brought === undefined ? undefined : await logoutByRefreshToken(parts, brought, provenance(input));
  const hasBearer = named === undefined && (await logoutBearer(parts, input, brought !== undefined));
  const name = cookieNameOf(input);
  const hadCookie = readCookie(input.header('cookie'), name) !== undefined;
  const more = {
    ...(hadCookie ? { headers: { 'set-cookie': clearCookie(name) } } : {}),
    isFutile: session === undefined && !hasBearer,
  };
  // A session of the console only: a program has no browser to send there.
  const url =
    session?.endedNow === true && brought?.via === 'cookie'
      ? await parts.providerLogoutUrl?.(session.id, pageOf(input))
      : undefined;
  return url === undefined ? { status: 204, ...more } : { status: 200, body: { logout_url: url }, ...more };
}

/**
 * Returns true if the token proves a session, which has ended now or before.
 *
 * @param optional another token was sent, so a token that proves no session is no reason to reject
 */
async function logoutBearer(parts: AuthHttpParts, input: AnyInput, optional: boolean): Promise<boolean> {
  const credential = readCredential(
    input.header('authorization'),
    joinApiKeys(input.header('x-api-key'), input.header('api-key')),
  );
  try {
    if (credential.kind === 'token') {
      await logoutByAccessToken(parts, credential.token, provenance(input));
      return true;
    }
    if (credential.kind === 'other_scheme') throw invalidCredential('scheme');
    if (credential.kind !== 'missing') throw invalidCredential();
    throw new Refusal(
      'missing_credential',
      'Send a refresh token in the body, or an access token: Authorization: Bearer <token>.',
    );
  } catch (error) {
    if (!(optional && error instanceof Refusal)) throw error;
    return false;
  }
}

function bodyToken(body: Static<typeof RefreshBody>): PresentedToken | undefined {
  return body.refresh_token === undefined ? undefined : { text: body.refresh_token, via: 'body' };
}

/** A cookie counts only with an Origin of this server. */
function cookieToken(parts: AuthHttpParts, input: AnyInput): PresentedToken | undefined {
  const text = readCookie(input.header('cookie'), cookieNameOf(input));
  return text !== undefined && fromOwnPage(parts, input) ? { text, via: 'cookie' } : undefined;
}

function fromOwnPage(parts: AuthHttpParts, input: AnyInput): boolean {
  return isOwnOrigin(pageOf(input), parts.origins);
}

function cookieNameOf(input: AnyInput): ReturnType<typeof cookieName> {
  return cookieName(pageScheme(pageOf(input)));
}

function tokenAnswer(parts: AuthHttpParts, input: AnyInput, pair: IssuedTokens): Answer {
  const body = { access_token: pair.accessToken, token_type: 'Bearer', expires_in: pair.expiresIn };
  if (!pair.cookie) return { status: 200, body: { ...body, refresh_token: pair.refreshToken } };
  const cookie = setCookie(cookieNameOf(input), pair.refreshToken, parts.login.refreshIdleMs);
  return { status: 200, body, headers: { 'set-cookie': cookie } };
}
