/** The chart's mesh resources: real Envoy takes what they make of a listener, and they agree with the guides. */

import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { type Manifest, manifestsOf } from '../../scripts/lib/tools/manifests.ts';
import { edgeOf } from '../../src/cli/envoy-config.ts';
import { withEnvoyFilter, withPatchPolicy } from '../mesh/support/patched.ts';
import { runCommand } from '../support/command.ts';
import { validateConfig } from '../support/envoy.ts';
import { at, listAt, only, textAt } from './objects.ts';
import { NAMESPACE, ROOT, render } from './support.ts';

const HCM = 'envoy.filters.network.http_connection_manager';
const EXT_AUTHZ = 'envoy.filters.http.ext_authz';
const TYPE = 'type.googleapis.com/envoy.extensions.filters';
const FETCH_MS = 300_000;

type Json = Record<string, unknown>;

const rendered = new Map<string, readonly Manifest[]>();
beforeAll(async () => {
  for (const name of ['istio-plain', 'istio-full', 'envoy-gateway-plain', 'envoy-gateway-full', 'sidecar']) {
    rendered.set(name, manifestsOf(await render(name)));
  }
}, FETCH_MS);

function of(name: string): readonly Manifest[] {
  return rendered.get(name) ?? [];
}

/** A listener as a mesh makes one: the check as its provider says it, and the router. */
function listener(checkName: string): Json {
  return {
    name: 'ai/ai/http',
    address: { socket_address: { address: '127.0.0.1', port_value: 10_080 } },
    filter_chains: [
      {
        filters: [
          {
            name: HCM,
            typed_config: {
              '@type': `${TYPE}.network.http_connection_manager.v3.HttpConnectionManager`,
              stat_prefix: 'http',
              route_config: {
                virtual_hosts: [
                  {
                    name: 'all',
                    domains: ['*'],
                    routes: [{ match: { prefix: '/' }, direct_response: { status: 200 } }],
                  },
                ],
              },
              http_filters: [
                {
                  name: checkName,
                  typed_config: {
                    '@type': `${TYPE}.http.ext_authz.v3.ExtAuthz`,
                    transport_api_version: 'V3',
                    grpc_service: { envoy_grpc: { cluster_name: 'postern' }, timeout: '0.5s' },
                    with_request_body: { max_request_bytes: 8192 },
                  },
                },
                { name: 'envoy.filters.http.router', typed_config: { '@type': `${TYPE}.http.router.v3.Router` } },
              ],
            },
          },
        ],
      },
    ],
  };
}

async function validated(one: object): Promise<string> {
  const clusters = [{ name: 'postern', type: 'STATIC', load_assignment: { cluster_name: 'postern' } }];
  const { ok, output } = await validateConfig({ static_resources: { listeners: [one], clusters } });
  return ok ? 'OK' : output;
}

function httpFilters(one: Json): unknown[] {
  const filters = at(one, 'filter_chains', 0, 'filters', 0, 'typed_config', 'http_filters');
  if (!Array.isArray(filters)) throw new Error('no filters');
  return filters;
}

const RAW = {
  failure_mode_allow: false,
  status_on_error: { code: 'ServiceUnavailable' },
  encode_raw_headers: true,
  validate_mutations: true,
};

/** Returns the output of `postern envoy config` for a configuration. */
async function printed(profile: string, config: object, ...more: readonly string[]): Promise<unknown> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-printed-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'postern.yaml');
  await writeFile(file, JSON.stringify(config));
  const { stdout } = await runCommand(['envoy', 'config', '--profile', profile, '--config', file, ...more], {});
  return parse(stdout);
}

/** The Service of the API has no port for it. The other clusters with a health check are asked by gRPC. */
function withoutHealthOfApi(config: unknown): unknown {
  return JSON.parse(JSON.stringify(config), (name, value) =>
    name === 'health_check_config' || (name === 'health_checks' && at(value, 0, 'http_health_check') !== undefined)
      ? undefined
      : value,
  );
}

describe('the full profiles', () => {
  it('the EnvoyFilter is what postern envoy config prints, and Envoy takes a listener with it', async () => {
    const filter = only(of('istio-full'), 'EnvoyFilter');
    expect(at(filter, 'spec')).toEqual(at(await printed('istio', {}), 'spec'));
    const made = withEnvoyFilter(listener(EXT_AUTHZ), filter);
    expect(await validated(made)).toContain('OK');
    expect(at(httpFilters(made)[1], 'typed_config')).toMatchObject({
      ...RAW,
      with_request_body: { max_request_bytes: 1_048_576, allow_partial_message: true, pack_as_bytes: true },
    });
    expect(httpFilters(made).map((one) => at(one, 'name'))).toEqual([
      'postern.headers',
      EXT_AUTHZ,
      'postern.usage',
      'envoy.filters.http.router',
    ]);
  });

  it('the EnvoyPatchPolicy is what postern envoy config prints for the same size of bodies, and Envoy takes a listener with it', async () => {
    const policy = only(of('envoy-gateway-full'), 'EnvoyPatchPolicy');
    expect(at(policy, 'spec')).toEqual(
      at(await printed('envoy-gateway', { inspect: { 'max-body': '16 MiB' } }), 'spec'),
    );
    const check = `${EXT_AUTHZ}/securitypolicy/ai/postern`;
    const made = withPatchPolicy(listener(check), 'ai/ai/http', policy);
    expect(await validated(made)).toContain('OK');
    expect(at(httpFilters(made)[1], 'typed_config')).toMatchObject({
      ...RAW,
      with_request_body: { max_request_bytes: 16_777_216, allow_partial_message: true, pack_as_bytes: true },
    });
    expect(httpFilters(made).map((one) => at(one, 'name'))).toEqual([
      'postern.headers',
      check,
      'postern.usage',
      'envoy.filters.http.router',
    ]);
  });

  it('name the Gateway of the values', async () => {
    const sets = [
      'mesh.envoyGateway.namespace=edge',
      'mesh.envoyGateway.gateway=web',
      'mesh.envoyGateway.listener=tls',
    ];
    const manifests = manifestsOf(await render('envoy-gateway-full', ...sets.flatMap((set) => ['--set', set])));
    const patches = at(only(manifests, 'EnvoyPatchPolicy'), 'spec', 'jsonPatches');
    const config = { inspect: { 'max-body': '16 MiB' } };
    expect(patches).toEqual(
      at(await printed('envoy-gateway', config, '--gateway', 'edge/web/tls'), 'spec', 'jsonPatches'),
    );
  });

  it.each([
    ['500ms', '3s'],
    ['3500ms', '4s'],
    ['10s', '10s'],
  ])('give one try of a check at least the time of mesh.timeout: %s', async (timeout, limit) => {
    for (const name of ['istio-full', 'envoy-gateway-full']) {
      const text = await render(name, '--set', `mesh.timeout=${timeout}`);
      expect(text.match(/max_interval: .*/g)).toEqual([`max_interval: ${limit}`]);
    }
  });

  it('names in its patches the SecurityPolicy that the chart makes', () => {
    const policy = only(of('envoy-gateway-full'), 'SecurityPolicy');
    expect([policy.metadata.namespace, policy.metadata.name]).toEqual(['ai', 'postern']);
  });

  it('the configuration of the sidecar is what postern envoy config prints, and Envoy takes it', async () => {
    const text = textAt(only(of('sidecar'), 'ConfigMap', 'postern-envoy'), 'data', 'envoy.yaml');
    const addresses = ['--http', 'postern-http:8080', '--upstream', 'platform.ai.svc:8081'];
    expect(parse(text)).toEqual(withoutHealthOfApi(await printed('sidecar', {}, ...addresses)));
    expect(text).toContain('/run/postern/gate.sock');
    expect(textAt(only(of('sidecar'), 'ConfigMap', 'postern'), 'data', 'gate.yaml')).toContain(
      'unix:/run/postern/gate.sock',
    );
    const { ok, output } = await validateConfig(parse(text));
    expect(ok, output).toBe(true);
  });

  it('the sidecar of a trial has the check in shadow mode, as postern envoy config prints it, and Envoy takes it', async () => {
    const manifests = manifestsOf(await render('sidecar', '--set', 'envoy.shadow=true'));
    const text = textAt(only(manifests, 'ConfigMap', 'postern-envoy'), 'data', 'envoy.yaml');
    expect(parse(text)).toEqual(await printed('sidecar', {}, '--shadow', '--upstream', 'platform.ai.svc:8081'));
    expect(text).toContain('shadow_mode: true');
    const { ok, output } = await validateConfig(parse(text));
    expect(ok, output).toBe(true);
  });

  it('the sidecar listens on the port of the values, and asks the API of the release', async () => {
    const sets = ['fullnameOverride=gatekeeper', 'service.http.port=80', 'envoy.port=10080'];
    const manifests = manifestsOf(await render('sidecar', ...sets.flatMap((set) => ['--set', set])));
    const text = textAt(only(manifests, 'ConfigMap', 'gatekeeper-envoy'), 'data', 'envoy.yaml');
    const addresses = [
      '--http',
      'gatekeeper-http:80',
      '--upstream',
      'platform.ai.svc:8081',
      '--listen',
      '0.0.0.0:10080',
    ];
    expect(parse(text)).toEqual(withoutHealthOfApi(await printed('sidecar', {}, ...addresses)));
  });

  it.each([false, true])('the sidecar trusts as many proxies as the gate, in a trial (%s) too', async (shadow) => {
    const sets = ['config.client-ip.trusted-hops=2', `envoy.shadow=${shadow}`];
    const manifests = manifestsOf(await render('sidecar', ...sets.flatMap((set) => ['--set', set])));
    const text = textAt(only(manifests, 'ConfigMap', 'postern-envoy'), 'data', 'envoy.yaml');
    expect(text).toContain(' xff_num_trusted_hops: 2\n');
  });
});

describe.each(['istio-plain', 'istio-full'])('the chart with %s', (name) => {
  it('names a provider in its AuthorizationPolicy CUSTOM, and matches every request', () => {
    const policy = only(of(name), 'AuthorizationPolicy');
    expect(at(policy, 'spec', 'action')).toBe('CUSTOM');
    expect(textAt(policy, 'spec', 'provider', 'name')).not.toBe('');
    expect(at(policy, 'spec', 'rules')).toEqual([{}]);
  });

  it('has the gateway reach both Services by mutual TLS only, and Istio inject its sidecar', () => {
    const rules = of(name).filter(({ kind }) => kind === 'DestinationRule');
    const hosts = ['postern-grpc.postern.svc.cluster.local', 'postern-http.postern.svc.cluster.local'];
    expect(rules.map((one) => at(one, 'spec', 'host'))).toEqual(hosts);
    for (const one of rules) expect(at(one, 'spec', 'trafficPolicy')).toEqual({ tls: { mode: 'ISTIO_MUTUAL' } });
    const labels = at(only(of(name), 'Deployment'), 'spec', 'template', 'metadata', 'labels');
    expect(at(labels, 'sidecar.istio.io/inject')).toBe('true');
  });
});

it('the chart leaves out mutual TLS only if the values say so', async () => {
  const manifests = manifestsOf(await render('istio-full', '--set', 'mesh.istio.mutualTls=false'));
  expect(manifests.filter(({ kind }) => kind === 'DestinationRule')).toEqual([]);
  expect(
    at(only(manifests, 'Deployment'), 'spec', 'template', 'metadata', 'labels', 'sidecar.istio.io/inject'),
  ).toBeUndefined();
});

describe.each(['envoy-gateway-plain', 'envoy-gateway-full'])('the chart with %s', (name) => {
  it('answers 503 when Postern does not, and reaches Postern across namespaces', () => {
    expect(at(only(of(name), 'SecurityPolicy'), 'spec', 'extAuth')).toMatchObject({
      failOpen: false,
      statusOnError: 503,
    });
    const grant = only(of(name), 'ReferenceGrant');
    expect(grant.metadata.namespace).toBe(NAMESPACE);
    const kinds = listAt(grant, 'spec', 'from').map((from) => at(from, 'kind'));
    expect(kinds).toEqual(expect.arrayContaining(['SecurityPolicy', 'EnvoyProxy']));
  });
});

it('Envoy Gateway lets a page send and read the headers that envoy/production.yaml does', async () => {
  const { manager } = edgeOf(parse(await readFile(join(ROOT, 'envoy/production.yaml'), 'utf8'), { merge: true }));
  const [host] = listAt(manager, 'route_config', 'virtual_hosts');
  const policy = at(host, 'typed_per_filter_config', 'envoy.filters.http.cors');
  const lists = ['allow_methods', 'allow_headers', 'expose_headers'].map((name) => textAt(policy, name).split(/, */));
  const cors = at(only(of('envoy-gateway-plain'), 'SecurityPolicy'), 'spec', 'cors');
  expect(['allowMethods', 'allowHeaders', 'exposeHeaders'].map((name) => at(cors, name))).toEqual(lists);
  expect([at(cors, 'maxAge'), at(cors, 'allowCredentials')]).toEqual(['600s', undefined]);
});

it('with TLS, Envoy Gateway proves both ends: the server by its name and CA, Envoy by a certificate in the Gateway’s namespace', async () => {
  const everything = manifestsOf(await render('everything'));
  const policy = only(everything, 'BackendTLSPolicy');
  const server = only(everything, 'Certificate', 'postern-grpc');
  expect(listAt(server, 'spec', 'dnsNames')).toContain(at(policy, 'spec', 'validation', 'hostname'));
  expect(at(policy, 'spec', 'validation', 'caCertificateRefs', 0, 'name')).toBe(at(server, 'spec', 'secretName'));
  const client = only(everything, 'Certificate', 'postern-envoy-client');
  const proxy = only(everything, 'EnvoyProxy');
  expect(at(proxy, 'spec', 'backendTLS', 'clientCertificateRef', 'name')).toBe(at(client, 'spec', 'secretName'));
  expect(client.metadata.namespace).toBe(proxy.metadata.namespace);
});

/** Objects of a guide whose spec the chart renders word for word. */
const GUIDES = [
  ['docs/istio.md', 'istio-plain', 'AuthorizationPolicy'],
  ['docs/istio.md', 'istio-plain', 'DestinationRule'],
  ['docs/istio.md', 'istio-plain', 'Telemetry'],
  ['docs/envoy-gateway.md', 'envoy-gateway-plain', 'SecurityPolicy'],
  ['docs/envoy-gateway.md', 'envoy-gateway-plain', 'EnvoyProxy'],
  ['docs/envoy-gateway.md', 'envoy-gateway-plain', 'ClientTrafficPolicy'],
] as const;

it.each(GUIDES.filter(([guide]) => existsSync(join(ROOT, guide))))(
  '%s shows what the chart renders with %s: %s',
  async (guide, name, kind) => {
    const blocks = [...(await readFile(join(ROOT, guide), 'utf8')).matchAll(/```yaml\n(apiVersion:[\s\S]*?)```/g)];
    const shown = blocks.flatMap(([, yaml = '']) => manifestsOf(yaml));
    const specsOf = (manifests: readonly Manifest[]): unknown[] =>
      manifests.filter((one) => one.kind === kind).map((one) => at(one, 'spec'));
    expect(specsOf(shown).length).toBeGreaterThan(0);
    expect(specsOf(of(name))).toEqual(specsOf(shown));
  },
);
