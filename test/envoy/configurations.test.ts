import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServerCredentials } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { placeAddresses } from '../../src/cli/envoy-config.ts';
import { BUILTIN_ROUTES } from '../../src/decision/routes.ts';
import { type Authority, type Certificate, makeAuthority } from '../support/certificates.ts';
import { startCheckServer } from '../support/check-server.ts';
import { DEMO_CONFIG, PRODUCTION_CONFIG, startConfig, validateConfig } from '../support/envoy.ts';
import { startNamedServer } from '../support/http.ts';

/** A folder laid out as production.yaml and its secrets expect /etc/envoy to be. */
let folder: string;
let authority: Authority;
let server: Certificate;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-etc-'));
  authority = makeAuthority();
  server = authority.issue('postern');
  const client = authority.issue('edge');
  const edge = authority.issue('localhost');
  await mkdir(join(folder, 'edge'));
  await mkdir(join(folder, 'postern'));
  await mkdir(join(folder, 'secrets'));
  const copySecret = async (name: string): Promise<void> => {
    const text = await readFile(new URL(`../../envoy/secrets/${name}`, import.meta.url), 'utf8');
    await writeFile(join(folder, 'secrets', name), text.replaceAll('/etc/envoy', folder));
  };
  await Promise.all([
    writeFile(join(folder, 'edge', 'tls.crt'), edge.certPem),
    writeFile(join(folder, 'edge', 'tls.key'), edge.keyPem),
    writeFile(join(folder, 'postern', 'tls.crt'), client.certPem),
    writeFile(join(folder, 'postern', 'tls.key'), client.keyPem),
    writeFile(join(folder, 'postern', 'ca.crt'), authority.certPem),
    ...['edge.yaml', 'postern-client.yaml', 'postern-authority.yaml'].map(copySecret),
  ]);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

async function productionText(): Promise<string> {
  return (await readFile(PRODUCTION_CONFIG, 'utf8')).replaceAll('/etc/envoy', folder);
}

describe('Envoy takes', () => {
  it('demo.yaml as it is', async () => {
    const { ok, output } = await validateConfig(parse(await readFile(DEMO_CONFIG, 'utf8')));
    expect(output).not.toMatch(/deprecated/i);
    expect(ok, output).toBe(true);
  });

  it('production.yaml beside its certificates', async () => {
    const { ok, output } = await validateConfig(parse(await productionText()));
    expect(output).not.toMatch(/deprecated/i);
    expect(ok, output).toBe(true);
  });

  it('no configuration with a setting that does not exist', async () => {
    const text = (await readFile(DEMO_CONFIG, 'utf8')).replace('failure_mode_allow', 'failure_mode_permit');
    expect((await validateConfig(parse(text))).ok).toBe(false);
  });
});

interface Route {
  readonly match: { readonly safe_regex?: { readonly regex: string }; readonly dynamic_metadata?: unknown };
  readonly route: { readonly max_stream_duration?: { readonly max_stream_duration: string } };
  readonly typed_per_filter_config?: Record<string, unknown>;
}

interface Manager {
  readonly route_config: {
    virtual_hosts: { routes: Route[]; typed_per_filter_config: Record<string, unknown> }[];
  };
  readonly http_filters: {
    name: string;
    disabled?: boolean;
    typed_config: { grpc_service: { timeout: string; retry_policy: { retry_back_off: { max_interval: string } } } };
  }[];
  readonly access_log: { name: string; filter: unknown }[];
  readonly access_log_options: { access_log_flush_interval: string };
  readonly local_reply_config: unknown;
  readonly http2_protocol_options: unknown;
}

interface Cluster {
  readonly name: string;
  readonly transport_socket?: unknown;
  readonly outlier_detection?: unknown;
  readonly load_assignment: { readonly endpoints: unknown };
}

function clustersOf(text: string): Cluster[] {
  return parse(text).static_resources.clusters;
}

/** The routes for a path, in order. */
function routesFor({ route_config }: Manager, path: string): Route[] {
  const routes = route_config.virtual_hosts[0]?.routes ?? [];
  return routes.filter(({ match }) => new RegExp(`^${match.safe_regex?.regex}$`).test(path));
}

/** The routes whose decision reads the body, with whether they spend tokens. */
const INSPECTED = BUILTIN_ROUTES.filter(({ method, readsBody }) => method === 'POST' && readsBody);

/** How long a reservation lives without a report, seconds. */
const RESERVATION_TTL_SECONDS = 30;

function managerOf(text: string): Manager {
  return parse(text).static_resources.listeners[0].filter_chains[0].filters[0].typed_config;
}

describe.each([
  ['demo.yaml', DEMO_CONFIG],
  ['production.yaml', PRODUCTION_CONFIG],
])('%s', (_name, file) => {
  it('gives one try of a check as long as the whole check, which Envoy else cuts at the longest pause between tries', async () => {
    const text = await readFile(file, 'utf8');
    const check = managerOf(text).http_filters.find(({ name }) => name === 'envoy.filters.http.ext_authz');
    const { timeout, retry_policy } = check?.typed_config.grpc_service ?? expect.fail('no check');
    expect(seconds(retry_policy.retry_back_off.max_interval)).toBeGreaterThanOrEqual(seconds(timeout));
  });

  it('has one reader of answers, on every route: it leaves an answer alone unless the check marked its request', async () => {
    const { http_filters, route_config } = managerOf(await readFile(file, 'utf8'));
    const readers = http_filters.filter(({ name }) => name.includes('lua'));
    expect(readers).toMatchObject([
      { typed_config: { default_source_code: { inline_string: expect.stringContaining('settles') } } },
    ]);
    expect(readers[0]).not.toHaveProperty('disabled');
    const perRoute = route_config.virtual_hosts
      .flatMap(({ routes }) => routes)
      .map((route) => route.typed_per_filter_config ?? {});
    expect(perRoute.filter((filters) => 'envoy.filters.http.lua' in filters)).toEqual([]);
  });

  it('limits the time for an inspected body on the route before the allow, and selects the route again after it', async () => {
    const manager = managerOf(await readFile(file, 'utf8'));
    const check = manager.http_filters.find(({ name }) => name === 'envoy.filters.http.ext_authz');
    expect(check?.typed_config).toMatchObject({ clear_route_cache: true });
    for (const { template } of INSPECTED) {
      const [allowed, receiving] = routesFor(manager, template);
      expect(allowed?.match.dynamic_metadata).toMatchObject([{ filter: check?.name, value: { present_match: true } }]);
      expect(allowed?.route.max_stream_duration).toBeUndefined();
      expect(receiving?.match.dynamic_metadata).toBeUndefined();
      expect(seconds(receiving?.route.max_stream_duration?.max_stream_duration ?? '')).toBeGreaterThan(0);
      expect(receiving?.typed_per_filter_config).toEqual(allowed?.typed_per_filter_config);
    }
  });

  it('reports a running request several times before its reservation ends by time', async () => {
    const { access_log_options } = managerOf(await readFile(file, 'utf8'));
    const interval = seconds(access_log_options.access_log_flush_interval);
    expect(interval).toBeGreaterThan(0);
    expect(interval).toBeLessThan(RESERVATION_TTL_SECONDS / 2);
  });

  it('has the meter reach the servers that the checks reach, in the same way, and ejects none of them', async () => {
    const clusters = clustersOf(await readFile(file, 'utf8'));
    const [checks, meter] = ['postern-grpc', 'postern-meter'].map((wanted) =>
      clusters.find(({ name }) => name === wanted),
    );
    expect(meter?.load_assignment.endpoints).toEqual(checks?.load_assignment.endpoints);
    expect(meter?.transport_socket).toEqual(checks?.transport_socket);
    for (const { outlier_detection } of clusters) expect(outlier_detection).toBeUndefined();
  });
});

const seconds = (text: string): number => Number(text.replace('s', ''));

describe('production.yaml', () => {
  it('checks and meters the same requests in the same way as demo.yaml, but waits no longer than half a second', async () => {
    const demoText = (await readFile(DEMO_CONFIG, 'utf8')).replace('timeout: 3s', 'timeout: 0.5s');
    const [demo, production] = [managerOf(demoText), managerOf(await productionText())];
    expect(production.http_filters).toEqual(demo.http_filters);
    expect(production.route_config.virtual_hosts[0]?.routes).toEqual(demo.route_config.virtual_hosts[0]?.routes);
    const meter = ({ access_log }: Manager) => access_log.find(({ name }) => name === 'envoy.access_loggers.http_grpc');
    expect(meter(demo)).toBeDefined();
    expect(meter(production)).toEqual(meter(demo));
    expect(production.access_log_options).toEqual(demo.access_log_options);
    expect(production.local_reply_config).toEqual(demo.local_reply_config);
    expect(production.http2_protocol_options).toEqual(demo.http2_protocol_options);
    expect(parse(await productionText()).layered_runtime).toEqual(parse(demoText).layered_runtime);
    const check = 'envoy.filters.http.ext_authz';
    expect(production.route_config.virtual_hosts[0]?.typed_per_filter_config[check]).toEqual(
      demo.route_config.virtual_hosts[0]?.typed_per_filter_config[check],
    );
  });

  it('writes one line for each request, and none for the reports of a running one', async () => {
    const { access_log } = managerOf(await productionText());
    const lines = access_log.find(({ name }) => name === 'envoy.access_loggers.stdout');
    expect(lines?.filter).toEqual({ log_type_filter: { types: ['DownstreamPeriodic'], exclude: true } });
  });

  it('serves over TLS and asks Postern over mutual TLS', async () => {
    const roots = Buffer.from(authority.certPem);
    const pair = { cert_chain: Buffer.from(server.certPem), private_key: Buffer.from(server.keyPem) };
    // A busy machine may need longer than Envoy waits; then the first answers are 503.
    await throughProduction(ServerCredentials.createSsl(roots, [pair], true), (status) =>
      expect.poll(status, { timeout: 20_000 }).toBe(200),
    );
  });

  it('sends checks to Postern only', async () => {
    const other = authority.issue('someone-else');
    const pair = { cert_chain: Buffer.from(other.certPem), private_key: Buffer.from(other.keyPem) };
    await throughProduction(ServerCredentials.createSsl(Buffer.from(authority.certPem), [pair], true), async (status) =>
      expect(await status()).toBe(503),
    );
  });
});

/**
 * Lets `verify` ask for the status that a client gets through production.yaml when the check server, which allows all,
 * has these credentials.
 */
async function throughProduction(
  credentials: ServerCredentials,
  verify: (status: () => Promise<number | undefined>) => Promise<void>,
): Promise<void> {
  const [checks, upstream] = await Promise.all([
    startCheckServer(undefined, credentials),
    startNamedServer('upstream'),
  ]);
  const places = {
    edge: '127.0.0.1:0',
    'postern-grpc': checks.address,
    'postern-http': upstream.address,
    upstream: upstream.address,
  };
  const edge = await startConfig(placeAddresses(await productionText(), { admin: '127.0.0.1:0', places }));
  const status = (): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const options = {
        host: '127.0.0.1',
        port: edge.port,
        servername: 'localhost',
        ca: authority.certPem,
        path: '/v1/models',
      };
      const outgoing = request({ ...options, agent: false }, (incoming) => {
        incoming.resume();
        incoming.on('end', () => resolve(incoming.statusCode));
      });
      outgoing.on('error', reject);
      outgoing.end();
    });
  try {
    await verify(status);
  } finally {
    await edge.stop();
    checks.close();
    upstream.close();
  }
}

describe('placing addresses', () => {
  it('refuses a name that the file does not have', () => {
    const text = 'static_resources: { listeners: [], clusters: [] }';
    expect(() => placeAddresses(text, { admin: '127.0.0.1:0', places: { edge: '127.0.0.1:1' } })).toThrow(/named edge/);
  });

  it('gives the meter the address of the checks unless it has one of its own', async () => {
    const text = await readFile(DEMO_CONFIG, 'utf8');
    const meterOf = (places: Readonly<Record<string, string>>): unknown => {
      const clusters = clustersOf(JSON.stringify(placeAddresses(text, { admin: '127.0.0.1:0', places })));
      return clusters.find(({ name }) => name === 'postern-meter')?.load_assignment.endpoints;
    };
    const at = (port: number) => [
      { lb_endpoints: [{ endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } } }] },
    ];
    expect(meterOf({ 'postern-grpc': '127.0.0.1:1' })).toEqual(at(1));
    expect(meterOf({ 'postern-grpc': '127.0.0.1:1', 'postern-meter': '127.0.0.1:2' })).toEqual(at(2));
  });

  it('takes a Unix socket for a cluster', async () => {
    const places = { 'postern-grpc': 'unix:/run/postern.sock' };
    const config = placeAddresses(await readFile(DEMO_CONFIG, 'utf8'), { admin: '127.0.0.1:0', places });
    expect(JSON.stringify(config)).toContain('{"pipe":{"path":"/run/postern.sock"}}');
    expect((await validateConfig(config)).ok).toBe(true);
  });
});
