/**
 * Values that charts of this field have: image registry, umbrella charts, IPv6, TLS, probes and volumes of Envoy,
 * budgets, network policies.
 */

import { randomBytes } from 'node:crypto';
import { cp, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished, test, vi } from 'vitest';
import { parse, stringify } from 'yaml';
import { findCrds } from '../../scripts/lib/tools/crds.ts';
import { findKubernetesValidate, strictSchemas } from '../../scripts/lib/tools/kubernetes-validate.ts';
import {
  createManifestValidator,
  type Manifest,
  type ManifestValidator,
  manifestsOf,
} from '../../scripts/lib/tools/manifests.ts';
import { placeAddresses } from '../../src/cli/envoy-config.ts';
import { eventually } from '../server/support/eventually.ts';
import { makeAuthority } from '../support/certificates.ts';
import { startConfig } from '../support/envoy.ts';
import { freePort } from '../support/ports.ts';
import { at, containersOf, listAt, only, podSpecOf, textAt } from './objects.ts';
import { CHART, found, helm, MINIMAL, NAMESPACE, ROOT } from './support.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 300_000 });

const SIDECAR = { mode: 'sidecar', envoy: { upstream: 'platform.ai.svc:8081' } };

let validator: ManifestValidator;
beforeAll(async () => {
  const [kubernetes, crds] = [await findKubernetesValidate(), await findCrds()];
  validator = createManifestValidator(strictSchemas(found(kubernetes)), found(crds));
});

async function temporary(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-options-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Renders the chart with the values, and validates every object. */
async function rendered(values: object): Promise<readonly Manifest[]> {
  const file = join(await temporary(), 'values.yaml');
  await writeFile(file, stringify(values));
  const { ok, output } = await helm('template', 'postern', CHART, '-n', NAMESPACE, ...MINIMAL, '-f', file);
  if (!ok) throw new Error(output);
  expect(await validator.validate(output)).toEqual([]);
  return manifestsOf(output);
}

function containerOf(manifests: readonly Manifest[], deployment: string, name: string): unknown {
  return containersOf(podSpecOf(only(manifests, 'Deployment', deployment))).find((one) => at(one, 'name') === name);
}

test.each([['central'], ['sidecar']])(
  'labels and annotations that the chart sets itself are in each object once, in the mode %s',
  async (mode) => {
    const own = Object.fromEntries(
      ['name', 'instance', 'version', 'managed-by', 'part-of', 'component'].map((name) => [
        `app.kubernetes.io/${name}`,
        'theirs',
      ]),
    );
    const labels = { ...own, 'helm.sh/chart': 'theirs' };
    const checksums = { 'checksum/config': 'theirs', 'checksum/secret': 'theirs', 'checksum/envoy': 'theirs' };
    const ofMetrics = { ...labels, release: 'prometheus' };
    const values = {
      commonLabels: { ...labels, team: 'ai', tier: 'common', release: 'common', 'postern/metrics': 'theirs' },
      podLabels: { ...labels, tier: 'pod' },
      podAnnotations: { 'kubectl.kubernetes.io/default-container': 'theirs', ...checksums, note: 'kept' },
      bootstrap: { password: 'correct horse battery staple' },
      metrics: {
        serviceMonitor: { enabled: true, labels: ofMetrics },
        prometheusRule: { enabled: true, labels: ofMetrics },
        dashboard: { enabled: true, labels: ofMetrics },
      },
    };
    const manifests = await rendered(mode === 'sidecar' ? { ...values, ...SIDECAR } : values);
    for (const manifest of manifests) {
      const shown = at(manifest, 'metadata', 'labels');
      expect(shown).toMatchObject({ team: 'ai', tier: 'common', 'app.kubernetes.io/part-of': 'theirs' });
      expect(at(shown, 'app.kubernetes.io/instance')).toBe('postern');
      const isOfMetrics = at(shown, 'app.kubernetes.io/component') === 'metrics';
      expect(at(shown, 'release')).toBe(isOfMetrics ? 'prometheus' : 'common');
    }
    expect(at(only(manifests, 'Service', 'postern-admin'), 'metadata', 'labels', 'postern/metrics')).toBe('true');
    const deployment = only(manifests, 'Deployment', 'postern');
    const pod = at(deployment, 'spec', 'template', 'metadata');
    expect(pod).toMatchObject({
      labels: { tier: 'pod', team: 'ai', ...Object(at(deployment, 'spec', 'selector', 'matchLabels')) },
      annotations: {
        'kubectl.kubernetes.io/default-container': 'postern',
        'checksum/config': expect.stringMatching(/^[0-9a-f]{64}$/),
        'checksum/secret': expect.stringMatching(/^[0-9a-f]{64}$/),
        note: 'kept',
      },
    });
  },
);

test.each([['central'], ['sidecar']])(
  'a name that YAML would read as a number or a truth value stays a text, in the mode %s',
  async (mode) => {
    const own = { name: '123', key: '456' };
    const mesh = { istio: { profile: 'plain', gateway: '123', provider: '123', usageProvider: '456' } };
    const tls = { enabled: true, existingSecret: '123' };
    const envoyGateway = { profile: 'plain', gateway: '123', namespace: '456', clientSecret: '123' };
    const values = {
      nameOverride: '123',
      fullnameOverride: 'true',
      commonLabels: { 'app.kubernetes.io/part-of': '123' },
      imagePullSecrets: ['123', { name: '456' }],
      database: { existingSecret: own },
      secretKey: { existingSecret: own },
      bootstrap: { existingSecret: own },
      secretFiles: [{ env: 'POSTERN_LDAP_BIND_PASSWORD_FILE', ...own }],
      migrations: { mode: 'job' },
      autoscaling: { enabled: true },
      priorityClassName: '123',
      ingress: { enabled: true, className: '123', hosts: ['a.example'] },
      networkPolicy: { enabled: true },
      metrics: { serviceMonitor: { enabled: true }, prometheusRule: { enabled: true }, dashboard: { enabled: true } },
    };
    const folder = await temporary();
    const more =
      mode === 'sidecar'
        ? [{ mode, envoy: { existingConfigMap: '123', tls: { existingSecret: '123' } } }]
        : [{ mesh }, { mesh: { envoyGateway }, tls }, { serviceAccount: { create: false, name: '123' } }];
    for (const [index, one] of more.entries()) {
      const file = join(folder, `${index}.yaml`);
      await writeFile(file, stringify({ ...values, ...one }));
      const { ok, output } = await helm('template', '123', CHART, '-n', '456', '-f', file);
      expect(ok, output).toBe(true);
      expect(await validator.validate(output)).toEqual([]);
    }
  },
);

describe('images', () => {
  it('come from a registry that has a value of its own', async () => {
    const image = { registry: 'registry.example.com', tag: '9' };
    const manifests = await rendered({
      ...SIDECAR,
      image,
      envoy: { ...SIDECAR.envoy, image: { registry: 'mirror.example.com/hub/' } },
    });
    expect(at(containerOf(manifests, 'postern', 'postern'), 'image')).toBe('registry.example.com/postern:9');
    expect(at(containerOf(manifests, 'postern-envoy', 'envoy'), 'image')).toMatch(
      /^mirror\.example\.com\/hub\/envoyproxy\/envoy:v/,
    );
  });

  it('are pulled with Secrets that are given as names or as Kubernetes writes them', async () => {
    const manifests = await rendered({ imagePullSecrets: ['one', { name: 'two' }] });
    expect(at(podSpecOf(only(manifests, 'Deployment')), 'imagePullSecrets')).toEqual([
      { name: 'one' },
      { name: 'two' },
    ]);
  });
});

test.each([[{}], [{ shadow: true }]])(
  'Envoy with %j checks the health at ports that the Services have',
  async (more) => {
    const manifests = await rendered({ ...SIDECAR, envoy: { ...SIDECAR.envoy, ...more } });
    const { static_resources } = parse(textAt(only(manifests, 'ConfigMap', 'postern-envoy'), 'data', 'envoy.yaml'));
    const checked = listAt(static_resources, 'clusters').filter(
      (cluster) => listAt(cluster, 'health_checks').length > 0,
    );
    expect(checked.map((cluster) => at(cluster, 'name'))).toContain('postern-grpc');
    for (const cluster of checked) {
      const endpoint = at(cluster, 'load_assignment', 'endpoints', 0, 'lb_endpoints', 0, 'endpoint');
      const { address, port_value } = Object(at(endpoint, 'address', 'socket_address'));
      const service = manifests.find(({ kind, metadata }) => kind === 'Service' && metadata.name === address);
      if (service === undefined) continue;
      const port = at(endpoint, 'health_check_config', 'port_value') ?? port_value;
      expect(listAt(service, 'spec', 'ports').map((one) => at(one, 'port'))).toContain(port);
    }
  },
);

it('pods get a checksum that the chart does not have', async () => {
  const podAnnotations = { 'checksum/secret': 'a', 'checksum/directory': 'b' };
  const manifests = await rendered({ ...SIDECAR, podAnnotations });
  for (const name of ['postern', 'postern-envoy']) {
    const pod = only(manifests, 'Deployment', name);
    expect(at(pod, 'spec', 'template', 'metadata', 'annotations')).toMatchObject(podAnnotations);
  }
});

it('each container of Postern gets the environment of ConfigMaps and Secrets, and no other container does', async () => {
  const extraEnvFrom = [
    { secretRef: { name: 'proxy' } },
    { configMapRef: { name: 'region', optional: true }, prefix: 'X_' },
  ];
  const manifests = await rendered({ ...SIDECAR, extraEnvFrom, migrations: { mode: 'job' } });
  const got = manifests
    .flatMap((one) => containersOf(podSpecOf(one)))
    .filter((one) => at(one, 'envFrom') !== undefined)
    .map((one) => at(one, 'name'));
  expect(got.sort()).toEqual(['gate', 'migrate', 'postern']);
  expect(at(containerOf(manifests, 'postern-envoy', 'gate'), 'envFrom')).toEqual(extraEnvFrom);
});

it('a chart that has this one as a dependency switches it on and off by its condition', async () => {
  const folder = await temporary();
  await mkdir(join(folder, 'charts'));
  await cp(CHART, join(folder, 'charts/postern'), { recursive: true });
  const dependencies = [{ name: 'postern', version: '*', condition: 'postern.enabled' }];
  await writeFile(
    join(folder, 'Chart.yaml'),
    stringify({ apiVersion: 'v2', name: 'platform', version: '1.0.0', dependencies }),
  );
  const values = { database: { existingSecret: { name: 'db' } }, secretKey: { existingSecret: { name: 'key' } } };
  await writeFile(join(folder, 'values.yaml'), stringify({ global: { region: 'eu' }, postern: values }));
  const umbrella = (...more: readonly string[]) => helm('template', 'platform', folder, '-n', NAMESPACE, ...more);
  const on = await umbrella('--set', 'postern.enabled=true');
  expect(manifestsOf(on.output).some(({ kind }) => kind === 'Deployment')).toBe(true);
  const off = await umbrella('--set', 'postern.enabled=false');
  expect([off.ok, off.output.trim()]).toEqual([true, '']);
});

it.each([
  [{ minAvailable: 1 }, { minAvailable: 1 }],
  [{ minAvailable: 0 }, { minAvailable: 0 }],
  [{ minAvailable: '50%' }, { minAvailable: '50%' }],
  [{ maxUnavailable: '25%' }, { maxUnavailable: '25%' }],
])('a disruption budget of %j has one bound', async (podDisruptionBudget, bound) => {
  const spec = at(only(await rendered({ podDisruptionBudget }), 'PodDisruptionBudget'), 'spec');
  expect({ minAvailable: at(spec, 'minAvailable'), maxUnavailable: at(spec, 'maxUnavailable') }).toEqual({
    minAvailable: undefined,
    maxUnavailable: undefined,
    ...bound,
  });
});

it('the Ingress and the HTTPRoute lead every public path to Postern, also with a slash at its end', async () => {
  const manifests = await rendered({
    ingress: { enabled: true, hosts: ['ai.example.com'] },
    httpRoute: { enabled: true, parentRefs: [{ name: 'ai' }] },
  });
  const paths = [
    ...['/v1/auth', '/v1/iam', '/console', '/docs', '/openapi.json'],
    ...['/.well-known/jwks.json', '/.well-known/openid-configuration'],
  ];
  const ofIngress = listAt(only(manifests, 'Ingress'), 'spec', 'rules', 0, 'http', 'paths');
  expect(ofIngress.map((one) => [at(one, 'pathType'), at(one, 'path')])).toEqual(paths.map((path) => ['Prefix', path]));
  const ofRoute = listAt(only(manifests, 'HTTPRoute'), 'spec', 'rules', 0, 'matches');
  expect(ofRoute).toEqual(paths.map((value) => ({ path: { type: 'PathPrefix', value } })));
});

it('a Deployment of the type Recreate has no rolling update, which Kubernetes rejects beside it', async () => {
  for (const mode of [{}, SIDECAR]) {
    const manifests = await rendered({ ...mode, strategy: { type: 'Recreate' } });
    const deployments = manifests.filter(({ kind }) => kind === 'Deployment');
    expect(deployments.length).toBeGreaterThan(0);
    for (const one of deployments) expect(at(one, 'spec', 'strategy')).toEqual({ type: 'Recreate' });
  }
});

it('a ServiceMonitor relabels targets and metrics', async () => {
  const relabelings = [{ sourceLabels: ['__meta_kubernetes_pod_node_name'], targetLabel: 'node' }];
  const manifests = await rendered({
    metrics: { serviceMonitor: { enabled: true, relabelings }, prometheusRule: { enabled: true } },
  });
  expect(at(only(manifests, 'ServiceMonitor'), 'spec', 'endpoints', 0, 'relabelings')).toEqual(relabelings);
  // A relabeling may change the job, which the rule then cannot know.
  expect(JSON.stringify(only(manifests, 'PrometheusRule'))).toContain('absent(postern_build_info)');
});

describe('IPv6', () => {
  it('is in every Service and in every listener of Postern', async () => {
    const service = { ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv6', 'IPv4'] };
    for (const mode of [{}, SIDECAR]) {
      const manifests = await rendered({ ...mode, listenAddress: '::', service });
      const services = manifests.filter(({ kind }) => kind === 'Service');
      expect(services.length).toBeGreaterThan(2);
      for (const { spec } of services) expect(spec).toMatchObject(service);
      const data = JSON.stringify(at(only(manifests, 'ConfigMap', 'postern'), 'data'));
      expect(data).toContain("'[::]:9090'");
      expect(data).not.toContain('0.0.0.0');
    }
  });
});

describe("the sidecar's Envoy", () => {
  it('has probes, annotations and volumes of its own', async () => {
    const probe = { httpGet: { path: '/ready', port: 9901 }, periodSeconds: 7 };
    const manifests = await rendered({
      ...SIDECAR,
      podAnnotations: { 'example.com/a': 'all', 'example.com/b': 'all' },
      envoy: {
        ...SIDECAR.envoy,
        probes: { startup: probe, liveness: probe, readiness: probe },
        podAnnotations: { 'example.com/a': 'envoy' },
        serviceAnnotations: { 'example.com/scheme': 'internal' },
        extraVolumes: [{ name: 'wasm', configMap: { name: 'wasm' } }],
        extraVolumeMounts: [{ name: 'wasm', mountPath: '/etc/wasm', readOnly: true }],
      },
    });
    const envoy = containerOf(manifests, 'postern-envoy', 'envoy');
    expect(envoy).toMatchObject({ startupProbe: probe, livenessProbe: probe, readinessProbe: probe });
    expect(listAt(envoy, 'volumeMounts')).toContainEqual({ name: 'wasm', mountPath: '/etc/wasm', readOnly: true });
    const deployment = only(manifests, 'Deployment', 'postern-envoy');
    expect(listAt(podSpecOf(deployment), 'volumes')).toContainEqual({ name: 'wasm', configMap: { name: 'wasm' } });
    expect(at(deployment, 'spec', 'template', 'metadata', 'annotations')).toMatchObject({
      'example.com/a': 'envoy',
      'example.com/b': 'all',
    });
    expect(only(manifests, 'Service', 'postern-envoy').metadata.annotations).toEqual({
      'example.com/scheme': 'internal',
    });
    expect(
      listAt(podSpecOf(only(manifests, 'Deployment', 'postern')), 'volumes').map((one) => at(one, 'name')),
    ).not.toContain('wasm');
  });

  it('has only the readiness probe of its port without any of these', async () => {
    const envoy = containerOf(await rendered(SIDECAR), 'postern-envoy', 'envoy');
    expect(at(envoy, 'readinessProbe', 'tcpSocket')).toEqual({ port: 'proxy' });
    expect([at(envoy, 'startupProbe'), at(envoy, 'livenessProbe')]).toEqual([undefined, undefined]);
  });

  it('serves HTTPS over IPv4 and IPv6, and takes a renewed certificate without a restart', async () => {
    const port = await freePort();
    const manifests = await rendered({
      ...SIDECAR,
      listenAddress: '::',
      envoy: { ...SIDECAR.envoy, port, tls: { existingSecret: 'edge' } },
    });
    const folder = await temporary();
    const authority = makeAuthority();
    await mountSecret(folder, authority.issue('first.example.com'));
    const data = at(only(manifests, 'ConfigMap', 'postern-envoy'), 'data');
    const placed = (key: string): string =>
      textAt(data, key).replaceAll('/etc/envoy/', `${folder}/`).replaceAll('/etc/envoy-tls', join(folder, 'tls'));
    await writeFile(join(folder, 'tls.yaml'), placed('tls.yaml'));
    const places = {
      'postern-grpc': `unix:${folder}/gate.sock`,
      'postern-http': '127.0.0.1:1',
      upstream: '127.0.0.1:1',
    };
    const edge = await startConfig(placeAddresses(placed('envoy.yaml'), { admin: '127.0.0.1:0', places }));
    onTestFinished(() => edge.stop());
    for (const host of ['127.0.0.1', '::1']) {
      // Nothing decides behind this Envoy.
      expect(await statusOf(host, port, authority.certPem, 'first.example.com'), host).toBe(503);
    }
    await expect(statusOf('::1', port, authority.certPem, 'second.example.com')).rejects.toThrow();
    await mountSecret(folder, authority.issue('second.example.com'));
    await eventually('Envoy presents the renewed certificate', () =>
      statusOf('::1', port, authority.certPem, 'second.example.com'),
    );
  });
});

describe('the policy that lets only the gateway reach the platform', async () => {
  const guide = await readFile(join(ROOT, 'docs/kubernetes.md'), 'utf8');
  const section = guide.split('### Only the gateway reaches the platform')[1]?.split('\n## ')[0] ?? '';
  const values: unknown = parse(/```yaml\n([\s\S]*?)```/.exec(section)?.[1] ?? '');
  const peers = [...section.matchAll(/\| `(\{ [^`]*\})` \|/g)].map(([, peer = '']): unknown => parse(peer));

  it('admits the pods of Envoy alone in the mode sidecar', async () => {
    const manifests = await rendered({ ...SIDECAR, ...Object(values) });
    const wanted = at(
      only(manifests, 'NetworkPolicy', 'platform'),
      'spec',
      'ingress',
      0,
      'from',
      0,
      'podSelector',
      'matchLabels',
    );
    const chosen = manifests
      .filter(({ kind }) => kind === 'Deployment')
      .filter((one) => isSubset(Object(wanted), Object(at(one, 'spec', 'template', 'metadata', 'labels'))));
    expect(chosen.map(({ metadata }) => metadata.name)).toEqual(['postern-envoy']);
  });

  it('is valid with the peer of each mesh', async () => {
    expect(peers).toHaveLength(2);
    for (const peer of peers) {
      const policy = at(values, 'extraObjects', 0);
      const spec = { ...Object(at(policy, 'spec')), ingress: [{ from: [peer] }] };
      expect(await validator.validate(stringify({ ...Object(policy), spec }))).toEqual([]);
    }
  });

  it.each(['istio', 'envoy-gateway', 'ai-gateway', 'kgateway', 'agentgateway'])(
    'is a step of the guide %s',
    async (mesh) => {
      const text = await readFile(join(ROOT, 'docs', `${mesh}.md`), 'utf8');
      expect(text).toMatch(/^\*\*\d\. Let only the gateway reach the platform(, and try it)?\.\*\*/m);
      expect(text).toContain('(kubernetes.md#only-the-gateway-reaches-the-platform)');
    },
  );
});

function isSubset(part: object, whole: object): boolean {
  return Object.entries(part).every(([key, value]) => at(whole, key) === value);
}

/** As the kubelet mounts a Secret: the folder of the files is replaced as a whole, by a link. */
async function mountSecret(
  folder: string,
  { certPem, keyPem }: { readonly certPem: string; readonly keyPem: string },
): Promise<void> {
  const tls = join(folder, 'tls');
  const version = `..${randomBytes(4).toString('hex')}`;
  await mkdir(join(tls, version), { recursive: true });
  await writeFile(join(tls, version, 'tls.crt'), certPem);
  await writeFile(join(tls, version, 'tls.key'), keyPem);
  await symlink(version, join(tls, '..data_tmp'));
  await rename(join(tls, '..data_tmp'), join(tls, '..data'));
  for (const name of ['tls.crt', 'tls.key'])
    await symlink(join('..data', name), join(tls, name)).catch(() => undefined);
}

/** The status of the answer of a server whose certificate has the name. */
function statusOf(host: string, port: number, ca: string, servername: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request({ host, port, path: '/v1/models', ca, servername, agent: false }, (answer) => {
      answer.resume().once('end', () => resolve(answer.statusCode));
    });
    asked.once('error', reject).end();
  });
}
