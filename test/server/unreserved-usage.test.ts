/**
 * Usage that no reservation waits for: responses that go on after their answer, and answers of unmetered routes. Two
 * servers, real Envoys.
 */

import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { type Edge, startEdge } from '../support/envoy.ts';
import { type Answer, send, startServer } from '../support/http.ts';
import { ADMIN, done, login, makeKey, SECRET_KEY } from './support/client.ts';
import { eventually } from './support/eventually.ts';
import { type GateServer, openStand, type Server, type Stand } from './support/postern.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const QUOTA = 1000;
const USAGE = { input_tokens: 20, output_tokens: 190, total_tokens: 210 };

let stand: Stand;
let database: FreshDatabase;
let upstream: Awaited<ReturnType<typeof startServer>>;
/** Has the API. */
let server: Server;
let gate: GateServer;
/** In front of the gate, and in front of the server. */
let edges: [Edge, Edge];
let admin: string;
let key: string;
let isComplete = false;
let environment: Readonly<Record<string, string>>;

const startEnvoy = ({ grpc }: GateServer): Promise<Edge> =>
  startEdge({ grpc, http: server.http, upstream: upstream.address });

/** Stops the gate and its Envoy, and starts new ones. */
async function restartGate(): Promise<void> {
  await edges[0].stop();
  await gate.stop();
  gate = await stand.serveGate(environment);
  edges[0] = await startEnvoy(gate);
}

beforeAll(async () => {
  [stand, database] = await Promise.all([openStand(), freshDatabase()]);
  let ids = 0;
  upstream = await startServer((incoming, outgoing) => {
    incoming.resume();
    if (incoming.url?.startsWith('/v1/responses') !== true) {
      outgoing.writeHead(200, { 'content-type': 'application/json' });
      return void outgoing.end(JSON.stringify({ id: 'x', data: [], model: 'm', usage: USAGE }));
    }
    const id = incoming.method === 'POST' ? `resp_${ids++}` : incoming.url.slice('/v1/responses/'.length).split('?')[0];
    const state = isComplete ? { status: 'completed', usage: USAGE } : { status: 'queued', usage: null };
    outgoing.writeHead(200, { 'content-type': 'application/json' });
    outgoing.end(JSON.stringify({ id, object: 'response', background: true, model: 'm', output: [], ...state }));
  });
  const env = {
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
  };
  environment = env;
  [gate, server] = await Promise.all([stand.serveGate(env), stand.serve(env)]);
  edges = await Promise.all([startEnvoy(gate), startEnvoy(server)]);
  const { http } = server;
  admin = await login(http);
  const tenant = { id: 'patient', name: 'Patient', quotas: { monthly_tokens: QUOTA } };
  await done(http, 'POST', '/v1/iam/tenants', { token: admin, body: tenant });
  ({ key } = await makeKey(http, admin, { tenant: 'patient', scopes: ['chat:*'] }));
});

afterAll(async () => {
  await Promise.all((edges ?? []).map((edge) => edge.stop()));
  await stand?.close();
  upstream?.close();
  await database?.close();
});

function ask(edge: Edge, method: string, path: string, body?: object): Promise<Answer> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  return send(edge.url, {
    method,
    path,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

const total = async (): Promise<unknown> =>
  (await done(server.http, 'GET', '/v1/iam/usage', { token: admin, tenant: 'patient' })).body['total'];

it('usage that answers of images, audio and rerank report is booked, and nothing of batches', async () => {
  const { http } = server;
  await done(http, 'POST', '/v1/iam/tenants', { token: admin, body: { id: 'painter', name: 'Painter' } });
  const made = await makeKey(http, admin, {
    tenant: 'painter',
    scopes: ['images:*', 'audio:*', 'rerank:*', 'batches:*'],
  });
  const post = (path: string, type = 'application/json') =>
    send(edges[0].url, {
      method: 'POST',
      path,
      headers: { authorization: `Bearer ${made.key}`, 'content-type': type, 'accept-encoding': 'gzip' },
      body: '{"model":"m"}',
    });
  const form = 'multipart/form-data; boundary=x';
  const answers = [
    await post('/v1/batches'),
    await post('/v1/images/generations'),
    await post('/v1/images/edits', form),
    await post('/v1/audio/transcriptions', form),
    await post('/v1/rerank'),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  const booked = await eventually('all are booked', async () => {
    const { body } = await done(http, 'GET', '/v1/iam/usage', { token: admin, tenant: 'painter' });
    return Object(body['total']).requests === 4 && body['total'];
  });
  expect(booked).toMatchObject({ prompt_tokens: 80, completion_tokens: 760, total_tokens: 840, estimated_tokens: 0 });
});

it('a background response counts with its bound against the quota until its usage arrives, at another server or after a restart', async () => {
  const body = { model: 'm', input: 'Hi', background: true, max_output_tokens: 200 };
  const statuses: number[] = [];
  for (let i = 0; i < 6; i++) statuses.push((await ask(edges[0], 'POST', '/v1/responses', body)).status);
  expect(statuses).toEqual([200, 200, 200, 200, 429, 429]);
  const booked = await eventually('all are booked', async () => {
    const row: unknown = await total();
    return Object(row).requests === 4 && row;
  });
  expect(booked).toMatchObject({ estimated_tokens: Object(booked).total_tokens });
  expect(Object(booked).completion_tokens).toBe(800);

  expect((await ask(edges[1], 'GET', '/v1/responses/resp_0')).status).toBe(200);
  await restartGate();
  isComplete = true;
  for (let i = 0; i < 3; i++) {
    await ask(edges[1], 'GET', '/v1/responses/resp_0');
    await ask(edges[0], 'GET', '/v1/responses/resp_1?include=x');
  }
  await eventually('both are corrected', async () => Object(await total()).completion_tokens === 400 + 380);
  // Every settlement that was reported before this one is booked.
  await ask(edges[0], 'POST', '/v1/responses', { ...body, max_output_tokens: 1 });
  const corrected = await eventually('the last one is booked', async () => {
    const row: unknown = await total();
    return Object(row).requests === 5 && row;
  });
  const each = Number(Object(booked).total_tokens) / 4;
  expect(corrected).toMatchObject({ completion_tokens: 400 + 3 * 190, estimated_tokens: 2 * each });
});
