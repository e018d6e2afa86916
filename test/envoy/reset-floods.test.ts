/** Streams that a client opens and resets at once: what Envoy's limits leave of them, and what other clients notice. */

import { once } from 'node:events';
import { connect, constants, createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type CheckServer, startCheckServer } from '../support/check-server.ts';
import { type Edge, startEdge, statOf } from '../support/envoy.ts';
import { type NamedServer, send, startNamedServer } from '../support/http.ts';

/**
 * Few enough that the checks of all tests that are cancelled stay below what node:http2 takes on one connection, 1,000
 * at once.
 */
const FLOODING_CONNECTIONS = 6;
/** Below Envoy's own default limit of 500. */
const STREAMS_PER_CONNECTION = 400;
/** Half of `overload.premature_reset_total_stream_count`. */
const MAX_RESETS = 50;
/** Below the streams that Envoy lets one connection have open. */
const STREAMS_PER_BATCH = 20;
const TOO_MANY_RESETS = 'http.edge.downstream_rq_too_many_premature_resets';

let checks: CheckServer;
let upstream: NamedServer;
let edge: Edge;

beforeAll(async () => {
  [checks, upstream] = await Promise.all([startCheckServer(), startNamedServer('upstream')]);
  edge = await startEdge({ grpc: checks.address, http: upstream.address, upstream: upstream.address });
});

afterAll(async () => {
  await edge.stop();
  checks.close();
  upstream.close();
});

beforeEach(() => {
  checks.seen.length = 0;
  checks.answer = () => ({ kind: 'allow' });
});

/**
 * `at once`: opened and reset in the same packets. `after the check began`: reset when Envoy has read what opens the
 * stream.
 */
type Pace = 'at once' | 'after the check began';

/** Opens and resets streams on a connection of its own until all were sent or Envoy closed it. */
async function flood(pace: Pace): Promise<'closed' | 'open'> {
  const session = connect(edge.url);
  session.on('error', () => undefined);
  session.setMaxListeners(0);
  await once(session, 'connect');
  const answersPing = (): Promise<boolean> =>
    new Promise((resolve) => {
      session.once('close', () => resolve(false));
      if (session.destroyed) resolve(false);
      else session.ping((error) => resolve(error === null));
    });
  let isOpen = true;
  for (let opened = 0; isOpen && opened < STREAMS_PER_CONNECTION; opened += STREAMS_PER_BATCH) {
    // After Envoy's GOAWAY a request would throw.
    if (session.closed || session.destroyed) return 'closed';
    const streams = Array.from({ length: STREAMS_PER_BATCH }, () => session.request({ ':path': '/v1/models' }));
    for (const stream of streams) stream.on('error', () => undefined);
    if (pace === 'after the check began') isOpen = await answersPing();
    for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL);
    isOpen &&= await answersPing();
  }
  session.destroy();
  return isOpen ? 'open' : 'closed';
}

/** Requests of another client, one after the other, until `over` resolves. */
async function statusesUntil(over: Promise<unknown>): Promise<number[]> {
  let isOver = false;
  void over.then(() => {
    isOver = true;
  });
  const statuses: number[] = [];
  while (!isOver) statuses.push((await send(edge.url, { path: '/v1/agents' })).status);
  return statuses;
}

describe('Envoy', () => {
  it.each<Pace>(['at once', 'after the check began'])(
    'closes connections that reset their streams %s, and serves the other clients',
    async (pace) => {
      const closedBefore = await statOf(edge, TOO_MANY_RESETS);
      const floods = Promise.all(Array.from({ length: FLOODING_CONNECTIONS }, () => flood(pace)));
      const statuses = await statusesUntil(floods);
      expect(new Set(statuses)).toEqual(new Set([200]));
      expect(new Set(await floods)).toEqual(new Set(['closed']));
      expect((await statOf(edge, TOO_MANY_RESETS)) - closedBefore).toBe(FLOODING_CONNECTIONS);
      const attacks = checks.seen.filter(({ path }) => path === '/v1/models').length;
      expect(attacks).toBeLessThanOrEqual(FLOODING_CONNECTIONS * (MAX_RESETS + STREAMS_PER_BATCH));
    },
    30_000,
  );

  it('asks its only server again as soon as the server answers, however many connections broke before', async () => {
    const server = await startBreakingServer();
    const own = await startEdge({ grpc: server.address, http: upstream.address, upstream: upstream.address });
    try {
      for (let i = 0; i < 30; i++) expect((await send(own.url, { path: '/v1/models' })).status).toBe(503);
      server.repair();
      expect((await send(own.url, { path: '/v1/models' })).status).toBe(200);
    } finally {
      await own.stop();
      server.close();
    }
  });
});

/** An empty CheckResponse allows; a HealthCheckResponse of 1 is SERVING. Both behind a gRPC message's prefix. */
const ALLOW = Buffer.from([0, 0, 0, 0, 0]);
const SERVING = Buffer.from([0, 0, 0, 0, 2, 0x08, 1]);

interface BreakingServer {
  readonly address: string;
  /** From now on it answers checks. */
  repair(): void;
  close(): void;
}

/**
 * A gRPC server that is healthy and ends the connection of each check, as one with a limit on resets does, until it is
 * repaired.
 */
async function startBreakingServer(): Promise<BreakingServer> {
  let isBroken = true;
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', () => undefined);
    session.once('close', () => sessions.delete(session));
  });
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => undefined);
    stream.resume();
    const isHealthCheck = headers[':path'] === '/grpc.health.v1.Health/Check';
    if (isBroken && !isHealthCheck) return stream.session?.destroy();
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    return stream.end(isHealthCheck ? SERVING : ALLOW);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  return {
    address: `127.0.0.1:${address.port}`,
    repair() {
      isBroken = false;
    },
    close() {
      server.close();
      for (const session of sessions) session.destroy();
    },
  };
}
