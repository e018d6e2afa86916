/** The whole HTTP door on a port of its own, joined from the real parts over a database of its own. */

import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import type { DirectoryRoom } from '../../src/admin/auth/directory-room.ts';
import { homeOf } from '../../src/admin/home.ts';
import { parseRoute, type RouteSpec, type RouteTable } from '../../src/decision/routes.ts';
import { makeId, parseRoleName, parseTenantId, type RoleName, type TenantId, type UserId } from '../../src/domain/ids.ts';
import { apiRoutes } from '../../src/http/api-routes.ts';
import type { Resolver } from '../../src/http/authenticate.ts';
import { trustProxies } from '../../src/http/client-address.ts';
import { withDescription } from '../../src/http/description.ts';
import type { Route } from '../../src/http/route.ts';
import { createHttp } from '../../src/http/server.ts';
import { Passwords } from '../../src/identity/passwords.ts';
import { rotationTimes } from '../../src/identity/signing-key-plan.ts';
import { SigningKeys } from '../../src/identity/signing-keys.ts';
import { AccessTokens } from '../../src/identity/tokens.ts';
import { Live } from '../../src/live/live.ts';
import type { ChangeListener } from '../../src/live/ports.ts';
import { routeTable } from '../../src/server/route-table.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { ChangeFeed } from '../../src/store/feed.ts';
import { PostgresLiveSource } from '../../src/store/live-source.ts';
import { insertUser, setManualRoles } from '../../src/store/queries/users.ts';
import { signingKeyStore } from '../../src/store/signing-keys.ts';
import { freshDatabase } from '../support/database.ts';
import { holdAgainstDescription } from '../support/description.ts';
import { send } from '../support/http.ts';

export interface Call {
  /** An access token or an API key; absent: no credential. */
  readonly as?: string;
  readonly tenant?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  /** Sent as it is, instead of `body`. */
  readonly raw?: string | Uint8Array;
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The JSON answer, as loosely as tests look at it. */
  readonly json: Json;
}

export type Json = { readonly [name: string]: unknown };

export interface Person {
  readonly id: UserId;
  /** An access token of a session of its own. */
  readonly token: string;
}

export interface Harness {
  readonly url: string;
  readonly port: number;
  readonly db: Database;
  readonly databaseUrl: string;
  /** What it serves, as data. */
  readonly routes: readonly Route[];
  /** For a gate beside it. */
  readonly live: Live;
  readonly platformRoutes: RouteTable;
  readonly tokens: AccessTokens;
  /** A platform administrator of the first tenant. */
  readonly root: Person;
  api(method: string, path: string, call?: Call): Promise<Reply>;
  /** A user made behind the API's back, with a session. */
  person(tenant: string, roles: readonly string[], source?: 'local' | 'ldap'): Promise<Person>;
  /** Rows of the audit log, oldest first. */
  audit(action?: string): Promise<readonly Json[]>;
  /** Cuts the database off, and lets it be reached again. */
  cutDatabase(): Promise<void>;
  restoreDatabase(): Promise<void>;
  close(): Promise<void>;
}

export interface HarnessOptions {
  readonly trustedProxies?: readonly string[];
  readonly onUntrustedForwarding?: (peer: string) => void;
  /** Whose usage comes by events; all unless told. */
  readonly metersItself?: (tenant: string) => boolean;
  /** Of the API; milliseconds since the epoch. Default: the system's clock. */
  readonly now?: () => number;
  /** None unless told. */
  readonly directory?: DirectoryRoom;
  /** Configured routes; default: none. */
  readonly routes?: readonly RouteSpec[];
  /** Stands between the listener and the credential cache. */
  readonly resolver?: (live: Live) => Resolver;
}

const DAY_MS = 86_400_000;
const SECRET_KEY = 'a secret key of tests that is long enough';

export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  const fresh = await freshDatabase();
  const { db } = fresh;
  const { metersItself = () => true, now = Date.now } = options;
  await db.knex.raw(`insert into tenants (id, name) values ('default', 'Platform') on conflict do nothing`);
  const keys = new SigningKeys({
    store: signingKeyStore(db),
    secretKey: SECRET_KEY,
    times: rotationTimes(3_600_000),
    clock: Date.now,
    monotonicMs: () => performance.now(),
    onFault: () => undefined,
  });
  await keys.start();
  const tokens = new AccessTokens({ keys, issuer: 'postern-test', audience: 'platform', ttlSeconds: 3600, clock: Date.now });
  const passwords = await Passwords.start({ maxRunning: 2 });
  const listeners: ChangeListener[] = [keys];
  const feed = new ChangeFeed({ db, listeners });
  const live = new Live({
    source: new PostgresLiveSource(db),
    verifier: tokens,
    feed,
    maxCredentials: 1000,
    maxStalenessMs: 300_000,
    monotonicMs: () => performance.now(),
  });
  listeners.push(live);
  await feed.start();
  const table = routeTable({ routes: (options.routes ?? []).map(routeOf) });
  const random = (size: number) => randomBytes(size);
  const parts = {
    db,
    feed,
    flush: () => live.forget(),
    now,
    random,
    passwords,
    tokens,
    secretKey: SECRET_KEY,
    login: { refreshIdleMs: 7 * DAY_MS, refreshMs: 30 * DAY_MS, failuresPerAccount: 10, failuresPerAddress: 100 },
  };
  const api = apiRoutes({
    ...parts,
    origins: undefined,
    live,
    routes: table,
    metering: { windowMs: 60_000, tokenEstimate: 1024, metersItself },
    keySet: tokens,
    directory: options.directory,
  });
  const check = holdAgainstDescription(api);
  const doors = {
    live: options.resolver?.(live) ?? live,
    now,
    random,
    homeOf: (id: string) => homeOf({ db }, id),
    trusted: trustProxies(options.trustedProxies ?? []),
    onUntrustedForwarding: options.onUntrustedForwarding ?? (() => undefined),
  };
  const routes = withDescription(api);
  const http = createHttp(doors, routes);
  const url = await http.listen({ host: '127.0.0.1', port: 0 });
  const outside = openDatabase({ url: inject('databaseUrl'), poolMax: 1, queryTimeoutMs: 10_000 });
  const database = /\/(test_[0-9a-f]+)\?/.exec(fresh.url)?.[1] ?? '';

  const person = async (tenant: string, roles: readonly string[], source: 'local' | 'ldap' = 'local'): Promise<Person> => {
    const id = makeId('usr', Date.now(), randomBytes(10));
    const email = `${id}@example.test`;
    await insertUser(db.knex, { id, tenantId: tenantId(tenant), email, name: id, department: null, passwordHash: null });
    if (source === 'ldap') await db.knex.raw(`update users set source = 'ldap' where id = ?`, [id]);
    await setManualRoles(db.knex, id, roles.map(roleName));
    const sessionId = makeId('ses', Date.now(), randomBytes(10));
    await db.knex('sessions').insert({ id: sessionId, user_id: id, expires_at: new Date(Date.now() + 3_600_000) });
    const jti = randomBytes(16).toString('base64url');
    const { token } = await tokens.issue({ userId: id, sessionId, tenantId: tenantId(tenant), nowMs: Date.now(), jti });
    return { id, token };
  };

  return {
    url,
    routes,
    live,
    platformRoutes: table,
    tokens,
    port: Number(new URL(url).port),
    db,
    databaseUrl: fresh.url,
    root: await person('default', ['admin']),
    person,
    async api(method, path, call = {}) {
      const text = call.raw ?? (call.body === undefined ? '' : JSON.stringify(call.body));
      const answer = await send(url, {
        method,
        path,
        headers: {
          ...(call.raw === undefined && call.body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(call.as === undefined ? {} : { authorization: `Bearer ${call.as}` }),
          ...(call.tenant === undefined ? {} : { 'x-tenant-id': call.tenant }),
          ...call.headers,
        },
        body: text,
      });
      check(method, path, answer);
      const value: unknown =
        /[/+]json/.test(answer.headers['content-type'] ?? '') && answer.body !== '' ? JSON.parse(answer.body) : {};
      return { status: answer.status, headers: answer.headers, text: answer.body, json: asJson(value) };
    },
    async audit(action) {
      const { rows } = await db.knex.raw<{ rows: Json[] }>(
        `select * from audit_log ${action === undefined ? '' : 'where action = :action'} order by id`,
        action === undefined ? {} : { action },
      );
      return rows;
    },
    async cutDatabase() {
      await outside.knex.raw(`alter database ${database} with allow_connections false`);
      // Until each is gone: nobody may be given a connection that does not know yet that it was cut.
      await outside.knex.raw('select pg_terminate_backend(pid, 1500) from pg_stat_activity where datname = ?', [database]);
    },
    async restoreDatabase() {
      await outside.knex.raw(`alter database ${database} with allow_connections true`);
    },
    async close() {
      await http.close();
      keys.close();
      await feed.stop();
      await outside.close();
      await fresh.close();
    },
  };
}

function routeOf(spec: RouteSpec) {
  const parsed = parseRoute(spec);
  if (parsed.kind === 'error') throw new Error(parsed.message);
  return parsed.line;
}

function asJson(value: unknown): Json {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function tenantId(text: string): TenantId {
  const id = parseTenantId(text);
  if (id === undefined) throw new Error(`no tenant id: ${text}`);
  return id;
}

function roleName(text: string): RoleName {
  const name = parseRoleName(text);
  if (name === undefined) throw new Error(`no role name: ${text}`);
  return name;
}

/** A member of an answer that is known to be text. */
export function text(json: Json, name: string): string {
  const value = json[name];
  if (typeof value !== 'string') throw new Error(`no text ${name} in ${JSON.stringify(json)}`);
  return value;
}

/** The rows of a list. */
export function rows(reply: Reply): readonly Json[] {
  const data = reply.json['data'];
  if (!Array.isArray(data)) throw new Error(`no list: ${reply.status} ${reply.text}`);
  return data.map(asJson);
}

/** A member of every row of a list. */
export function column(reply: Reply, name: string): readonly unknown[] {
  return rows(reply).map((row) => row[name]);
}

/** `201`, or `403 escalation`: what a test mostly looks at. */
export function outcome(reply: Reply): string {
  const code = reply.json['code'];
  return reply.status >= 400 ? `${reply.status} ${String(code)}` : String(reply.status);
}
