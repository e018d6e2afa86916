/**
 * Typed calls of Postern's API, for Node and browsers, on `fetch` and other interfaces of the web platform.
 *
 * Each call takes a token of the session and sends its request, again after a failure if that is safe, and another time
 * with a new token if the server refuses the old one.
 */

import { type AnyOptions, bearing, dataOf, isStale, outgoing } from './call.ts';
import { exchange, received } from './exchange.ts';
import { localLock, sharedLock } from './lock.ts';
import type { Arguments, CallOptions, Data, ListPath, Method, Operation, PathOf, Reply, Row } from './operations.ts';
import { type ClientOptions, readSettings, type Settings } from './options.ts';
import { type ListPage, rowsOf } from './pages.ts';
import { type Resources, resourcesOf } from './resources.ts';
import { makeSession, type Session } from './session.ts';
import { isToken, tokenSource } from './tokens.ts';

/** An email address and a password, or the username and the password of a directory. */
export type Credentials =
  | { readonly email: string; readonly password: string }
  | { readonly auth_type: 'ldap'; readonly username: string; readonly password: string };

type Aborting = Pick<CallOptions, 'signal'>;

/** Each rejects with ProblemError, ConnectionError, UnexpectedAnswerError, or the reason of its signal. */
export interface Calls {
  /** Resolves with the body of the answer. */
  request<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    ...options: Arguments<Operation<M, P>>
  ): Promise<Data<Operation<M, P>>>;
  /** Resolves with the body of the answer, its status and some of its headers. */
  send<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    ...options: Arguments<Operation<M, P>>
  ): Promise<Reply<Operation<M, P>>>;
  /**
   * Resolves with a 2xx answer whose body has not been read. `accept` chooses one of the operation's media types.
   */
  stream<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    ...options: Arguments<Operation<M, P>, CallOptions & { readonly accept?: string }>
  ): Promise<Response>;
  /** Returns all rows of a list, page by page. `query.limit` is the size of a page. */
  pages<P extends ListPath>(
    path: P,
    ...options: Arguments<Operation<'GET', P>>
  ): AsyncGenerator<Row<P>, void, undefined>;
}

export interface Client extends Calls, Resources {
  login(credentials: Credentials, options?: Aborting): Promise<void>;
  /**
   * Forgets the tokens at once, also if the call fails. Resolves with the address at which a browser also ends its
   * session at the provider that it logged in at; undefined: there is none.
   */
  logout(options?: Aborting): Promise<string | undefined>;
  /** Continues the session of a cookie or a storage. Resolves with whether there is one. */
  resume(options?: Aborting): Promise<boolean>;
  /** Returns a client with the same session or key that acts in another tenant. */
  inTenant(tenant: string): Client;
}

/** @throws TypeError for options that cannot work */
export function createClient(options: ClientOptions = {}): Client {
  const settings = readSettings(options);
  const session = options.apiKey === undefined ? ownSession(settings, options) : keySession(options.apiKey);
  return clientOf(settings, session, options.tenant);
}

function ownSession(settings: Settings, { session, storage, onSessionEnd }: ClientOptions): Session {
  const cookie = session === 'cookie';
  return makeSession({
    source: tokenSource({ ...settings, cookie }),
    cookie,
    storage,
    lock: cookie || storage !== undefined ? sharedLock(`postern ${settings.baseUrl}`) : localLock(),
    now: settings.timing.now,
    onEnd: onSessionEnd ?? (() => undefined),
  });
}

/** The credential of a client with an API key, which is never renewed. */
function keySession(key: string): Session {
  if (!isToken(key)) throw new TypeError('The API key has characters that no key has.');
  const none = (): Promise<never> => Promise.reject(new TypeError('This client has an API key, and no session.'));
  return {
    token: () => Promise.resolve(key),
    renew: () => Promise.resolve(undefined),
    login: none,
    logout: none,
    resume: () => Promise.resolve(false),
  };
}

function clientOf(settings: Settings, session: Session, tenant: string | undefined): Client {
  async function perform<T>(
    method: string,
    path: string,
    options: AnyOptions,
    read: (response: Response) => Promise<T>,
  ) {
    const out = outgoing(settings, tenant, method, path, options);
    const token = await session.token(options.signal);
    try {
      return await exchange(settings, bearing(out, token), read);
    } catch (error) {
      const next = token !== undefined && isStale(error) ? await session.renew(token, options.signal) : undefined;
      if (next === undefined) throw error;
      return await exchange(settings, bearing(out, next), read);
    }
  }

  const calls: Calls = {
    request: async (method, path, ...rest) => dataOf(await perform(method, path, rest[0] ?? {}, received)),
    send: async (method, path, ...rest) => {
      const answer = await perform(method, path, rest[0] ?? {}, received);
      const header = (name: string): string | undefined => answer.headers.get(name) ?? undefined;
      return {
        status: answer.status,
        data: dataOf(answer),
        etag: header('etag'),
        location: header('location'),
        requestId: header('x-request-id'),
      };
    },
    stream: (method, path, ...rest) => perform(method, path, rest[0] ?? {}, (response) => Promise.resolve(response)),
    pages: <P extends ListPath>(path: P, ...rest: Arguments<Operation<'GET', P>>) => {
      const options: AnyOptions = rest[0] ?? {};
      return rowsOf(async (cursor) => {
        const query = cursor === undefined ? options.query : { ...options.query, cursor };
        return dataOf<ListPage<Row<P>>>(
          await perform('GET', path, query === undefined ? options : { ...options, query }, received),
        );
      });
    },
  };
  return {
    ...calls,
    ...resourcesOf(calls),
    login: (credentials, options) => session.login(credentials, options?.signal),
    logout: (options) => session.logout(options?.signal),
    resume: (options) => session.resume(options?.signal),
    inTenant: (other) => clientOf(settings, session, other),
  };
}
