/** The bodies of requests without a credential, through a real Envoy: no decision depends on them. */

import { connect } from 'node:http2';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { CheckInput } from '../../src/decision/model.ts';
import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { startExtAuthz } from '../../src/extauthz/server.ts';
import { builtinRoutes, type LittleWorld, littleWorld } from '../extauthz/support/little-world.ts';
import { type Edge, startEdge } from '../support/envoy.ts';
import { type Answer, send, startServer } from '../support/http.ts';

const CHAT = '/v1/chat/completions';
const INSPECTED = [CHAT, '/v1/responses', '/v1/rag/query', '/v1/fine_tuning/jobs'];
const BODY = JSON.stringify({ model: 'llama-3-70b', messages: [{ role: 'user', content: 'x'.repeat(100_000) }] });

let edge: Edge;
let world: LittleWorld;
/** The path of each check, and the bytes of its body. */
let checks: (readonly [path: string, bytes: number])[] = [];
let upstreamHeaders: Readonly<Record<string, unknown>>[] = [];
const running = new AsyncDisposableStack();

beforeAll(async () => {
  world = littleWorld({});
  const gate = createCheckHandler({
    routes: builtinRoutes(),
    resolver: world.resolver,
    observer: { observe: ({ input }) => void (input !== undefined && checks.push(seen(input))) },
    trustedHops: 0,
    forwardCredential: false,
  });
  const server = await startExtAuthz(gate, { listen: '127.0.0.1:0' });
  running.defer(() => server.drain(1000));
  server.setReady(true);
  const upstream = await startServer((incoming, outgoing) => {
    upstreamHeaders.push(incoming.headers);
    incoming.resume().on('end', () => outgoing.end('{}'));
  });
  running.defer(() => upstream.close());
  edge = await startEdge({ grpc: server.address, http: upstream.address, upstream: upstream.address });
  running.defer(() => edge.stop());
});

const seen = ({ path, body }: CheckInput): readonly [string, number] => [path, body.length];

afterAll(() => running.disposeAsync());

beforeEach(() => {
  checks = [];
  upstreamHeaders = [];
});

function post(path: string, headers: Record<string, string>, body = BODY): Promise<Answer> {
  return send(edge.url, { method: 'POST', path, headers: { 'content-type': 'application/json', ...headers }, body });
}

describe('Envoy', () => {
  it.each(INSPECTED)('sends no body of a request without a credential to %s, which is 401', async (path) => {
    const { status, body } = await post(path, {});
    expect([status, JSON.parse(body).code]).toEqual([401, 'missing_credential']);
    expect(checks).toEqual([[path, 0]]);
  });

  it('does not wait for the body of a request without a credential', async () => {
    const session = connect(edge.url);
    const stream = session.request({ ':method': 'POST', ':path': CHAT, 'content-type': 'application/json' });
    stream.on('error', () => undefined);
    stream.write('{');
    const status = await new Promise((resolve) => stream.on('response', (answer) => resolve(answer[':status'])));
    session.destroy();
    expect(status).toBe(401);
  });

  it.each([
    ['authorization', (key: string) => `Bearer ${key}`],
    ['x-api-key', (key: string) => key],
    ['api-key', (key: string) => key],
  ])('sends the body of a request with %s, and the upstream gets the request without it', async (name, valueFor) => {
    expect((await post(CHAT, { [name]: valueFor(world.ownedKey) })).status).toBe(200);
    expect(checks).toEqual([[CHAT, BODY.length]]);
    expect(upstreamHeaders).toHaveLength(1);
    expect(upstreamHeaders[0]).not.toHaveProperty(name);
    expect(upstreamHeaders[0]).toHaveProperty('x-postern-subject');
  });

  it('sends the body of a request with a credential that is empty or wrong', async () => {
    for (const value of ['', 'Bearer x', 'x']) {
      checks = [];
      expect((await post(CHAT, { authorization: value })).status).toBe(401);
      expect(checks).toEqual([[CHAT, BODY.length]]);
    }
  });
});
