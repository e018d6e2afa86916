/** A route whose decision reads the body, through a real Envoy whose configuration does not send it. */

import { once } from 'node:events';
import { connect } from 'node:http2';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { buildRouteTable, parseRoute } from '../../src/decision/routes.ts';
import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { startExtAuthz } from '../../src/extauthz/server.ts';
import { CheckMeter } from '../../src/telemetry/check-meter.ts';
import { checkObserver } from '../../src/telemetry/check-observer.ts';
import { jsonLine } from '../../src/telemetry/decision-json.ts';
import { DecisionLog } from '../../src/telemetry/decision-log.ts';
import { DecisionTally } from '../../src/telemetry/decision-tally.ts';
import { type LittleWorld, littleWorld } from '../extauthz/support/little-world.ts';
import { type Edge, startEdge } from '../support/envoy.ts';
import { type Answer, send, sendRaw, startNamedServer } from '../support/http.ts';

const PATH = '/v1/summaries';
const BODY = '{"model":"llama-3-70b"}';
const FAULT = {
  outcome: 'fault',
  code: 'unavailable',
  route: `POST ${PATH}`,
  tenant: 'acme',
  setting: 'with_request_body',
};

let edge: Edge;
/** An Envoy of the same server whose configuration marks no route. */
let unmarked: Edge;
let world: LittleWorld;
let lines: Readonly<Record<string, unknown>>[] = [];
let decisions: DecisionLog;
let meter: CheckMeter;
const running = new AsyncDisposableStack();

beforeAll(async () => {
  const route = parseRoute({ method: 'POST', path: PATH, permission: 'chat:write', model: 'body' });
  if (route.kind === 'error') throw new Error(route.message);
  const routes = buildRouteTable([route.route]);
  if (routes.kind === 'error') throw new Error(routes.message);
  world = littleWorld({});
  meter = new CheckMeter();
  decisions = new DecisionLog({
    sink: {
      render: jsonLine,
      deliver: async (batch) =>
        void lines.push(
          ...batch
            .toString()
            .trimEnd()
            .split('\n')
            .map((line) => JSON.parse(line)),
        ),
    },
    monotonicMs: () => performance.now(),
  });
  const gate = createCheckHandler({
    routes: routes.table,
    resolver: world.resolver,
    observer: checkObserver(meter, new DecisionTally({ now: Date.now }), decisions, { offer: () => undefined }),
    trustedHops: 0,
    forwardCredential: false,
  });
  const server = await startExtAuthz(gate, { listen: '127.0.0.1:0' });
  running.defer(() => server.drain(1000));
  server.setReady(true);
  const upstream = await startNamedServer('upstream');
  running.defer(() => upstream.close());
  const parts = { grpc: server.address, http: upstream.address, upstream: upstream.address };
  [edge, unmarked] = await Promise.all([
    startEdge(parts),
    startEdge(parts, (text) => text.replaceAll('postern.body', 'other.body')),
  ]);
  running.defer(() => edge.stop());
  running.defer(() => unmarked.stop());
});

afterAll(() => running.disposeAsync());

beforeEach(async () => {
  await decisions.close();
  lines = [];
});

const headers = (): Record<string, string> => ({
  authorization: `Bearer ${world.ownedKey}`,
  'content-type': 'application/json',
});

function post(at: Edge, path: string, extra: Record<string, string> = {}, body: string = BODY): Promise<Answer> {
  return send(at.url, { method: 'POST', path, headers: { ...headers(), ...extra }, body });
}

/** The status and code that an HTTP/2 client gets for a request that names no length. */
async function postUnmeasured(at: Edge, path: string, body: string | undefined): Promise<unknown[]> {
  const session = connect(at.url);
  const stream = session.request({ ':method': 'POST', ':path': path, ...headers() }, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  let text = '';
  stream.setEncoding('utf8');
  stream.on('data', (piece: string) => {
    text += piece;
  });
  const [answer] = await once(stream, 'response');
  await once(stream, 'close');
  session.destroy();
  return [answer[':status'], JSON.parse(text).code];
}

const codeOf = ({ status, body }: Answer): unknown[] => [status, JSON.parse(body).code];
const FAULTY = [503, 'unavailable'];
const EMPTY = [400, 'malformed_body'];

describe('a body that Envoy did not send, of a route that reads it', () => {
  it('is a fault that the client may retry, with a log line and a counter that name the route and the setting', async () => {
    const before = meter.bodiesNotSent()[0]?.[3] ?? 0;
    const answer = await post(edge, PATH);
    expect(codeOf(answer)).toEqual(FAULTY);
    expect(answer.headers['retry-after']).toBe('1');
    await decisions.close();
    expect(lines).toMatchObject([FAULT]);
    expect(JSON.stringify(lines[0]?.['err'])).toContain(`POST ${PATH}`);
    expect(JSON.stringify(lines[0]?.['err'])).toContain('postern envoy config');
    expect(meter.bodiesNotSent()).toEqual([['POST', PATH, 'with_request_body', before + 1]]);
  });

  it('is a fault in a chunked request, and over HTTP/2 without a length', async () => {
    expect(codeOf(await post(edge, PATH, { 'transfer-encoding': 'chunked' }))).toEqual(FAULTY);
    expect(await postUnmeasured(edge, PATH, BODY)).toEqual(FAULTY);
  });

  it('is a fault through a configuration that marks no route, when its length is announced, and never an allow when it is not', async () => {
    expect(codeOf(await post(unmarked, PATH))).toEqual(FAULTY);
    expect(await postUnmeasured(unmarked, PATH, BODY)).toEqual(EMPTY);
  });

  it('is no fault before a credential proves a principal', async () => {
    expect(codeOf(await post(edge, PATH, { authorization: 'Bearer psk_x' }))).toEqual([401, 'invalid_credential']);
  });

  it('has few lines in a flood, and a number for the others', async () => {
    await Promise.all(Array.from({ length: 40 }, () => post(edge, PATH)));
    await decisions.close();
    const counted = lines.reduce((sum, line) => sum + Number(line['not_logged'] ?? 1), 0);
    expect(counted).toBe(40);
    expect(lines.length).toBeLessThan(40);
  });
});

describe('an empty body stays malformed', () => {
  const inspected = '/v1/chat/completions';

  it('when its length is 0, inspected or not', async () => {
    for (const path of [PATH, inspected]) {
      expect([path, ...codeOf(await post(edge, path, { 'content-length': '0' }, ''))]).toEqual([path, ...EMPTY]);
    }
  });

  it('in a chunked request, and over HTTP/2, on an inspected route', async () => {
    const raw = (lengths: readonly string[], body: string): Promise<string> => {
      const all = Object.entries(headers()).map(([name, value]) => `${name}: ${value}`);
      return sendRaw(
        edge.port,
        [`POST ${inspected} HTTP/1.1`, 'Host: x', 'Connection: close', ...all, ...lengths, '', body].join('\r\n'),
      );
    };
    for (const reply of [await raw(['Transfer-Encoding: chunked'], '0\r\n\r\n'), await raw([], '')]) {
      expect(reply).toMatch(/^HTTP\/1\.1 400 /);
      expect(reply).toContain('"malformed_body"');
    }
    expect(await postUnmeasured(edge, inspected, undefined)).toEqual(EMPTY);
    expect(await postUnmeasured(edge, inspected, '')).toEqual(EMPTY);
  });
});

it('a client cannot mark a body as sent', async () => {
  const marks = { 'x-envoy-auth-partial-body': 'false', 'postern.body': 'sent' };
  expect(codeOf(await post(edge, PATH, marks))).toEqual(FAULTY);
});
