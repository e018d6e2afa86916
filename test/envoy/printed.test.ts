/** `postern envoy config`: what it prints is what a real Envoy takes, and what Postern needs. */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { agreeing } from '../../src/cli/envoy-agreement.ts';
import { placeAddresses } from '../../src/cli/envoy-config.ts';
import type { Route } from '../../src/decision/model.ts';
import { buildRouteTable, parseRoute, type RouteSpec } from '../../src/decision/routes.ts';
import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { startExtAuthz } from '../../src/extauthz/server.ts';
import { type LittleWorld, littleWorld } from '../extauthz/support/little-world.ts';
import { withEnvoyFilter } from '../mesh/support/patched.ts';
import { startCheckServer } from '../support/check-server.ts';
import { type CommandResult, runCommand } from '../support/command.ts';
import { DEMO_CONFIG, type Edge, PRODUCTION_CONFIG, startConfig, startEdge, validateConfig } from '../support/envoy.ts';
import { type Answer, send, startNamedServer } from '../support/http.ts';

const MIB = 1_048_576;

const SPECS: readonly RouteSpec[] = [
  { method: 'POST', path: '/v1/summaries', permission: 'chat:write', model: 'body' },
  { method: 'PUT', path: '/v1/notes/{note}', permission: 'rag:write', collection: 'body' },
  { method: 'POST', path: '/v1/spaces/{space+}/ask', permission: 'chat:write', model: 'body', tokens: true },
  { method: 'POST', path: `/v1/${'long-name-'.repeat(12)}/a:b/**`, permission: 'chat:write', model: 'body' },
  { method: 'POST', path: '/v1/unread', permission: 'chat:write' },
  { method: 'GET', path: '/v1/found', permission: 'chat:write', model: 'body' },
];

function lineOf(spec: RouteSpec): Route {
  const parsed = parseRoute(spec);
  if (parsed.kind === 'error') throw new Error(parsed.message);
  return parsed.route;
}

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-printed-'));
  const yaml = JSON.stringify({ routes: SPECS, inspect: { 'max-body': '16 MiB' } });
  await writeFile(join(folder, 'postern.yaml'), yaml);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function print(args: readonly string[]): Promise<CommandResult> {
  const words = args.map((word) => (word === 'postern.yaml' ? join(folder, word) : word));
  return runCommand(['envoy', 'config', ...words], {});
}

describe('postern envoy config', () => {
  it.each([
    ['demo', DEMO_CONFIG],
    ['production', PRODUCTION_CONFIG],
  ])('prints the file for %s as it is, when nothing is configured that it does not say', async (profile, file) => {
    const { code, stdout } = await print(['--profile', profile]);
    expect([code, stdout]).toEqual([0, await readFile(file, 'utf8')]);
  });

  it('prints the profile production if none is named, also for a trial', async () => {
    expect(await print([])).toEqual(await print(['--profile', 'production']));
    const trial = await print(['--shadow']);
    expect(trial).toEqual(await print(['--shadow', '--profile', 'production']));
    expect([trial.code, trial.stdout]).toEqual([0, expect.stringContaining('shadow_mode: true')]);
  });

  it('prints what a real Envoy takes, with routes of every form and bodies of 16 MiB', async () => {
    const { stdout } = await print(['--profile', 'demo', '--config', 'postern.yaml']);
    const { ok, output } = await validateConfig(parse(stdout, { merge: true }));
    expect(ok, output).toBe(true);
    expect(stdout).toContain(`max_request_bytes: ${16 * MIB}`);
    expect(stdout).not.toContain(`max_request_bytes: ${MIB}`);
    expect(stdout).not.toContain('/v1/unread');
  });

  it('prints the number of proxies in front of Envoy that Postern trusts', async () => {
    const file = join(folder, 'hops.yaml');
    await writeFile(file, JSON.stringify({ 'client-ip': { 'trusted-hops': 2 } }));
    for (const profile of ['demo', 'production', 'sidecar']) {
      const { stdout } = await print(['--profile', profile, '--config', file]);
      expect(stdout).toContain(' xff_num_trusted_hops: 2\n');
    }
  });

  it('checks the health of the API at the port of admin.listen', async () => {
    const file = join(folder, 'admin.yaml');
    await writeFile(file, JSON.stringify({ admin: { listen: '0.0.0.0:9123' } }));
    const ports = async (...args: readonly string[]): Promise<unknown> => {
      const { clusters } = parse((await print(args)).stdout, { merge: true }).static_resources;
      const api = clusters.find((one: { name: string }) => one.name === 'postern-http');
      return api.load_assignment.endpoints[0].lb_endpoints[0].endpoint.health_check_config;
    };
    for (const profile of ['production', 'sidecar']) {
      expect(await ports('--profile', profile, '--config', file)).toEqual({ port_value: 9123 });
      expect(await ports('--profile', profile)).toEqual({ port_value: 9090 });
    }
  });

  it.each(['demo', 'sidecar'])(
    'prints for %s what a real Envoy takes if it counts usage by itself',
    async (profile) => {
      const { stdout } = await print(['--profile', profile, '--usage', 'native', '--config', 'postern.yaml']);
      const { ok, output } = await validateConfig(parse(stdout, { merge: true }));
      expect(ok, output).toBe(true);
      expect(output).not.toMatch(/deprecated/i);
      expect(stdout).toContain('llm_protocol: ANTHROPIC_MESSAGES');
      expect(stdout).toContain(`max_request_bytes: ${16 * MIB}`);
      expect(stdout).not.toContain(`max_request_bytes: ${MIB}`);
    },
  );

  it('prints for a sidecar a configuration without TLS, with the gate on its Unix socket and the addresses that were given', async () => {
    const { stdout } = await print([
      '--profile',
      'sidecar',
      '--http',
      'api.postern:8080',
      '--upstream',
      '10.0.0.7:8081',
      '--config',
      'postern.yaml',
    ]);
    const { ok, output } = await validateConfig(parse(stdout));
    expect(ok, output).toBe(true);
    expect(stdout).not.toContain('transport_socket');
    const { clusters, listeners } = parse(stdout).static_resources;
    const addressOf = (name: string): unknown =>
      clusters.find((one: { name: string }) => one.name === name).load_assignment.endpoints[0].lb_endpoints[0].endpoint
        .address;
    expect(addressOf('postern-grpc')).toEqual({ pipe: { path: '/run/postern/gate.sock' } });
    expect(addressOf('postern-meter')).toEqual({ pipe: { path: '/run/postern/gate.sock' } });
    expect(addressOf('postern-http')).toEqual({ socket_address: { address: 'api.postern', port_value: 8080 } });
    expect(addressOf('upstream')).toEqual({ socket_address: { address: '10.0.0.7', port_value: 8081 } });
    expect(listeners[0].address).toEqual({ socket_address: { address: '0.0.0.0', port_value: 10000 } });
  });

  it('prints for a trial what a real Envoy takes: the check in shadow mode at every route, and nothing else that changes a request', async () => {
    const { stdout } = await print(['--profile', 'sidecar', '--shadow', '--config', 'postern.yaml']);
    const config = parse(stdout);
    const { ok, output } = await validateConfig(config);
    expect(ok, output).toBe(true);
    const manager = config.static_resources.listeners[0].filter_chains[0].filters[0].typed_config;
    expect(manager.http_filters).toMatchObject([
      {
        name: 'postern',
        typed_config: {
          shadow_mode: true,
          failure_mode_allow: false,
          clear_route_cache: false,
          decoder_header_mutation_rules: { disallow_all: true },
          enable_dynamic_metadata_ingestion: false,
        },
      },
      { name: 'envoy.filters.http.router' },
    ]);
    const [host] = manager.route_config.virtual_hosts;
    expect(host.routes.length).toBeGreaterThan(6);
    for (const { typed_per_filter_config: settings, match, route } of [host, ...host.routes]) {
      expect(Object.keys(settings)).toEqual(['postern']);
      expect(settings.postern.check_settings.context_extensions).toMatchObject({ 'postern.mode': 'shadow' });
      expect(match?.dynamic_metadata).toBeUndefined();
      if (match !== undefined) expect(route).toEqual({ cluster: 'upstream', timeout: '0s', idle_timeout: '600s' });
    }
    expect(stdout).toContain(`max_request_bytes: ${16 * MIB}`);
    for (const absent of ['postern-http', 'remove_on_match', 'lua', 'cors', 'local_reply_config'])
      expect(stdout).not.toContain(absent);
    expect(stdout).toContain('log_name: postern-shadow');
  });

  it('prints for a trial what takes no order from a client on the same network', async () => {
    const upstream = await startNamedServer('upstream');
    onTestFinished(() => upstream.close());
    const { stdout } = await print(['--profile', 'sidecar', '--shadow', '--upstream', upstream.address]);
    const places = { edge: '127.0.0.1:0', 'postern-grpc': '127.0.0.1:1' };
    const trial = await startConfig(placeAddresses(stdout, { admin: '127.0.0.1:0', places }));
    onTestFinished(() => trial.stop());
    const orders = { 'x-envoy-upstream-rq-timeout-ms': '1234', 'x-envoy-retry-on': '5xx', 'x-request-id': 'chosen' };
    const { status, body } = await send(trial.url, { path: '/v1/models', headers: { ...orders, 'x-other': 'kept' } });
    expect([status, JSON.parse(body).headers['x-other']]).toEqual([200, 'kept']);
    for (const text of ['1234', 'chosen', 'x-envoy-internal']) expect(body).not.toContain(text);
  });

  it.each([['istio'], ['envoy-gateway'], ['demo', '--http', 'x:1']])(
    'refuses --shadow where it has no effect: %s %s',
    async (...args) => {
      const { code, stderr } = await print(['--shadow', '--profile', ...args]);
      expect([code, stderr]).toEqual([2, expect.stringContaining('--shadow is for the profiles')]);
    },
  );

  it('prints for Istio the routes whose body the decision reads, before the others, and sends no other body', async () => {
    const args = ['--profile', 'istio', '--gateway', 'edge/web', '--upstream', 'models.ai.svc.cluster.local:80'];
    const { stdout } = await print([...args, '--config', 'postern.yaml']);
    const { metadata, spec } = parse(stdout);
    expect([metadata.namespace, spec.targetRefs[0].name]).toEqual(['edge', 'web']);
    const bare = {
      name: 'edge',
      address: address('127.0.0.1', 10_080),
      filter_chains: [{ filters: [managerAt('http.80')] }],
    };
    const listener = withEnvoyFilter(bare, parse(stdout));
    const { ok, output } = await validateConfig({
      ...ISTIO_RUNTIME,
      static_resources: {
        listeners: [listener],
        clusters: [cluster('postern'), cluster('outbound|80||models.ai.svc.cluster.local')],
      },
    });
    expect(ok, output).toBe(true);
    const { routes } = valueAt(listener, 'route_config', 'virtual_hosts', 0);
    const others = routes.at(-1).typed_per_filter_config;
    expect(routes.at(-1).match).toEqual({ prefix: '/' });
    // Three for each of the built-in groups, and for each of the five configured routes that read their body.
    expect(routes.length - 1).toBe(3 * (3 + 5));
    expect(others['envoy.filters.http.ext_authz'].check_settings.disable_request_body_buffering).toBe(true);
    const isBare = ({ match }: { match: { headers: { name: string }[] } }): boolean =>
      match.headers.some(({ name }) => name === 'authorization');
    for (const [index, { match, typed_per_filter_config: own, route }] of routes.slice(0, -1).entries()) {
      expect(isBare({ match }), match).toBe(index % 3 === 1);
      if (index % 3 !== 1) continue;
      expect(own).toEqual(others);
      expect(route.cluster).toBe('outbound|80||models.ai.svc.cluster.local');
      expect(match.headers.slice(1).map(({ name }: { name: string }) => name)).toEqual([
        'authorization',
        'x-api-key',
        'api-key',
      ]);
      expect(match.safe_regex).toEqual(routes[index + 1].match.safe_regex);
    }
    for (const { request_body_buffer_limit, typed_per_filter_config: own } of routes
      .slice(0, -1)
      .filter((one: never) => !isBare(one))) {
      expect(request_body_buffer_limit).toBe(16 * MIB + 65_536);
      expect(own['envoy.filters.http.ext_authz'].check_settings.with_request_body.max_request_bytes).toBe(16 * MIB);
    }
    expect(valueAt(listener, 'http_filters', 2)).toMatchObject({ name: 'postern.usage' });
  });

  it.each(['/v1/{service}/{call}', '/v1/**', '/**', '/{any+}'])(
    'prints for Istio no route that leads a request to Postern to the platform: %s',
    async (path) => {
      const file = join(folder, 'wide.yaml');
      const route = { method: 'POST', path, permission: 'chat:write', model: 'body' };
      await writeFile(file, JSON.stringify({ routes: [route] }));
      const [checks, upstream] = await Promise.all([startCheckServer(), startNamedServer('upstream')]);
      const { stdout } = await print(['--profile', 'istio', '--upstream', upstream.address, '--config', file]);
      const [host = '', port = ''] = upstream.address.split(':');
      const bare = {
        name: 'edge',
        address: address('127.0.0.1', 0),
        filter_chains: [{ filters: [managerAt('http.80')] }],
      };
      const edge = await startConfig({
        ...ISTIO_RUNTIME,
        admin: { address: address('127.0.0.1', 0) },
        static_resources: {
          listeners: [withEnvoyFilter(bare, parse(stdout))],
          clusters: [
            clusterAt('postern', checks.address, true),
            clusterAt(`outbound|${port}||${host}`, upstream.address),
          ],
        },
      });
      try {
        const ask = (target: string) =>
          send(edge.url, { method: 'POST', path: target, headers: { authorization: 'Bearer x' }, body: '{}' });
        const publicPaths = ['/v1/auth/login', '/v1/iam/users?x=1', '/v1/iam', '/console/a', '/docs', '/openapi.json/'];
        for (const target of publicPaths) expect((await ask(target)).body, target).not.toContain('upstream');
        expect((await ask('/v1/authors/x')).body).toContain('upstream');
      } finally {
        await edge.stop();
        checks.close();
        upstream.close();
      }
    },
  );

  it.each([
    [['--profile', 'other'], 'demo, production, sidecar, istio, envoy-gateway. You named other.'],
    [
      ['--profile', 'istio', '--gateway', 'ai'],
      'ai is no Gateway of the form namespace/name or namespace/name/listener.',
    ],
    [['--profile', 'istio', '--upstream', 'platform'], 'platform is not an address of the form host:port.'],
    [['--profile', 'istio', '--grpc', 'a:1'], 'The profile istio has no --grpc.'],
    [['--profile', 'istio', '--usage', 'native'], 'The profile istio has no --usage.'],
    [['--profile', 'demo', '--usage', 'both'], '--usage is lua or native, not both.'],
    [['--profile', 'envoy-gateway', '--upstream', 'a:1'], 'The profile envoy-gateway has no --upstream.'],
    [['--profile', 'production', '--gateway', 'ai/ai'], 'The profile production has no --gateway.'],
    [['--profile', 'demo', '--grpc', 'unix:'], 'unix: is not an address of the form host:port.'],
    [['--profile', 'demo', '--grpc', 'unix:gate.sock'], 'unix:gate.sock is not an address of the form host:port.'],
    [['--profile', 'demo', '--grpc', 'nowhere'], 'nowhere is not an address of the form host:port.'],
    [
      ['--profile', 'sidecar', '--http', 'unix:/run/api.sock'],
      '--http takes host:port, because the API has no Unix socket.',
    ],
    [
      ['--profile', 'sidecar', '--listen', 'localhost:10000'],
      'localhost:10000 is a name, and Envoy listens on IP addresses only.',
    ],
  ])('exits 2 and says what it takes: %j', async (args, says) => {
    const { code, stdout, stderr } = await print(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(says);
  });
});

const address = (host: string, port: number): object => ({ socket_address: { address: host, port_value: port } });
const cluster = (name: string): object => ({ name, type: 'STATIC', load_assignment: { cluster_name: name } });

function clusterAt(name: string, at: string, isHttp2 = false): object {
  const [host = '', port = ''] = at.split(':');
  const type = 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
  const http2 = { '@type': type, explicit_http_config: { http2_protocol_options: {} } };
  const endpoint = { address: address(host, Number(port)) };
  return {
    ...cluster(name),
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint }] }] },
    ...(isHttp2
      ? { typed_extension_protocol_options: { 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': http2 } }
      : {}),
  };
}

/** Istio's own bootstrap lets regular expressions be this long, `pkg/bootstrap/config.go` of `istio.io/istio`. */
const ISTIO_RUNTIME = {
  layered_runtime: { layers: [{ name: 'global', static_layer: { 're2.max_program_size.error_level': 32_768 } }] },
};

/** A connection manager as Istio makes one: the check, the router, and one route. */
function managerAt(routes: string): object {
  const types = 'type.googleapis.com/envoy.extensions.filters';
  return {
    name: 'envoy.filters.network.http_connection_manager',
    typed_config: {
      '@type': `${types}.network.http_connection_manager.v3.HttpConnectionManager`,
      stat_prefix: 'edge',
      route_config: {
        name: routes,
        virtual_hosts: [
          { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, direct_response: { status: 200 } }] },
        ],
      },
      http_filters: [
        {
          name: 'envoy.filters.http.ext_authz',
          typed_config: {
            '@type': `${types}.http.ext_authz.v3.ExtAuthz`,
            transport_api_version: 'V3',
            grpc_service: { envoy_grpc: { cluster_name: 'postern' }, timeout: '0.5s' },
          },
        },
        { name: 'envoy.filters.http.router', typed_config: { '@type': `${types}.http.router.v3.Router` } },
      ],
    },
  };
}

/** A part of the listener's connection manager, for expectations. */
function valueAt(listener: object, ...steps: readonly (string | number)[]) {
  const manager = ['filter_chains', 0, 'filters', 0, 'typed_config'];
  return [...manager, ...steps].reduce((inner, step) => inner[step], JSON.parse(JSON.stringify(listener)));
}

describe('Envoy with the printed configuration', () => {
  let edge: Edge;
  let world: LittleWorld;
  const running = new AsyncDisposableStack();
  const routes = SPECS.map(lineOf);
  const inspect = { maxBodyBytes: 16 * MIB, callerRate: 32 * MIB, tenantRate: 64 * MIB };

  beforeAll(async () => {
    const table = buildRouteTable(routes);
    if (table.kind === 'error') throw new Error(table.message);
    world = littleWorld({});
    const gate = createCheckHandler({
      routes: table.table,
      resolver: world.resolver,
      observer: { observe: () => undefined },
      trustedHops: 0,
      forwardCredential: false,
      maxBodyBytes: inspect.maxBodyBytes,
    });
    const server = await startExtAuthz(gate, { listen: '127.0.0.1:0', maxBodyBytes: inspect.maxBodyBytes });
    running.defer(() => server.drain(1000));
    server.setReady(true);
    const upstream = await startNamedServer('upstream');
    running.defer(() => upstream.close());
    const parts = { grpc: server.address, http: upstream.address, upstream: upstream.address };
    const admin = { listen: { kind: 'tcp', host: '127.0.0.1', port: 9090 } } as const;
    edge = await startEdge(parts, (text) => agreeing(text, { routes, inspect, clientIp: { trustedHops: 0 }, admin }));
    running.defer(() => edge.stop());
  });
  afterAll(() => running.disposeAsync());

  const ask = (method: string, path: string, body: string): Promise<Answer> =>
    send(edge.url, {
      method,
      path,
      headers: {
        authorization: `Bearer ${world.tenantKey}`,
        'content-type': 'application/json',
        // Node announces no body of a GET by itself.
        'content-length': String(Buffer.byteLength(body)),
      },
      body,
    });
  const codeOf = ({ body }: Answer): string => {
    const said = JSON.parse(body);
    return said.server === 'upstream' ? 'allow' : said.code;
  };

  it.each([
    ['POST', '/v1/summaries'],
    ['POST', '/v1/summaries/'],
    ['POST', '/v1/spaces/a/b/ask'],
    ['POST', `/v1/${'long-name-'.repeat(12)}/a:b/c`],
    ['POST', `/v1/${'long-name-'.repeat(12)}/a%3ab`],
  ])('sends the body of %s %s, which a configured route reads', async (method, path) => {
    expect(codeOf(await ask(method, path, '{"model":"llama-3-8b"}'))).toBe('allow');
    expect(codeOf(await ask(method, path, '{"model":1}'))).toBe('malformed_body');
  });

  it('sends the body of a HEAD request, which is decided as GET', async () => {
    const body = '{"model":"llama-3-8b"}';
    expect(codeOf(await ask('GET', '/v1/found', body))).toBe('allow');
    expect((await ask('HEAD', '/v1/found', body)).status).toBe(200);
    expect((await ask('HEAD', '/v1/found', '')).status).toBe(400);
  });

  it('lets a chat request of 10 MiB pass, and answers 413 beyond inspect.max-body', async () => {
    const chat = (bytes: number): string =>
      JSON.stringify({ model: 'llama-3-8b', messages: [], image: 'x'.repeat(bytes) });
    expect(codeOf(await ask('POST', '/v1/chat/completions', chat(10 * MIB)))).toBe('allow');
    const refused = await ask('POST', '/v1/chat/completions', chat(16 * MIB));
    expect([refused.status, codeOf(refused)]).toEqual([413, 'body_too_large']);
  });
});
