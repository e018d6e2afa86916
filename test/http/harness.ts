/** The product's API on a port of its own, over a database of its own. */

import { randomBytes } from 'node:crypto';
import { Agent } from 'node:http';
import { inject, test } from 'vitest';
import type { CredentialCache } from '../../src/credential-cache/credential-cache.ts';
import { notingUses } from '../../src/credential-cache/noting.ts';
import type { CredentialResolver } from '../../src/credential-cache/resolution.ts';
import type { RouteTable } from '../../src/decision/routes.ts';
import {
  makeId,
  parseRoleName,
  parseTenantId,
  type RoleName,
  type TenantId,
  type UserId,
} from '../../src/domain/ids.ts';
import type { Endpoint } from '../../src/http/endpoint.ts';
import type { DirectoryService } from '../../src/iam/auth/directory-service.ts';
import { WriteRate } from '../../src/iam/caller/write-rate.ts';
import { insertUser, setManualRoles } from '../../src/iam/users/queries.ts';
import type { SigningKeys } from '../../src/identity/signing-keys.ts';
import type { AccessTokens } from '../../src/identity/tokens.ts';
import { wireApi } from '../../src/server/api-wiring.ts';
import { NO_LOCAL_GATES } from '../../src/server/applied.ts';
import { startCredentialCache } from '../../src/server/credential-cache.ts';
import { startRefusalAudit } from '../../src/server/refusals.ts';
import { keyUses } from '../../src/server/store-jobs.ts';
import type { Webhooks } from '../../src/server/webhooks.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { freshDatabase } from '../support/database.ts';
import { holdAgainstDescription } from '../support/description.ts';
import { send } from '../support/http.ts';
import { openWiring, type Settings, sharedPasswords } from '../support/wiring.ts';

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
  /** The endpoints that the server serves. */
  readonly routes: readonly Endpoint[];
  /** The cache, for an Envoy check handler beside the API. */
  readonly live: CredentialCache;
  readonly platformRoutes: RouteTable;
  readonly tokens: AccessTokens;
  readonly keys: SigningKeys;
  /** What sends the events of webhooks. A test runs the jobs itself. */
  readonly webhooks: Webhooks;
  /** The text of /metrics. */
  readonly metrics: () => Promise<string>;
  /** A platform administrator of the first tenant. */
  readonly root: Person;
  api(method: string, path: string, call?: Call): Promise<Reply>;
  /** A user made behind the API's back, with a session. */
  person(tenant: string, roles: readonly string[], source?: 'local' | 'ldap'): Promise<Person>;
  /** Rows of the audit log, oldest first. */
  audit(action?: string): Promise<readonly Json[]>;
  /** Cuts the database off, and restores the access. */
  cutDatabase(): Promise<void>;
  restoreDatabase(): Promise<void>;
  close(): Promise<void>;
}

/** Parts that replace the product's own. */
export interface HarnessOptions {
  /** Settings besides the usual ones of tests. */
  readonly settings?: Settings;
  /** The time of the API in milliseconds since the epoch. Default: the store's clock. */
  readonly now?: () => number;
  /** Default: the product's. */
  readonly writes?: WriteRate;
  /** Default: no directory. */
  readonly directory?: DirectoryService;
  /** Writes refused requests to the audit log, as the server does. Default: false. */
  readonly auditsRefusals?: boolean;
  readonly onUntrustedForwarding?: (peer: string) => void;
  /**
   * Makes the resolver that the listener uses in place of the credential cache. The last use of keys is then not noted.
   */
  readonly resolver?: (live: CredentialCache) => CredentialResolver;
}

const SETTINGS = { POSTERN_USAGE_SOURCE: 'events', POSTERN_ISSUER: 'postern-test' } satisfies Settings;

export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  await using starting = new AsyncDisposableStack();
  const fresh = await freshDatabase();
  starting.defer(() => fresh.close());
  const wiring = await openWiring(fresh.url, { ...SETTINGS, ...options.settings }, starting);
  const { db } = wiring.store;
  await db.knex.raw(`insert into tenants (id, name) values ('default', 'Platform') on conflict do nothing`);
  const joined = await startCredentialCache(wiring, starting);
  const services = { ...joined, now: options.now ?? joined.now };
  const { live, tokens } = services;
  const refusals = options.auditsRefusals === true ? startRefusalAudit(wiring) : undefined;
  if (refusals !== undefined) starting.defer(refusals.stop);
  const { endpoints, http, webhooks } = wireApi(wiring, {
    services,
    tokens,
    resolver: options.resolver?.(live) ?? notingUses(live, keyUses(wiring, starting)),
    passwords: await sharedPasswords(),
    gates: NO_LOCAL_GATES,
    directory: options.directory,
    writes: options.writes ?? new WriteRate(() => performance.now()),
    draining: () => false,
    onUntrustedForwarding: options.onUntrustedForwarding ?? (() => undefined),
    onRefused: refusals?.note ?? (() => undefined),
  });
  starting.defer(() => http.close());
  // The pages of the documentation are no part of the description.
  const check = holdAgainstDescription(endpoints.filter(({ path }) => !path.startsWith('/docs')));
  const url = await http.listen({ host: '127.0.0.1', port: 0 });
  const agent = new Agent({ keepAlive: true });
  starting.defer(() => agent.destroy());
  const outside = openDatabase({ url: inject('databaseUrl'), poolMax: 1, queryTimeoutMs: 10_000 });
  starting.defer(() => outside.close());
  const database = /\/(test_[0-9a-f]+)\?/.exec(fresh.url)?.[1] ?? '';

  const person = async (
    tenant: string,
    roles: readonly string[],
    source: 'local' | 'ldap' = 'local',
  ): Promise<Person> => {
    const id = makeId('usr', Date.now(), randomBytes(10));
    const email = `${id}@example.test`;
    await insertUser(db.knex, {
      id,
      tenant_id: tenantId(tenant),
      email,
      name: id,
      department: null,
      password_hash: null,
    });
    if (source === 'ldap') await db.knex.raw(`update users set source = 'ldap' where id = ?`, [id]);
    await setManualRoles(db.knex, id, roles.map(roleName));
    const sessionId = makeId('ses', Date.now(), randomBytes(10));
    await db.knex('sessions').insert({ id: sessionId, user_id: id, expires_at: new Date(Date.now() + 3_600_000) });
    const jti = randomBytes(16).toString('base64url');
    const { token } = await tokens.issue({ userId: id, sessionId, tenantId: tenantId(tenant), nowMs: Date.now(), jti });
    // Otherwise the feed would drop the user from the cache at any later time, also while a test has cut the database.
    await joined.feed.catchUp();
    return { id, token };
  };

  const root = await person('default', ['admin']);
  const running = starting.move();
  return {
    url,
    routes: endpoints,
    live,
    platformRoutes: joined.routes,
    tokens,
    keys: joined.keys,
    webhooks,
    metrics: () => wiring.telemetry.metrics.exposition(),
    port: Number(new URL(url).port),
    db,
    databaseUrl: fresh.url,
    root,
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
        agent,
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
      // Waits until each back end has ended, so that no query gets a connection that is already cut.
      await outside.knex.raw('select pg_terminate_backend(pid, 1500) from pg_stat_activity where datname = ?', [
        database,
      ]);
    },
    async restoreDatabase() {
      await outside.knex.raw(`alter database ${database} with allow_connections true`);
    },
    close: () => running.disposeAsync(),
  };
}

/**
 * Tests of the API:
 *
 * - `composition`: an API that the files of a worker share. It starts with the first file that uses it and keeps what
 *   earlier files wrote.
 * - `harness`: the same for one file, with an administrator of its own. Its `audit` shows the rows since the file
 *   began. A test takes tenants with names of their own (`unique`), and leaves nothing that applies to all tenants.
 */
export const it = test
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern which fixtures this one uses.
  .extend('composition', { scope: 'worker' }, async ({}, { onCleanup }) => {
    const harness = await startHarness();
    onCleanup(() => harness.close());
    return harness;
  })
  .extend('harness', { scope: 'file' }, async ({ composition }): Promise<Harness> => {
    const { rows: last } = await composition.db.knex.raw<{ rows: { id: string }[] }>(
      'select coalesce(max(id), 0) as id from audit_log',
    );
    const before = BigInt(last[0]?.id ?? 0);
    return {
      ...composition,
      root: await composition.person('default', ['admin']),
      audit: async (action) => (await composition.audit(action)).filter(({ id }) => BigInt(String(id)) > before),
    };
  });

/** Returns a name that no other test has, such as `acme-1f08c2`. */
export function unique(name: string): string {
  return `${name}-${randomBytes(3).toString('hex')}`;
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

/** Returns the status with the code of an error, such as `201` or `403 escalation`. */
export function outcome(reply: Reply): string {
  const code = reply.json['code'];
  return reply.status >= 400 ? `${reply.status} ${String(code)}` : String(reply.status);
}
