/**
 * A limit of collections through everything: a real Envoy, the server as a process, PostgreSQL, and a platform that
 * keeps collections.
 */

import { once } from 'node:events';
import { createServer, type Server as HttpServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { type Edge, startEdge } from '../support/envoy.ts';
import { send } from '../support/http.ts';
import { ADMIN, done, login, makeKey, SECRET_KEY } from './support/client.ts';
import { eventually } from './support/eventually.ts';
import { openStand, type Server, type Stand } from './support/postern.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let stand: Stand;
let database: FreshDatabase;
let server: Server;
let platform: HttpServer;
let edge: Edge;
let admin: string;
/** The platform's ledger: the collections of each tenant. */
const ledger = new Map<string, Set<string>>();

function startPlatform(): HttpServer {
  return createServer(async (request, response) => {
    const tenant = String(request.headers['x-postern-tenant']);
    const collections = ledger.get(tenant) ?? new Set<string>();
    ledger.set(tenant, collections);
    const answer = (status: number): void => void response.writeHead(status).end();
    const failure = request.headers['x-fail'];
    const body = await text(request);
    if (failure !== undefined) answer(Number(failure));
    else if (request.method === 'POST') {
      const { name } = JSON.parse(body);
      answer(collections.has(name) ? 409 : 201);
      collections.add(name);
    } else {
      const name = decodeURIComponent(request.url?.split('/').at(-1) ?? '');
      const there = collections.delete(name);
      // By its own rule: it answers 404, or always the same.
      answer(there || request.headers['x-idempotent'] !== undefined ? Number(request.headers['x-status'] ?? 204) : 404);
    }
  }).listen(0, '127.0.0.1');
}

beforeAll(async () => {
  platform = startPlatform();
  [stand, database] = await Promise.all([openStand(), freshDatabase(), once(platform, 'listening')]);
  server = await stand.serve({
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
  });
  const address = platform.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  edge = await startEdge({ grpc: server.grpc, http: server.http, upstream: `127.0.0.1:${address.port}` });
  admin = await login(server.http);
});

afterAll(async () => {
  await edge?.stop();
  platform?.close();
  await stand?.close();
  await database?.close();
});

let tenants = 0;
/** A tenant with at most `max` collections, and its calls. */
async function tenant(max: number) {
  const id = `tenant-${tenants++}`;
  await done(server.http, 'POST', '/v1/iam/tenants', {
    token: admin,
    body: { id, name: id, quotas: { max_collections: max } },
  });
  const { key } = await makeKey(server.http, admin, { tenant: id, scopes: ['rag:*'] });
  const common = { authorization: `Bearer ${key}` };
  const limits = async () => {
    const { body } = await done(server.http, 'GET', `/v1/iam/tenants/${id}/limits`, { token: admin });
    return JSON.parse(JSON.stringify(body)).max_collections;
  };
  const create = async (name: string, headers: Readonly<Record<string, string>> = {}): Promise<number> => {
    const all = { ...common, ...headers, 'content-type': 'application/json' };
    const { status } = await send(edge.url, {
      method: 'POST',
      path: '/v1/rag/collections',
      headers: all,
      body: JSON.stringify({ name }),
    });
    return status;
  };
  const remove = async (name: string, headers: Readonly<Record<string, string>> = {}): Promise<number> =>
    (
      await send(edge.url, {
        method: 'DELETE',
        path: `/v1/rag/collections/${name}`,
        headers: { ...common, ...headers },
      })
    ).status;
  return {
    create,
    remove,
    /** Resolves when the count is `used`, and every request that ended before is booked. */
    async counts(used: number): Promise<void> {
      // A failed creation is reported after all requests before it.
      await create('a-marker', { 'x-fail': '500' });
      await eventually(`${used} collections of ${id}`, async () => {
        const now = await limits();
        return now.used === used && now.reserved === 0;
      });
      expect((await limits()).used).toBe(used);
    },
    ledger: () => ledger.get(id)?.size ?? 0,
  };
}

const IDEMPOTENT = { 'x-idempotent': '1' };

describe('a limit of collections', () => {
  it("is the platform's ledger, however often names are removed that do not exist", async () => {
    const { create, remove, counts, ledger } = await tenant(3);
    expect([await create('a'), await create('b'), await create('c'), await create('d')]).toEqual([201, 201, 201, 429]);
    await counts(3);
    expect([await remove('ghost'), await remove('d'), await remove('a', { 'x-fail': '500' })]).toEqual([404, 404, 500]);
    expect(await remove('a', { 'x-fail': '303' })).toBe(303);
    await counts(ledger());
    expect(await create('d')).toBe(429);
    expect([await remove('a'), await remove('a'), await remove('a/')]).toEqual([204, 404, 404]);
    await counts(2);
    expect([await create('a'), await create('d')]).toEqual([201, 429]);
    await counts(ledger());
  });

  it('is given back once for a name that a platform says it removed each time, and again after it was created again', async () => {
    const { create, remove, counts, ledger } = await tenant(3);
    for (const name of ['a', 'b', 'c']) expect(await create(name)).toBe(201);
    await counts(3);
    for (const status of ['204', '200', '202', '204']) {
      expect(await remove('a', { ...IDEMPOTENT, 'x-status': status })).toBe(Number(status));
    }
    await counts(2);
    expect(ledger()).toBe(2);
    expect([await create('d'), await create('e')]).toEqual([201, 429]);
    await counts(3);
    for (let round = 0; round < 3; round++) {
      expect(await remove('d', IDEMPOTENT)).toBe(204);
      expect(await remove('d', IDEMPOTENT)).toBe(204);
      await counts(2);
      expect(await create('d')).toBe(201);
      await counts(ledger());
    }
  });
});
