/**
 * The world of the cases in a real database, with tokens, keys, the cache and the gate over it, for any proxy in front.
 */

import { CredentialCache } from '../../src/credential-cache/credential-cache.ts';
import { buildRouteTable } from '../../src/decision/routes.ts';
import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { startExtAuthz } from '../../src/extauthz/server.ts';
import { rotationTimes } from '../../src/identity/signing-key-plan.ts';
import { SigningKeys } from '../../src/identity/signing-keys.ts';
import { AccessTokens } from '../../src/identity/tokens.ts';
import { PostgresCacheLoader } from '../../src/store/cache-loader.ts';
import { signingKeyStore } from '../../src/store/signing-keys.ts';
import { builtinRoles } from './builtin-roles.ts';
import { freshDatabase } from './database.ts';
import { type Answer, send, startNamedServer } from './http.ts';
import { issuersParts } from './issuers-parts.ts';
import { storeWorld } from './stored-world.ts';
import { bodyOf, type CaseFile, type DecisionCase, loadCases } from './world.ts';

const HOUR_MS = 3_600_000;

export interface CaseStand {
  readonly file: CaseFile;
  /** `host:port` of the gate, of an HTTP side named `postern` and of an upstream named `upstream`. */
  readonly grpc: string;
  readonly http: string;
  readonly upstream: string;
  /** Returns the value of `Authorization` for the `as` of a case. */
  authorizationOf(as: string): Promise<string>;
  /** Sends a case to a proxy, at the time of the case. Cases must be sent one after another. */
  send(url: string, one: DecisionCase): Promise<Answer>;
  close(): Promise<void>;
}

export async function startCaseStand(): Promise<CaseStand> {
  await using starting = new AsyncDisposableStack();
  const file = loadCases();
  const { defaults, world } = file;
  let nowMs = Date.parse(defaults.time);
  const database = await freshDatabase();
  starting.defer(() => database.close());
  const stored = await storeWorld(database.db.knex, world, new Date('2027-01-01T00:00:00Z'));
  const clock = (): number => nowMs;
  const monotonicMs = (): number => performance.now();
  const keys = new SigningKeys({
    store: signingKeyStore(database.db),
    secretKey: 'a secret key of tests that is long enough',
    times: rotationTimes(HOUR_MS),
    clock,
    monotonicMs,
    onFault: (error) => {
      throw error;
    },
  });
  starting.defer(() => keys.close());
  await keys.start();
  const tokens = new AccessTokens({ keys, issuer: 'urn:test', audience: 'platform', ttlSeconds: 3600, clock });
  const feed = {
    get polledAtMs() {
      return monotonicMs();
    },
    catchUp: async () => undefined,
  };
  const source = new PostgresCacheLoader(database.db);
  const live = new CredentialCache({
    builtinRoles,
    source,
    verifier: tokens,
    issuers: issuersParts,
    feed,
    maxCredentials: 1000,
    maxStalenessMs: HOUR_MS,
    monotonicMs,
  });
  const routes = buildRouteTable([]);
  if (routes.kind === 'error') throw new Error(routes.message);
  const gate = createCheckHandler({
    routes: routes.table,
    resolver: live,
    observer: { observe: () => undefined },
    // The case's client stands before the test, which is Envoy's peer.
    trustedHops: 1,
    forwardCredential: false,
    now: clock,
  });
  const server = await startExtAuthz(gate, { listen: '127.0.0.1:0' });
  starting.defer(() => server.drain(1000));
  server.setReady(true);
  const [upstream, http] = await Promise.all([startNamedServer('upstream'), startNamedServer('postern')]);
  starting.defer(() => upstream.close());
  starting.defer(() => http.close());

  async function authorizationOf(as: string): Promise<string> {
    if (as.startsWith('header:')) return as.slice(7);
    if (as.startsWith('raw:')) return `Bearer ${as.slice(4)}`;
    const key = stored.keys.get(as);
    if (key !== undefined) return `Bearer ${key}`;
    const subject = stored.users.get(as.replace('expired:', ''));
    if (subject === undefined) throw new Error(`the world has no ${as}`);
    const issuedAtMs = as.startsWith('expired:') ? nowMs - 2 * HOUR_MS : nowMs;
    const { token } = await tokens.issue({ ...subject, nowMs: issuedAtMs, jti: as });
    return `Bearer ${token}`;
  }

  async function headersOf(one: DecisionCase): Promise<Record<string, string>> {
    return {
      ...(one.as === null ? {} : { authorization: await authorizationOf(one.as) }),
      ...(one.tenant === undefined ? {} : { 'x-tenant-id': one.tenant }),
      ...(bodyOf(one) === undefined ? {} : { 'content-type': one.content_type ?? 'application/json' }),
      'x-forwarded-for': one.ip ?? defaults.ip,
      ...one.headers,
    };
  }

  const running = starting.move();
  return {
    file,
    grpc: server.address,
    http: http.address,
    upstream: upstream.address,
    authorizationOf,
    async send(url, one) {
      nowMs = Date.parse(one.time ?? defaults.time);
      const body = bodyOf(one);
      const headers = await headersOf(one);
      return send(url, { method: one.method, path: one.path, headers, ...(body === undefined ? {} : { body }) });
    },
    close: () => running.disposeAsync(),
  };
}
