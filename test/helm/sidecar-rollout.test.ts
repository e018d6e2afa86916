/**
 * A rollout ends a pod of the mode sidecar while requests are under way: the rendered containers, real Envoy, and the
 * kubelet's order.
 */

import { once } from 'node:events';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { type Manifest, manifestsOf } from '../../scripts/lib/tools/manifests.ts';
import { placeAddresses } from '../../src/cli/envoy-config.ts';
import { done, login } from '../server/support/client.ts';
import { eventually } from '../server/support/eventually.ts';
import { isReady, openStand, type Running, type Stand } from '../server/support/postern.ts';
import { runCommand } from '../support/command.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { type Edge, startConfig } from '../support/envoy.ts';
import { type Answer, type NamedServer, send, startServer } from '../support/http.ts';
import { endPod, freeAddresses, startContainer } from './containers.ts';
import { containersOf, listAt, only, podSpecOf, textAt } from './objects.ts';
import { render } from './support.ts';

/**
 * `npm run test:deploy -- rolling` sets 45, with the chart's own times. Otherwise a pod's end is as short as the
 * mechanism allows.
 */
const LONG_ANSWER_S = Number(process.env['POSTERN_TEST_ANSWER_SECONDS'] ?? 0);
const ANSWER_MS = LONG_ANSWER_S > 0 ? LONG_ANSWER_S * 1_000 : 4_000;
const TIMES = LONG_ANSWER_S > 0 ? [] : ['--set', 'preStopSeconds=1'];
/** Six seconds for requests: the gate keeps ten of the grace period. */
const SHORT_GRACE = ['--set', 'preStopSeconds=1', '--set', 'terminationGracePeriodSeconds=16'];
const START_LIMIT_MS = 90_000;
const EVENT_MS = 100;
const USAGE = { prompt_tokens: 7, completion_tokens: 35, total_tokens: 42 };

vi.setConfig({ testTimeout: 120_000 + ANSWER_MS, hookTimeout: 300_000 });

let stand: Stand;
let database: FreshDatabase;
let upstream: NamedServer;
let api: string;
let token: string;
/** Bootstrap makes the chart mount the administrator's password. */
const BOOTSTRAP = ['--set', 'bootstrap.existingSecret.name=administrator'];

beforeAll(async () => {
  [stand, database, upstream] = [await openStand(), await freshDatabase(), await startServer(answerSlowly)];
  const manifests = manifestsOf(await render('sidecar', ...BOOTSTRAP));
  const free = await freeAddresses();
  const pod = podSpecOf(only(manifests, 'Deployment', 'postern'));
  await startContainer({ stand, databaseUrl: database.url, manifests, pod, name: 'postern', free });
  await eventually('the API is ready', () => isReady(free.admin), START_LIMIT_MS);
  api = free.http;
  token = await login(api);
});
afterAll(async () => {
  upstream?.close();
  await stand?.close();
  await database?.close();
});

/** A stream of events for as long as an answer takes; for the model `endless`, without an end. */
function answerSlowly(incoming: IncomingMessage, outgoing: ServerResponse): void {
  let body = '';
  incoming.on('data', (chunk: Buffer) => {
    body += chunk.toString();
  });
  incoming.on('end', () => {
    if (body === '') return void outgoing.end('{}');
    const endless = body.includes('"endless"');
    const end = performance.now() + ANSWER_MS;
    outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
    const timer = setInterval(() => {
      if (endless || performance.now() < end)
        return void outgoing.write('data: {"choices":[{"index":0,"delta":{"content":"word"}}]}\n\n');
      clearInterval(timer);
      outgoing.end(`data: ${JSON.stringify({ choices: [], usage: USAGE })}\n\ndata: [DONE]\n\n`);
    }, EVENT_MS);
    outgoing.on('close', () => clearInterval(timer));
  });
}

interface Pod {
  readonly edge: Edge;
  readonly gate: Running;
  readonly drain: Running;
  /** As a rollout ends it. */
  end(): Promise<readonly string[]>;
}

async function startPod(values: readonly string[]): Promise<Pod> {
  const manifests: readonly Manifest[] = manifestsOf(await render('sidecar', ...BOOTSTRAP, ...values));
  const pod = podSpecOf(only(manifests, 'Deployment', 'postern-envoy'));
  const free = await freeAddresses();
  const gate = await startContainer({ stand, databaseUrl: database.url, manifests, pod, name: 'gate', free });
  await eventually('the gate is ready', () => isReady(free.admin), START_LIMIT_MS);
  const config = textAt(only(manifests, 'ConfigMap', 'postern-envoy'), 'data', 'envoy.yaml');
  const grpc = `unix:${stand.folder}/gate.sock`;
  const places = { edge: '127.0.0.1:0', 'postern-grpc': grpc, 'postern-http': api, upstream: upstream.address };
  const edge = await startConfig(placeAddresses(config, { admin: '127.0.0.1:0', places }));
  onTestFinished(() => edge.stop());
  // The first check of a gate on a busy machine can take longer than Envoy waits.
  await eventually('the platform answers', async () => (await listModels(edge)).status === 200);
  const args = listAt(
    containersOf(pod).find((one) => textAt(one, 'name') === 'drain'),
    'args',
  );
  const drain = stand.start(args.map((arg) => String(arg).replace('127.0.0.1:9901', new URL(edge.adminUrl).host)));
  await eventually('a signal finds the drain', async () => drain.stdout().includes('SIGTERM'));
  const processes = new Map<string, { stop(): Promise<unknown> }>(Object.entries({ envoy: edge, gate, drain }));
  return { edge, gate, drain, end: () => endPod(pod, processes) };
}

function listModels(edge: Edge): Promise<Answer> {
  return send(edge.url, { path: '/v1/models', headers: { authorization: `Bearer ${token}` } });
}

/** Begins a stream; resolves when its first event is there. */
async function begin(edge: Edge, model: string): Promise<{ readonly rest: Promise<string> }> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const body = {
    model,
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: 'user', content: 'Hello' }],
  };
  const outgoing = request(edge.url, { path: '/v1/chat/completions', method: 'POST', headers, agent: false });
  outgoing.end(JSON.stringify(body));
  const [incoming]: IncomingMessage[] = await once(outgoing, 'response');
  if (incoming?.statusCode !== 200) throw new Error(`the response has the status ${incoming?.statusCode}`);
  let text = '';
  const first = once(incoming, 'data');
  const rest = new Promise<string>((resolve) => {
    incoming.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    incoming.on('error', (error) => resolve(`${text}\ncut: ${error.message}`));
    incoming.on('end', () => resolve(text));
  });
  await first;
  return { rest };
}

async function bookedTokens(model: string): Promise<unknown> {
  const { body } = await done(api, 'GET', '/v1/iam/usage?group_by=model', { token });
  return listAt(body, 'data').find((row) => textAt(row, 'model') === model);
}

it('a stream that is longer than preStopSeconds ends by itself and is booked, and new requests are answered during it', async () => {
  const pod = await startPod(TIMES);
  const { rest } = await begin(pod.edge, 'patient');
  const ended = pod.end();
  const answer = await eventually('Envoy has its clients open other connections', async () => {
    const one = await listModels(pod.edge);
    return one.headers.connection === 'close' && one;
  });
  expect(answer.status).toBe(200);
  expect(await rest).toMatch(/data: \[DONE\]\n\n$/);
  expect(await ended).toEqual(['drain', 'envoy', 'gate']);
  expect([(await pod.drain.finished).code, (await pod.gate.finished).code]).toEqual([0, 0]);
  await eventually('the stream is booked', async () => JSON.stringify(await bookedTokens('patient'))?.includes('42'));
});

it('a stream that does not end is closed while the gate still has its part of the grace period', async () => {
  const pod = await startPod(SHORT_GRACE);
  const { rest } = await begin(pod.edge, 'endless');
  expect(await pod.end()).toEqual(['drain', 'envoy', 'gate']);
  expect(await rest).toMatch(/cut: aborted$/);
  const { code, stderr } = await pod.drain.finished;
  expect([code, stderr]).toEqual([1, 'Envoy closes the requests that have not ended after 6 s: 1.\n']);
  expect((await pod.gate.finished).code).toBe(0);
});

it.each([
  ['does not answer', undefined],
  ['answers without the number of requests', 200],
  ['answers with an error', 500],
])('an Envoy whose admin interface %s keeps its requests for as long as the limit says', async (_case, status) => {
  let admin = (await freeAddresses()).admin;
  if (status !== undefined) {
    const server = await startServer((_incoming, outgoing) => outgoing.writeHead(status).end(''));
    onTestFinished(() => server.close());
    admin = server.address;
  }
  const drain = stand.start(['envoy', 'drain', '--admin', admin, '--notice', '1s', '--limit', '2s']);
  await eventually('a signal finds the drain', async () => drain.stdout().includes('SIGTERM'));
  const { code, stderr } = await drain.stop();
  const said = `Envoy's admin interface at http://${admin} has not said within 2 s how many requests are open.\n`;
  expect([code, stderr]).toEqual([1, said]);
});

it.each([
  [['--notice', '1s', '--limit', '2s'], '--admin: expected host:port.'],
  [['--admin', '127.0.0.1:9901', '--notice', '0', '--limit', '2s'], '--notice: expected a duration'],
  [['--admin', '127.0.0.1:9901', '--notice', '3s', '--limit', '2s'], '--limit must be at least --notice.'],
])('postern envoy drain refuses %j', async (options, refusal) => {
  const { code, stderr } = await runCommand(['envoy', 'drain', ...options], {});
  expect(code).toBe(2);
  expect(stderr).toContain(refusal);
});
