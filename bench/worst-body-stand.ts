/**
 * The API in this process, with nothing behind it: what a request costs before its first answer from the database. The
 * caller's tenant has as many rules as it may have, so that use cases which look at all of them are measured with all
 * of them.
 */

import { randomBytes } from 'node:crypto';
import type { Resolution } from '../src/credential-cache/credential-cache.ts';
import { compilePolicies, compileTenant } from '../src/decision/compile.ts';
import type { Identity, Snapshot } from '../src/decision/model.ts';
import { NO_PRICES } from '../src/decision/prices.ts';
import { buildRouteTable } from '../src/decision/routes.ts';
import { makeId, parsePolicyName, parseRoleName, parseTenantId } from '../src/domain/ids.ts';
import type { PolicyRecord } from '../src/domain/records.ts';
import { trustProxies } from '../src/http/client-address.ts';
import type { Endpoint } from '../src/http/endpoint.ts';
import { withDescription } from '../src/http/openapi/endpoint.ts';
import { createHttp } from '../src/http/server.ts';
import { apiEndpoints } from '../src/iam/api-routes.ts';
import { keyRefreshTurns } from '../src/iam/issuers/refresh-keys.ts';
import { SsoProviders } from '../src/iam/sso/provider.ts';
import { SourceRate } from '../src/iam/sso/source-rate.ts';
import { webhookTurns } from '../src/iam/webhooks/sender.ts';
import { Passwords } from '../src/identity/passwords.ts';
import { openDatabase } from '../src/store/database.ts';
import { builtinRoles } from '../test/support/builtin-roles.ts';

export interface Stand extends AsyncDisposable {
  readonly routes: readonly Endpoint[];
  /**
   * Runs one request to its answer; time that the event loop was busy, in milliseconds: no single block of it was
   * longer.
   */
  cost(request: StandRequest): Promise<number>;
}

export interface StandRequest {
  readonly route: Endpoint;
  readonly body?: string;
  /** With the question mark. */
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** JSON without spaces. */
const RULES_BYTES = 1_048_576;
const DAY_MS = 86_400_000;
/** Nothing listens there. */
const NO_DATABASE = 'postgresql://absent@127.0.0.1:1/none';

export async function openStand(): Promise<Stand> {
  const db = openDatabase({ url: NO_DATABASE, acquireTimeoutMs: 200 });
  const built = buildRouteTable([]);
  if (built.kind === 'error') throw new Error(built.message);
  const snapshot = fullSnapshot();
  const live = {
    resolve: (): Resolution => ({ identity: caller.identity, snapshot }),
    examine: (): Resolution => ({ identity: caller.identity, snapshot }),
    resolveUser: (): Resolution => ({ identity: caller.identity, snapshot }),
    resolveKey: (): Resolution => ({ identity: caller.identity, snapshot }),
  };
  const caller = { identity: identityWith('tenant-admin') };
  const tokens = {
    issuer: 'bench',
    audience: 'bench',
    lifetimeMs: DAY_MS,
    issue: async () => ({ token: 't', expiresIn: 1 }),
    verify: async () => ({ kind: 'invalid', reason: 'malformed' }) as const,
    jwks: () => ({ keys: [] }),
  };
  const parts = { now: Date.now, random: (size: number) => randomBytes(size) };
  const routes = withDescription(
    apiEndpoints({
      ...parts,
      db,
      builtinRoles,
      feed: { catchUp: async () => undefined },
      flush: () => undefined,
      passwords: await Passwords.start(),
      tokens,
      keySet: tokens,
      resolver: live,
      secretKey: 'a secret key of benchmarks that is long enough',
      login: {
        refreshIdleMs: DAY_MS,
        refreshMs: DAY_MS,
        failuresPerAccount: 10,
        totalAccountFailures: 100,
        failuresPerAddress: 100,
      },
      origins: undefined,
      live,
      routes: built.table,
      priceTable: () => NO_PRICES,
      issuers: {
        keys: { db, fetch: { allowedHosts: [] }, maxStalenessMs: DAY_MS, turns: keyRefreshTurns() },
        allowedHosts: [],
        maxStalenessMs: DAY_MS,
      },
      webhooks: {
        db,
        keys: { secretKey: 'a secret key of benchmarks that is long enough' },
        fetch: { allowedHosts: [] },
        turns: webhookTurns(),
        now: Date.now,
      },
      sso: {
        only: false,
        providers: new SsoProviders({ allowedHosts: [] }),
        users: { admit: async () => ({ kind: 'refused', reason: 'no_principal' }) },
        starts: new SourceRate(),
        rejectedLogouts: new SourceRate(),
        refreshKeys: async () => undefined,
      },
      prices: { currency: 'USD' },
      metering: { windowMs: 60_000, tokenEstimate: 1024, fileEstimate: 1000, metersItself: () => true },
    }),
  );
  const http = createHttp({ ...parts, resolver: live, trusted: trustProxies(['127.0.0.0/8', '10.0.0.0/8']) }, routes);
  await http.ready();
  const administrator = identityWith('admin');
  const tenantAdministrator = identityWith('tenant-admin');
  return {
    routes,
    async cost({ route, body, query = '', headers = {} }) {
      caller.identity = route.access === 'admin:tenants' ? administrator : tenantAdministrator;
      const url = route.path.replace(/:\w+/g, 'x') + query;
      const payload = body === undefined ? undefined : Buffer.from(body);
      const media = route.form ? 'application/x-www-form-urlencoded' : 'application/json';
      const type = body === undefined ? {} : { 'content-type': media };
      const began = performance.eventLoopUtilization();
      await http.inject({
        method: route.method,
        url,
        headers: { authorization: 'Bearer x', ...type, ...headers },
        ...(payload === undefined ? {} : { payload }),
      });
      return performance.eventLoopUtilization(began).active;
    },
    async [Symbol.asyncDispose]() {
      await http.close();
      await db.close();
    },
  };
}

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a name of the benchmark is not valid');
  return value;
}

function identityWith(role: string): Identity {
  return {
    kind: 'proved',
    principal: {
      kind: 'user',
      id: makeId('usr', 0, new Uint8Array(10)),
      tenantId: must(parseTenantId('acme')),
      roles: [must(parseRoleName(role))],
      platformAdmin: role === 'admin',
      sessionId: makeId('ses', 0, new Uint8Array(10)),
    },
  };
}

/**
 * A tenant whose policies take all the bytes that they may, each as cheap in bytes and as dear to look at as can be.
 */
function fullSnapshot(): Snapshot {
  const policies: PolicyRecord[] = [];
  for (let bytes = 0; bytes < RULES_BYTES; ) {
    const policy: PolicyRecord = {
      name: must(parsePolicyName(`p${policies.length}`)),
      effect: policies.length % 2 === 0 ? 'deny' : 'allow',
      actions: ['chat:write'],
      resources: ['models/*a*b*c*d*e*f*g*'],
      conditions: { time: { between: ['00:00', '00:01'] }, timezone: 'Europe/Berlin' },
      appliesTo: 'everyone',
      attachedRoles: [],
      enabled: true,
    };
    policies.push(policy);
    bytes += JSON.stringify(policy).length;
  }
  const tenant = {
    id: must(parseTenantId('acme')),
    status: 'active',
    settings: {},
    quotas: {},
    roles: [],
    policies,
  } as const;
  const own = compileTenant(tenant);
  return { own, effective: own, global: compilePolicies([]), builtinRoles };
}
