/**
 * Request bodies that are never completed: how long Envoy holds them, and which requests the time limits do not touch.
 */

import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type ClientRequest, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { type EditConfig, PRODUCTION_CONFIG, replacing, statOf } from '../support/envoy.ts';
import { type NamedServer, send, startServer } from '../support/http.ts';
import { type MeteredEdge, startMeteredEdge } from '../support/metered-edge.ts';

const CHAT = '/v1/chat/completions';
const INSPECTED = [CHAT, '/v1/rag/query'];
/** Below what Postern takes, so that Envoy waits for the rest. */
const HELD_BYTES = 1_000_000;
const STREAMS = 90;
/** In place of the 10 s and 30 s of the files, so that the tests are short. */
const SHORT_LIMITS = replacing({
  'idle_timeout: 10s': 'idle_timeout: 1s',
  'max_stream_duration: 30s': 'max_stream_duration: 2s',
});
/** Longer than both limits. */
const BEYOND_LIMITS_MS = 3000;

/** Less than the unfinished bodies take together. */
const HEAP_BYTES = 67_108_864;

let upstream: NamedServer;
let metered: MeteredEdge;
/** Before the upstream answers. */
let upstreamDelayMs: number;

beforeAll(async () => {
  upstream = await startServer(async (incoming, outgoing) => {
    let bytes = 0;
    for await (const chunk of incoming) bytes += chunk.length;
    await sleep(upstreamDelayMs);
    outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ bytes }));
  });
  metered = await startMeteredEdge(upstream.address, { edit: SHORT_LIMITS });
});

beforeEach(() => {
  upstreamDelayMs = 0;
});

afterAll(async () => {
  await metered.stop();
  upstream.close();
});

const headers = (): Record<string, string> => ({
  authorization: `Bearer ${metered.world.userToken}`,
  'content-type': 'application/json',
});

async function allocatedBytes(): Promise<number> {
  const answer = await fetch(`${metered.edge.adminUrl}/memory`);
  const { allocated } = (await answer.json()) as { allocated: string };
  return Number(allocated);
}

const activeRequests = (): Promise<number> => statOf(metered.edge, 'http.edge.downstream_rq_active');

/**
 * With a credential, because Envoy holds no body of a request that has none. Before the body is complete, it need not
 * be a valid one.
 */
function openStream(session: ClientHttp2Session, path: string, more: OutgoingHttpHeaders = {}): ClientHttp2Stream {
  const head = { ':method': 'POST', ':path': path, 'content-type': 'application/json', authorization: 'Bearer x' };
  const stream = session.request({ ...head, ...more });
  stream.on('error', () => undefined);
  return stream;
}

async function answerOf(stream: ClientHttp2Stream): Promise<{ status: unknown; code: unknown }> {
  const [answer] = await once(stream, 'response');
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(stream, 'end');
  return { status: answer[':status'], code: JSON.parse(Buffer.concat(chunks).toString()).code };
}

describe('Envoy', () => {
  it.each(INSPECTED)(
    'answers 408 to unfinished bodies of POST %s over HTTP/2 and frees their memory',
    async (path) => {
      const before = await allocatedBytes();
      const session = connect(metered.edge.url);
      const streams = Array.from({ length: STREAMS }, () => openStream(session, path));
      const answers = streams.map(answerOf);
      for (const stream of streams) stream.write(Buffer.alloc(HELD_BYTES, 0x20));
      await expect.poll(allocatedBytes, { timeout: 20_000 }).toBeGreaterThan(before + (STREAMS / 2) * HELD_BYTES);
      expect(await Promise.all(answers)).toEqual(streams.map(() => ({ status: 408, code: 'malformed_request' })));
      await expect.poll(activeRequests).toBe(0);
      await expect.poll(allocatedBytes).toBeLessThan(before + 10 * HELD_BYTES);
      session.destroy();
    },
    60_000,
  );

  it.each(INSPECTED)('answers 408 to a body of POST %s that arrives too slowly', async (path) => {
    const session = connect(metered.edge.url);
    // A client cannot get more time by sending what Postern's allow sets.
    const stream = openStream(session, path, { 'x-postern-subject': 'usr_1' });
    const trickle = setInterval(() => stream.write(' '), 100);
    const answer = await answerOf(stream);
    clearInterval(trickle);
    session.destroy();
    expect(answer).toEqual({ status: 408, code: 'malformed_request' });
    await expect.poll(activeRequests).toBe(0);
  });

  it('answers 408 to an unfinished body over HTTP/1.1 and closes the connection', async () => {
    const [outgoing, answered] = openRequest(CHAT);
    outgoing.write(' '.repeat(HELD_BYTES));
    const incoming = await answered;
    expect([incoming.statusCode, incoming.headers.connection]).toEqual([408, 'close']);
    incoming.resume();
    await once(outgoing, 'close');
    await expect.poll(activeRequests).toBe(0);
  });

  it.each(INSPECTED)('waits for the answer of an allowed POST %s longer than for its body', async (path) => {
    upstreamDelayMs = BEYOND_LIMITS_MS;
    const body = JSON.stringify({ model: 'm-1', collection: 'c-1' });
    const answer = await send(metered.edge.url, { method: 'POST', path, headers: headers(), body });
    expect([answer.status, JSON.parse(answer.body)]).toEqual([200, { bytes: body.length }]);
  });

  it('gives an upload that no decision reads more time than an inspected body', async () => {
    const [outgoing, answered] = openRequest('/v1/rag/collections/hr/documents');
    outgoing.write('x'.repeat(1000));
    await sleep(BEYOND_LIMITS_MS);
    outgoing.end('y');
    const incoming = await answered;
    const [chunk] = await once(incoming, 'data');
    expect([incoming.statusCode, JSON.parse(chunk.toString())]).toEqual([200, { bytes: 1001 }]);
  });
});

describe('Envoy at the limit of its heap', () => {
  it('resets the streams that hold the most, and serves a small request', async () => {
    const small = await startMeteredEdge(upstream.address, { edit: await withHeapOf(HEAP_BYTES) });
    const session = connect(small.edge.url);
    // Envoy may close the connection along with its streams.
    session.on('error', () => undefined);
    try {
      const streams = Array.from({ length: STREAMS }, () => openStream(session, CHAT));
      for (const stream of streams) stream.write(Buffer.alloc(HELD_BYTES, 0x20));
      const resets = (): Promise<number> => statOf(small.edge, 'envoy.overload_actions.reset_high_memory_stream.count');
      await expect.poll(resets, { timeout: 20_000 }).toBeGreaterThan(0);
      const authorization = `Bearer ${small.world.userToken}`;
      const ask = async (): Promise<number> => {
        const call = { method: 'POST', path: CHAT, headers: { ...headers(), authorization }, body: '{"model":"m-1"}' };
        return (await send(small.edge.url, call)).status;
      };
      await expect.poll(ask).toBe(200);
    } finally {
      session.destroy();
      await small.stop();
    }
  }, 60_000);
});

/** The overload manager of production.yaml with another heap. */
async function withHeapOf(bytes: number): Promise<EditConfig> {
  const { overload_manager } = parse(await readFile(PRODUCTION_CONFIG, 'utf8'));
  const text = stringify({ overload_manager });
  return (demo) =>
    `${demo}\n${replacing({ 'max_heap_size_bytes: 1610612736': `max_heap_size_bytes: ${bytes}` })(text)}`;
}

/** A request over HTTP/1.1 whose body the test writes. */
function openRequest(path: string): [ClientRequest, Promise<IncomingMessage>] {
  const { port } = metered.edge;
  const outgoing = request({ host: '127.0.0.1', port, path, method: 'POST', headers: headers(), agent: false });
  outgoing.on('error', () => undefined);
  return [outgoing, once(outgoing, 'response').then(([incoming]) => incoming)];
}
