/** The reports of the access log of each mesh, through a real Envoy with the configuration of its guide. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startUpstream, type Upstream } from '../../src/demo/upstream.ts';
import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import type { FinishedRequest } from '../../src/extauthz/ports.ts';
import { type ExtAuthzServer, startExtAuthz } from '../../src/extauthz/server.ts';
import { builtinRoutes, type LittleWorld, littleWorld } from '../extauthz/support/little-world.ts';
import { type Edge, startConfig } from '../support/envoy.ts';
import { send } from '../support/http.ts';
import { envoyGatewayBootstrap } from './support/envoy-gateway.ts';
import { istioBootstrap } from './support/istio.ts';
import { kgatewayBootstrap } from './support/kgateway.ts';
import { envoyGatewayManifests, istioManifests, kgatewayManifests, PATCHED, startPatched } from './support/profiles.ts';

/** Replaces Envoy AI Gateway's ext_proc, which runs after the check: writes the usage from a header of the test. */
const AI_GATEWAY = {
  name: 'envoy.filters.http.lua',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua',
    default_source_code: {
      inline_string: `
        function envoy_on_response(handle)
          local metadata = handle:streamInfo():dynamicMetadata()
          metadata:set("io.envoy.ai_gateway", "llm_input_token", 12)
          metadata:set("io.envoy.ai_gateway", "llm_output_token", 30)
          metadata:set("io.envoy.ai_gateway", "llm_total_token", 42)
          metadata:set("io.envoy.ai_gateway", "response_model", "a-model")
        end`,
    },
  },
};

const told: FinishedRequest[] = [];
const edges = new Map<string, Edge>();
let world: LittleWorld;
let upstream: Upstream;
let checks: ExtAuthzServer;
let reservations = 0;

beforeAll(async () => {
  world = littleWorld();
  upstream = await startUpstream('127.0.0.1', 0);
  const gate = createCheckHandler({
    routes: builtinRoutes(),
    resolver: world.resolver,
    limiter: {
      admit: ({ route }) => {
        const reservation = route.tokens ? String(++reservations).padStart(46, '0') : undefined;
        return { kind: 'admitted', reservation, rate: undefined };
      },
      release: () => undefined,
    },
    observer: { observe: () => undefined },
    trustedHops: 0,
    forwardCredential: false,
  });
  checks = await startExtAuthz(gate, {
    listen: '127.0.0.1:0',
    listener: { finished: (one) => void told.push(one), running: () => undefined },
  });
  checks.setReady(true);
  const address = `127.0.0.1:${upstream.port}`;
  const parts = { grpc: checks.address, http: address, upstream: address };
  const gateway = envoyGatewayBootstrap(envoyGatewayManifests(), parts);
  const withUsage: object = JSON.parse(JSON.stringify(gateway), (key, value) =>
    key === 'http_filters' ? [...value.slice(0, -1), AI_GATEWAY, ...value.slice(-1)] : value,
  );
  edges.set('Istio', await startConfig(istioBootstrap(istioManifests(), parts)));
  edges.set('Envoy Gateway', await startConfig(gateway));
  edges.set('kgateway', await startConfig(kgatewayBootstrap(kgatewayManifests(), parts)));
  edges.set('Envoy AI Gateway', await startConfig(withUsage));
  for (const profile of PATCHED) edges.set(profile, await startPatched(profile, parts));
});

afterAll(async () => {
  await Promise.all([...edges.values()].map((edge) => edge.stop()));
  await checks?.drain(1000);
  await upstream?.close();
});

let models = 0;

/** Sends one chat and returns what its access-log entry reports, with the answer. */
async function finished(profile: string): Promise<FinishedRequest & { readonly answer: string }> {
  const model = `model-${models++}`;
  const answer = await send(edges.get(profile)?.url ?? '', {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: {
      authorization: `Bearer ${world.tenantKey}`,
      'content-type': 'application/json',
      'accept-encoding': 'gzip',
    },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
  });
  expect(answer.status).toBe(200);
  await expect.poll(() => told.some((one) => one.model === model), { timeout: 10_000 }).toBe(true);
  return { ...(told.find((one) => one.model === model) ?? expect.fail('not reported')), answer: answer.body };
}

describe('the access log', () => {
  test.each(['Istio', 'Envoy Gateway', 'kgateway'])(
    'of %s reports the end of a request, whose usage is then estimated',
    async (profile) => {
      expect(await finished(profile)).toMatchObject({
        tenant: 'acme',
        status: 200,
        usage: undefined,
        upstream: 'answered',
      });
      expect((await finished(profile)).responseBytes).toBeGreaterThan(0);
    },
  );

  test.each(PATCHED)('of %s reports the usage that the answer says', async (profile) => {
    const { answer, usage } = await finished(profile);
    const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = JSON.parse(answer).usage;
    expect(total).toBeGreaterThan(0);
    expect(usage).toMatchObject({ prompt, completion, total });
  });

  test('of Envoy AI Gateway reports the usage of llmRequestCosts', async () => {
    expect(await finished('Envoy AI Gateway')).toMatchObject({
      tenant: 'acme',
      status: 200,
      usage: { prompt: 12, completion: 30, total: 42, model: 'a-model' },
    });
  });

  test('reports no request that Postern rejected', async () => {
    const before = told.length;
    const answer = await send(edges.get('Envoy Gateway')?.url ?? '', { path: '/v1/models' });
    expect(answer.status).toBe(401);
    await finished('Envoy Gateway');
    expect(told.length).toBe(before + 1);
  });
});
