/**
 * A reservation lives as long as its request: through a real Envoy, the whole server as a process and a real
 * PostgreSQL.
 */

import { once } from 'node:events';
import { type ClientRequest, request } from 'node:http';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { done, makeKey } from '../server/support/client.ts';
import { openPlatform, type Platform } from '../server/support/platform.ts';
import { metric, type Server } from '../server/support/postern.ts';
import { type Edge, replacing } from '../support/envoy.ts';
import { send } from '../support/http.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const REPORT_EVERY_MS = 500;
const TTL_MS = 6 * REPORT_EVERY_MS;
const PATIENT = { timeout: 60_000, interval: 200 };

let platform: Platform;
let server: Server;
let edge: Edge;
let key: string;

beforeAll(async () => {
  platform = await openPlatform(
    { POSTERN_LIMITS_RESERVATION_TTL: `${TTL_MS / 1000}s` },
    replacing({ 'access_log_flush_interval: 10s': `access_log_flush_interval: ${REPORT_EVERY_MS / 1000}s` }),
  );
  const { admin } = platform;
  ({ server, edge } = platform);
  const { http } = server;
  const body = { id: 'streams', name: 'streams', quotas: { monthly_tokens: 1750 } };
  await done(http, 'POST', '/v1/iam/tenants', { token: admin, body });
  ({ key } = await makeKey(http, admin, { tenant: 'streams', scopes: ['chat:*'] }));
});

afterAll(() => platform?.close());

/** The estimate of the 21 bytes of text in `chat`, names included, and its limit. */
const RESERVED = 6 + 900;
const chat = { model: 'm', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 900 };
const headers = (): Record<string, string> => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' });

async function ask(): Promise<number> {
  const path = '/v1/chat/completions';
  return (await send(edge.url, { method: 'POST', path, headers: headers(), body: JSON.stringify(chat) })).status;
}

/** Begins a stream that lasts until the client leaves it. */
async function beginStream(): Promise<ClientRequest> {
  const outgoing = request({
    host: '127.0.0.1',
    port: edge.port,
    method: 'POST',
    path: '/v1/chat/completions',
    agent: false,
    headers: { ...headers(), 'x-demo': 'hang-after=3' },
  });
  outgoing.on('error', () => undefined);
  outgoing.end(JSON.stringify({ ...chat, stream: true }));
  const [incoming] = await once(outgoing, 'response');
  expect(incoming.statusCode).toBe(200);
  incoming.on('error', () => undefined);
  await once(incoming, 'data');
  return outgoing;
}

const read = (name: string): Promise<number> => metric(server.admin, name);

it('a stream that lasts longer than a reservation keeps its own, and gives it back when its client leaves', async () => {
  const outgoing = await beginStream();
  // Envoy reported it for longer than a reservation lasts.
  const reports = (2 * TTL_MS) / REPORT_EVERY_MS;
  await expect.poll(() => read('postern_reservations_renewed_total'), PATIENT).toBeGreaterThan(reports);
  expect(await read('postern_access_log_running_total')).toBeGreaterThan(reports);
  expect(await read('postern_metering_held{kind="reserved_tokens"}')).toBe(RESERVED);
  expect(await read('postern_reservations_expired_total')).toBe(0);
  expect(await ask()).toBe(429);

  outgoing.destroy();
  await expect.poll(ask, PATIENT).toBe(200);
  expect(await read('postern_reservations_expired_total')).toBe(0);
});
