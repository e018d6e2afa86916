/** The calls of a user and of Envoy to a running server: log in, manage, request a decision. */

import { connectTo, type TestClient } from '../../extauthz/support/client.ts';
import { readAnswer } from '../../extauthz/support/definition.ts';
import { checkRequest, type RequestSpec } from '../../extauthz/support/requests.ts';
import type { Answer } from '../../support/http.ts';
import { send } from '../../support/http.ts';

export const ADMIN = { email: 'admin@localhost', password: 'the administrator of a test' } as const;
export const SECRET_KEY = 'a secret key that only the tests of this project have';

export interface Reply {
  readonly status: number;
  readonly headers: Answer['headers'];
  /** The JSON object; empty when there was none. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Call {
  readonly token?: string | undefined;
  readonly tenant?: string | undefined;
  readonly body?: object | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** @param http `host:port` */
export async function call(
  http: string,
  method: string,
  path: string,
  { token, tenant, body, headers }: Call = {},
): Promise<Reply> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const answer = await send(`http://${http}`, {
    method,
    path,
    headers: {
      ...headers,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(tenant === undefined ? {} : { 'x-tenant-id': tenant }),
      ...(text === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
    },
    ...(text === undefined ? {} : { body: text }),
  });
  return { status: answer.status, headers: answer.headers, body: answer.body === '' ? {} : JSON.parse(answer.body) };
}

/** The same, for what has to succeed. */
export async function done(http: string, method: string, path: string, options: Call = {}): Promise<Reply> {
  const reply = await call(http, method, path, options);
  if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`);
  return reply;
}

export interface Person {
  readonly email: string;
  readonly password: string;
}

export function tryLogin(http: string, { email, password }: Person): Promise<Reply> {
  return call(http, 'POST', '/v1/auth/login', { body: { email, password } });
}

/** Logs in; gives the access token. */
export async function login(http: string, { email, password }: Person = ADMIN): Promise<string> {
  const { body } = await done(http, 'POST', '/v1/auth/login', { body: { email, password } });
  return String(body['access_token']);
}

export interface MadeKey {
  readonly id: string;
  /** The text that a client sends. */
  readonly key: string;
}

export interface KeySpec {
  readonly scopes?: readonly string[];
  readonly owner?: string | undefined;
  readonly tenant?: string | undefined;
}

export async function makeKey(http: string, token: string, spec: KeySpec = {}): Promise<MadeKey> {
  const { scopes = ['chat:read'], owner, tenant } = spec;
  const { body } = await done(http, 'POST', '/v1/iam/api-keys', {
    token,
    tenant,
    body: {
      description: 'made by a test',
      scopes,
      expires_in_days: 1,
      ...(owner === undefined ? {} : { user_id: owner }),
    },
  });
  return { id: String(body['id']), key: String(body['key']) };
}

export interface MadeUser extends Person {
  readonly id: string;
}

let people = 0;

/** A user with a password; default tenant: `default`. */
export async function makeUser(
  http: string,
  token: string,
  { roles = ['developer'], tenant }: { readonly roles?: readonly string[]; readonly tenant?: string | undefined } = {},
): Promise<MadeUser> {
  const person = { email: `person-${process.pid}-${people++}@example.com`, password: 'a person in a system test' };
  const { body } = await done(http, 'POST', '/v1/iam/users', {
    token,
    tenant,
    body: { ...person, name: 'A person', roles },
  });
  return { ...person, id: String(body['id']) };
}

/** The outcome of a decision: `allow`, or the code of the denial. */
export interface Decider extends Omit<TestClient, 'check'> {
  decide(credential: string, request?: RequestSpec): Promise<string>;
}

/** @param grpc `host:port` or `unix:/path` */
export function decider(grpc: string): Decider {
  const client = connectTo(grpc);
  return {
    ...client,
    async decide(credential, { method = 'GET', path = '/v1/chat/history', headers = [], ...more } = {}) {
      const request = {
        method,
        path,
        headers: [['authorization', `Bearer ${credential}`] as const, ...headers],
        ...more,
      };
      const { code, kind, body } = readAnswer(await client.check(checkRequest(request)));
      return code === 0 && kind === 'ok' ? 'allow' : String(body['code']);
    },
  };
}
