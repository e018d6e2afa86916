/** An Envoy that traces, and what its clients' headers do to the connection on which all checks go. */

import type { OutgoingHttpHeaders } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { type ExtAuthzServer, startExtAuthz } from '../../src/extauthz/server.ts';
import { builtinRoutes, littleWorld } from '../extauthz/support/little-world.ts';
import { type Edge, replacing, startEdge, statOf } from '../support/envoy.ts';
import { type NamedServer, send, startNamedServer } from '../support/http.ts';

const TRACED = replacing({
  '          access_log_options:': `          tracing:
            provider:
              name: envoy.tracers.opentelemetry
              typed_config:
                "@type": type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig
                service_name: edge
                grpc_service: { envoy_grpc: { cluster_name: upstream } }
          access_log_options:`,
});
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
/** With the other headers of such a request just below what Envoy admits. */
const LARGE = 32_200;
const BODY = JSON.stringify({ model: 'llama-3-70b', messages: [], max_tokens: 10 });
const ROUNDS = 300;

const world = littleWorld();
let server: ExtAuthzServer;
let upstream: NamedServer;
let edge: Edge;

beforeAll(async () => {
  const gate = createCheckHandler({
    routes: builtinRoutes(),
    resolver: world.resolver,
    observer: { observe: () => undefined },
    trustedHops: 0,
    forwardCredential: false,
  });
  [server, upstream] = await Promise.all([
    startExtAuthz(gate, { listen: '127.0.0.1:0' }),
    startNamedServer('upstream'),
  ]);
  server.setReady(true);
  edge = await startEdge({ grpc: server.address, http: upstream.address, upstream: upstream.address }, TRACED);
});

afterAll(async () => {
  await edge?.stop();
  await server?.drain(0);
  upstream?.close();
});

function ask(headers: OutgoingHttpHeaders): ReturnType<typeof send> {
  const authorization = `Bearer ${world.ownedKey}`;
  return send(edge.url, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { authorization, 'content-type': 'application/json', traceparent: TRACEPARENT, ...headers },
    body: BODY,
  });
}

async function seenBy(headers: Readonly<Record<string, string>>): Promise<Readonly<Record<string, string>>> {
  const answer = await ask(headers);
  expect(answer.status).toBe(200);
  const echo: { readonly headers: Readonly<Record<string, string>> } = JSON.parse(answer.body);
  return echo.headers;
}

describe('an Envoy that traces', () => {
  it('checks a request whose tracestate or baggage has 32 KB, and all others on the same connection', async () => {
    const value = `a=${'v'.repeat(LARGE)}`;
    const repeated = Array.from({ length: 60 }, (_, index) => `a${index}=${'v'.repeat(500)}`);
    const kinds: readonly OutgoingHttpHeaders[] = [{ tracestate: value }, { baggage: value }, { tracestate: repeated }];
    const statuses = new Map<string, number>();
    const count = async (who: string, answer: ReturnType<typeof send>): Promise<void> => {
      const key = `${who} ${(await answer).status}`;
      statuses.set(key, (statuses.get(key) ?? 0) + 1);
    };
    for (let i = 0; i < ROUNDS; i += 10) {
      const rounds = Array.from({ length: 10 }, (_, j) => [
        count('attacker', ask(kinds[(i + j) % kinds.length] ?? {})),
        count('innocent', ask({})),
      ]);
      await Promise.all(rounds.flat());
    }
    expect(Object.fromEntries(statuses)).toEqual({ 'attacker 200': ROUNDS, 'innocent 200': ROUNDS });
    for (const stat of [
      'upstream_cx_destroy_remote_with_active_rq',
      'upstream_rq_rx_reset',
      'upstream_cx_protocol_error',
    ])
      expect([stat, await statOf(edge, `cluster.postern-grpc.${stat}`)]).toEqual([stat, 0]);
  });

  it('forwards a tracestate of up to 512 characters and a baggage of up to 8,192 bytes, and no longer one', async () => {
    const tracestate = `a=${'v'.repeat(510)}`;
    const baggage = `a=${'v'.repeat(8190)}`;
    expect(await seenBy({ tracestate, baggage })).toMatchObject({ tracestate, baggage });
    const longer = await seenBy({ tracestate: `${tracestate}v`, baggage: `${baggage}v` });
    expect([longer['tracestate'] ?? '', longer['baggage'] ?? '']).toEqual(['', '']);
  });

  it('adds neither to a request without them', async () => {
    const { baggage, tracestate = '' } = await seenBy({});
    expect([baggage, tracestate]).toEqual([undefined, '']);
  });
});
