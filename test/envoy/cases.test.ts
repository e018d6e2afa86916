/** The decisions demanded of the world of the cases, through everything: a real Envoy, the gate, tokens and keys, the cache, a real database. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildRouteTable } from '../../src/decision/routes.ts';
import { createGate } from '../../src/extauthz/gate.ts';
import { startExtAuthz } from '../../src/extauthz/server.ts';
import { rotationTimes } from '../../src/identity/signing-key-plan.ts';
import { SigningKeys } from '../../src/identity/signing-keys.ts';
import { AccessTokens } from '../../src/identity/tokens.ts';
import { Live } from '../../src/live/live.ts';
import { PostgresLiveSource } from '../../src/store/live-source.ts';
import { signingKeyStore } from '../../src/store/signing-keys.ts';
import { freshDatabase } from '../support/database.ts';
import { type Edge, startEdge } from '../support/envoy.ts';
import { send, startNamedServer } from '../support/http.ts';
import { type StoredWorld, storeWorld } from '../support/stored-world.ts';
import { bodyOf, type DecisionCase, loadCases } from '../support/world.ts';

const { defaults, world, cases } = loadCases();
const carried = cases.filter((one) => one.only !== 'direct');
const HOUR_MS = 3_600_000;

let nowMs = Date.parse(defaults.time);
let edge: Edge;
let stored: StoredWorld;
let tokens: AccessTokens;
const running = new AsyncDisposableStack();

beforeAll(async () => {
  const database = await freshDatabase();
  running.defer(() => database.close());
  stored = await storeWorld(database.db.knex, world, new Date('2027-01-01T00:00:00Z'));
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
  running.defer(() => keys.close());
  await keys.start();
  tokens = new AccessTokens({ keys, issuer: 'urn:test', audience: 'platform', ttlSeconds: 3600, clock });
  const feed = {
    get polledAtMs() {
      return monotonicMs();
    },
    catchUp: async () => undefined,
  };
  const source = new PostgresLiveSource(database.db);
  const live = new Live({ source, verifier: tokens, feed, maxCredentials: 1000, maxStalenessMs: HOUR_MS, monotonicMs });
  const routes = buildRouteTable([]);
  if (routes.kind === 'error') throw new Error(routes.message);
  const gate = createGate({
    routes: routes.table,
    resolver: live,
    observer: { observe: () => undefined },
    // The case's client stands before the test, which is Envoy's peer.
    trustedHops: 1,
    forwardCredential: false,
    now: clock,
  });
  const server = await startExtAuthz(gate, { listen: '127.0.0.1:0' });
  running.defer(() => server.drain(1000));
  server.setReady(true);
  const [upstream, http] = await Promise.all([startNamedServer('upstream'), startNamedServer('postern')]);
  running.defer(() => upstream.close());
  running.defer(() => http.close());
  edge = await startEdge({ grpc: server.address, http: http.address, upstream: upstream.address });
  running.defer(() => edge.stop());
});

afterAll(() => running.disposeAsync());

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

describe('the decisions demanded of the world of the cases, through a real Envoy', () => {
  test.each(carried.map((one) => [one.name, one] as const))('%s', async (_, one) => {
    nowMs = Date.parse(one.time ?? defaults.time);
    const body = bodyOf(one);
    const headers = await headersOf(one);
    const answer = await send(edge.url, { method: one.method, path: one.path, headers, ...(body === undefined ? {} : { body }) });
    const said = JSON.parse(answer.body);
    expect([answer.status, said.server === 'upstream' ? 'allow' : said.code]).toEqual([one.expect.status, one.expect.code]);
  });
});
