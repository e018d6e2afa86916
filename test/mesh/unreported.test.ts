/** A gateway whose access log does not reach Postern, before a running server. */

import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startUpstream, type Upstream } from '../../src/demo/upstream.ts';
import { ADMIN, login, makeKey, SECRET_KEY } from '../server/support/client.ts';
import { eventually } from '../server/support/eventually.ts';
import { logLines, metric, openStand, readiness, type Server, type Stand } from '../server/support/postern.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { type Edge, startConfig } from '../support/envoy.ts';
import { send } from '../support/http.ts';
import { envoyGatewayBootstrap } from './support/envoy-gateway.ts';
import { envoyGatewayManifests } from './support/profiles.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let stand: Stand;
let database: FreshDatabase;
let upstream: Upstream;
let server: Server;
let silent: Edge;
let reporting: Edge;
let key: string;

beforeAll(async () => {
  [stand, database, upstream] = await Promise.all([openStand(), freshDatabase(), startUpstream('127.0.0.1', 0)]);
  server = await stand.serve({
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
    POSTERN_LIMITS_RESERVATION_TTL: '1s',
  });
  key = (await makeKey(server.http, await login(server.http), { scopes: ['chat:*'] })).key;
  const parts = { grpc: server.grpc, http: server.http, upstream: `127.0.0.1:${upstream.port}` };
  const manifests = envoyGatewayManifests();
  silent = await startConfig(envoyGatewayBootstrap({ ...manifests, envoyProxy: {} }, parts));
  reporting = await startConfig(envoyGatewayBootstrap(manifests, parts));
});

afterAll(async () => {
  await Promise.all([silent?.stop(), reporting?.stop()]);
  await upstream?.close();
  await stand?.close();
  await database?.close();
});

async function chat(edge: Edge): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] });
  return (await send(edge.url, { method: 'POST', path: '/v1/chat/completions', headers, body })).status;
}

const warnings = async (): Promise<readonly string[]> => (await readiness(server.admin)).warnings;

test('a server reports by log, metric and /readyz that no proxy reports finished requests, stays ready, and ends the warning at the first report', async () => {
  for (let i = 0; i < 15; i++) expect(await chat(silent)).toBe(200);
  await eventually('the missing ends are a warning', async () =>
    (await warnings()).some((text) => text.startsWith('metering: no proxy reports')),
  );
  expect((await readiness(server.admin)).status).toBe(200);
  expect(await metric(server.admin, 'postern_metering_unreported')).toBeGreaterThanOrEqual(10);
  const line = logLines(server.stdout()).find(({ msg }) => String(msg).startsWith('no proxy reports the end of'));
  expect(line).toMatchObject({ level: expect.anything(), part: 'limits', requests: expect.any(Number) });

  expect(await chat(reporting)).toBe(200);
  await eventually('the warning is gone', async () => (await warnings()).length === 0);
  expect(await metric(server.admin, 'postern_metering_unreported')).toBe(0);
});
