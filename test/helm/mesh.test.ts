/** The chart's mesh resources: real Envoy takes what they make of a listener, and they agree with the guides. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Manifest, manifestsOf } from '../../scripts/lib/tools/manifests.ts';
import { envoyBinary } from '../support/envoy.ts';
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
                  { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, direct_response: { status: 200 } }] },
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

async function validated(one: Json): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-mesh-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'envoy.json');
  const clusters = [{ name: 'postern', type: 'STATIC', load_assignment: { cluster_name: 'postern' } }];
  await writeFile(file, JSON.stringify({ static_resources: { listeners: [one], clusters } }));
  const { stdout, stderr } = await promisify(execFile)(await envoyBinary(), ['--mode', 'validate', '-c', file]);
  return stdout + stderr;
}

/** As EnvoyFilter's MERGE does by Protobuf: maps merge, lists append, the rest is replaced. */
function merge(target: unknown, patch: unknown): unknown {
  if (Array.isArray(target) && Array.isArray(patch)) return [...target, ...patch];
  if (!isMap(target) || !isMap(patch)) return patch;
  const merged: Json = { ...target };
  for (const [name, value] of Object.entries(patch)) merged[name] = name in target ? merge(target[name], value) : value;
  return merged;
}

function isMap(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function httpFilters(one: Json): unknown[] {
  const filters = at(one, 'filter_chains', 0, 'filters', 0, 'typed_config', 'http_filters');
  if (!Array.isArray(filters)) throw new Error('no filters');
  return filters;
}

function put(target: unknown, steps: readonly (string | number)[], value: unknown): void {
  const [last, ...before] = steps.toReversed();
  const parent = at(target, ...before.toReversed());
  if (typeof parent !== 'object' || parent === null || last === undefined) throw new Error(`nothing at ${steps.join('.')}`);
  Object.assign(parent, { [last]: value });
}

function applyEnvoyFilter(filter: Manifest): Json {
  let one: unknown = listener(EXT_AUTHZ);
  for (const patch of listAt(filter, 'spec', 'configPatches')) {
    const value = at(patch, 'patch', 'value');
    const current = one;
    if (!isMap(current)) throw new Error('no listener');
    switch (`${textAt(patch, 'applyTo')} ${textAt(patch, 'patch', 'operation')}`) {
      case 'LISTENER MERGE':
        one = merge(current, value);
        break;
      case 'NETWORK_FILTER MERGE':
        put(current, ['filter_chains', 0, 'filters', 0], merge(at(current, 'filter_chains', 0, 'filters', 0), value));
        break;
      case 'HTTP_FILTER MERGE': {
        const name = textAt(patch, 'match', 'listener', 'filterChain', 'filter', 'subFilter', 'name');
        const index = httpFilters(current).findIndex((http) => at(http, 'name') === name);
        put(httpFilters(current), [index], merge(httpFilters(current)[index], value));
        break;
      }
      case 'HTTP_FILTER INSERT_BEFORE':
        httpFilters(current).splice(-1, 0, value);
        break;
      default:
        throw new Error('an operation that this test does not know');
    }
  }
  if (!isMap(one)) throw new Error('no listener');
  return one;
}

/** The paths that the chart uses, and no others. */
function applyPatchPolicy(policy: Manifest, checkName: string): Json {
  const one = listener(checkName);
  for (const patch of listAt(policy, 'spec', 'jsonPatches')) {
    expect([textAt(patch, 'type'), textAt(patch, 'name'), textAt(patch, 'operation', 'op')]).toEqual([
      'type.googleapis.com/envoy.config.listener.v3.Listener',
      'ai/ai/http',
      'add',
    ]);
    const value = at(patch, 'operation', 'value');
    const member = textAt(patch, 'operation', 'path').slice(1);
    switch (textAt(patch, 'operation', 'jsonPath')) {
      case `..http_filters[?(@.name=='${checkName}')].typed_config`:
        put(httpFilters(one)[0], ['typed_config', member], value);
        break;
      case `..filters[?(@.name=='${HCM}')].typed_config`:
        put(one, ['filter_chains', 0, 'filters', 0, 'typed_config', member], value);
        break;
      case "..http_filters[?(@.name=='envoy.filters.http.router')]":
        httpFilters(one).splice(-1, 0, value);
        break;
      default:
        throw new Error('a path that this test does not know');
    }
  }
  return one;
}

const RAW = {
  failure_mode_allow: false,
  status_on_error: { code: 'ServiceUnavailable' },
  encode_raw_headers: true,
  validate_mutations: true,
};

describe('the full profiles', () => {
  it('Envoy takes a listener with the EnvoyFilter, and the check on it is raw', async () => {
    const made = applyEnvoyFilter(only(of('istio-full'), 'EnvoyFilter'));
    expect(await validated(made)).toContain('OK');
    expect(at(httpFilters(made)[0], 'typed_config')).toMatchObject({
      ...RAW,
      with_request_body: { max_request_bytes: 1_048_576, allow_partial_message: true, pack_as_bytes: true },
    });
    expect(httpFilters(made).map((filter) => at(filter, 'name'))).toEqual([
      EXT_AUTHZ,
      'postern.usage',
      'envoy.filters.http.router',
    ]);
    expect(at(made, 'per_connection_buffer_limit_bytes')).toBe(2 * 1_048_576);
  });

  it('Envoy takes a listener with the EnvoyPatchPolicy, and the check on it is raw', async () => {
    const made = applyPatchPolicy(only(of('envoy-gateway-full'), 'EnvoyPatchPolicy'), `${EXT_AUTHZ}/securitypolicy/ai/postern`);
    expect(await validated(made)).toContain('OK');
    expect(at(httpFilters(made)[0], 'typed_config')).toMatchObject({
      ...RAW,
      with_request_body: { max_request_bytes: 16_777_216, allow_partial_message: true, pack_as_bytes: true },
    });
    expect(
      httpFilters(made)
        .map((filter) => at(filter, 'name'))
        .slice(1),
    ).toEqual(['postern.usage', 'envoy.filters.http.router']);
  });

  it('names in its patches the SecurityPolicy that the chart makes', () => {
    const policy = only(of('envoy-gateway-full'), 'SecurityPolicy');
    expect([policy.metadata.namespace, policy.metadata.name]).toEqual(['ai', 'postern']);
  });

  it('Envoy takes the configuration of the sidecar, and finds the gate on the socket of the shared volume', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'postern-sidecar-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const text = textAt(only(of('sidecar'), 'ConfigMap', 'postern-envoy'), 'data', 'envoy.yaml');
    expect(text).toContain('/run/postern/gate.sock');
    expect(textAt(only(of('sidecar'), 'ConfigMap', 'postern'), 'data', 'gate.yaml')).toContain('unix:/run/postern/gate.sock');
    await writeFile(join(folder, 'envoy.yaml'), text);
    const { stdout, stderr } = await promisify(execFile)(await envoyBinary(), [
      '--mode',
      'validate',
      '-c',
      join(folder, 'envoy.yaml'),
    ]);
    expect(stdout + stderr).toContain('OK');
  });
});

describe.each(['istio-plain', 'istio-full'])('the chart with %s', (name) => {
  it('names a provider in its AuthorizationPolicy CUSTOM, and matches every request', () => {
    const policy = only(of(name), 'AuthorizationPolicy');
    expect(at(policy, 'spec', 'action')).toBe('CUSTOM');
    expect(textAt(policy, 'spec', 'provider', 'name')).not.toBe('');
    expect(at(policy, 'spec', 'rules')).toEqual([{}]);
  });
});

describe.each(['envoy-gateway-plain', 'envoy-gateway-full'])('the chart with %s', (name) => {
  it('answers 503 when Postern does not, and reaches Postern across namespaces', () => {
    expect(at(only(of(name), 'SecurityPolicy'), 'spec', 'extAuth')).toMatchObject({ failOpen: false, statusOnError: 503 });
    const grant = only(of(name), 'ReferenceGrant');
    expect(grant.metadata.namespace).toBe(NAMESPACE);
    const kinds = listAt(grant, 'spec', 'from').map((from) => at(from, 'kind'));
    expect(kinds).toEqual(expect.arrayContaining(['SecurityPolicy', 'EnvoyProxy']));
  });
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
    expect(at(only(of(name), kind), 'spec')).toEqual(at(only(shown, kind), 'spec'));
  },
);
