/** A server for logging in, joined from the real parts; several can share one database, as replicas do. */

import { randomBytes } from 'node:crypto';
import { CredentialCache } from '../../src/credential-cache/credential-cache.ts';
import type { ChangeListener } from '../../src/credential-cache/ports.ts';
import { trustProxies } from '../../src/http/client-address.ts';
import { keySetEndpoints } from '../../src/http/jwks.ts';
import { createHttp } from '../../src/http/server.ts';
import type { DirectoryService } from '../../src/iam/auth/directory-service.ts';
import { LoginAttemptLimiter } from '../../src/iam/auth/login-attempt-limiter.ts';
import type { AccessTokenParts, AuthParts, LoginSettings, PasswordVerifier } from '../../src/iam/auth/parts.ts';
import { authEndpoints } from '../../src/iam/auth/routes.ts';
import { userEndpoints } from '../../src/iam/users/routes.ts';
import { Passwords } from '../../src/identity/passwords.ts';
import { rotationTimes } from '../../src/identity/signing-key-plan.ts';
import { SigningKeys } from '../../src/identity/signing-keys.ts';
import { AccessTokens } from '../../src/identity/tokens.ts';
import { PostgresCacheLoader } from '../../src/store/cache-loader.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { ChangeFeed } from '../../src/store/feed.ts';
import { signingKeyStore } from '../../src/store/signing-keys.ts';
import { builtinRoles } from '../support/builtin-roles.ts';
import { PATIENT } from '../support/database.ts';
import { holdAgainstDescription } from '../support/description.ts';
import { send } from '../support/http.ts';
import { issuersParts } from '../support/issuers-parts.ts';

export interface StandOptions {
  readonly login?: Partial<LoginSettings>;
  readonly origins?: readonly string[];
  /** Default: this machine. */
  readonly trustedProxies?: readonly string[];
  /** Put between the use cases and the real passwords. */
  readonly passwords?: (real: PasswordVerifier) => PasswordVerifier;
  readonly maxWaitingPasswords?: number;
  /** Several servers may share one. */
  readonly directory?: DirectoryService;
  /** Put between the use cases and the real access tokens. */
  readonly tokens?: (real: AccessTokenParts) => AccessTokenParts;
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** Members of the JSON answer; empty when it has none. */
  readonly json: Readonly<Record<string, unknown>>;
}

type Headers = Readonly<Record<string, string>>;

export interface Stand {
  readonly url: string;
  readonly db: Database;
  readonly parts: AuthParts;
  readonly attempts: LoginAttemptLimiter;
  post(path: string, body?: unknown, headers?: Headers): Promise<Reply>;
  put(path: string, body: unknown, headers?: Headers): Promise<Reply>;
  get(path: string, headers?: Headers): Promise<Reply>;
  delete(path: string, headers?: Headers): Promise<Reply>;
  close(): Promise<void>;
}

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
export const SECRET_KEY = 'a secret key of tests that is long enough';

/** The header that sets the address of the client. */
export function fromAddress(address: string): Headers {
  return { 'x-forwarded-for': address };
}

export function bearer(reply: Reply): Headers {
  return { authorization: `Bearer ${tokenOf(reply, 'access_token')}` };
}

export function refreshTokenOf(reply: Reply): string {
  return tokenOf(reply, 'refresh_token');
}

function tokenOf({ status, text, json }: Reply, name: string): string {
  const token = json[name];
  if (typeof token !== 'string') throw new Error(`no ${name} in ${status} ${text}`);
  return token;
}

let shared: Promise<PasswordVerifier> | undefined;

export async function makePasswords(): Promise<PasswordVerifier> {
  shared ??= Passwords.start({ maxRunning: 2 });
  return await shared;
}

export async function startStand(databaseUrl: string, options: StandOptions = {}): Promise<Stand> {
  const db = openDatabase({ url: databaseUrl, ...PATIENT });
  const keys = new SigningKeys({
    store: signingKeyStore(db),
    secretKey: SECRET_KEY,
    times: rotationTimes(60 * MINUTE_MS),
    clock: Date.now,
    monotonicMs: () => performance.now(),
    onFault: () => undefined,
  });
  await keys.start();
  const tokens = new AccessTokens({
    keys,
    issuer: 'postern-test',
    audience: 'platform',
    ttlSeconds: 3600,
    clock: Date.now,
  });
  const { maxWaitingPasswords: maxWaiting } = options;
  const real = maxWaiting === undefined ? await makePasswords() : await Passwords.start({ maxRunning: 2, maxWaiting });
  const listeners: ChangeListener[] = [keys];
  // The feed does not poll during a test, so every immediate effect comes from the server itself.
  const feed = new ChangeFeed({ db, listeners, notifications: false, pollIntervalMs: MINUTE_MS });
  const live = new CredentialCache({
    builtinRoles,
    source: new PostgresCacheLoader(db),
    verifier: tokens,
    issuers: issuersParts,
    feed,
    maxCredentials: 1000,
    maxStalenessMs: 300_000,
    monotonicMs: () => performance.now(),
  });
  listeners.push(live);
  await feed.start();
  const parts = {
    db,
    builtinRoles,
    feed,
    flush: () => live.forget(),
    now: Date.now,
    random: (size: number) => randomBytes(size),
    passwords: options.passwords?.(real) ?? real,
    tokens: options.tokens?.(tokens) ?? tokens,
    secretKey: SECRET_KEY,
    login: {
      refreshIdleMs: 7 * DAY_MS,
      refreshMs: 30 * DAY_MS,
      failuresPerAccount: 10,
      totalAccountFailures: 100,
      failuresPerAddress: 100,
      ...options.login,
    },
    directory: options.directory,
  };
  const attempts = new LoginAttemptLimiter();
  const routes = [
    ...authEndpoints({ ...parts, origins: options.origins, resolver: live }, attempts),
    ...userEndpoints({ ...parts, attempts }),
    ...keySetEndpoints(tokens),
  ];
  const check = holdAgainstDescription(routes);
  const http = createHttp(
    {
      resolver: live,
      now: Date.now,
      random: parts.random,
      trusted: trustProxies(options.trustedProxies ?? ['127.0.0.1']),
    },
    routes,
  );
  const url = await http.listen({ host: '127.0.0.1', port: 0 });

  const ask = async (method: string, path: string, body: unknown, headers: Headers): Promise<Reply> => {
    const text = body === undefined ? '' : JSON.stringify(body);
    const type: Headers = body === undefined ? {} : { 'content-type': 'application/json' };
    const answer = await send(url, { method, path, headers: { ...type, ...headers }, body: text });
    check(method, path, answer);
    const value: unknown = /json/.test(answer.headers['content-type'] ?? '') ? JSON.parse(answer.body) : {};
    const json = typeof value === 'object' && value !== null ? { ...value } : {};
    return { status: answer.status, headers: answer.headers, text: answer.body, json };
  };
  return {
    url,
    db,
    parts,
    attempts,
    post: (path, body, headers = {}) => ask('POST', path, body, headers),
    put: (path, body, headers = {}) => ask('PUT', path, body, headers),
    get: (path, headers = {}) => ask('GET', path, undefined, headers),
    delete: (path, headers = {}) => ask('DELETE', path, undefined, headers),
    async close() {
      await http.close();
      keys.close();
      await feed.stop();
      await db.close();
    },
  };
}
