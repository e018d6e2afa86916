/** The chart's values: what is wrong is refused in words, and documentation, schema and values agree. */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { configPaths } from '../../scripts/lib/chart/config-schema.ts';
import { madeFiles } from '../../scripts/lib/chart/made.ts';
import { documentValues } from '../../scripts/lib/chart/values-docs.ts';
import { schemaHas } from '../../scripts/lib/chart/values-schema.ts';
import { NODE_FLAGS } from '../../scripts/lib/node-flags.mjs';
import { manifestsOf } from '../../scripts/lib/tools/manifests.ts';
import { load, loaded } from '../config/support/load.ts';
import { at, listAt, only, textAt } from './objects.ts';
import { CHART, helm, MINIMAL, matrix, ROOT } from './support.ts';

const WRONG: readonly (readonly [set: string, refusal: string])[] = [
  ['replicas=3', "additional properties 'replicas' not allowed"],
  ['mode=daemonset', "at '/mode': value must be one of 'central', 'sidecar'"],
  ['replicaCount=two', "at '/replicaCount': got string, want integer"],
  ['replicaCount=-1', "at '/replicaCount': minimum: got -1, want 0"],
  ['image.pullPolicy=Sometimes', "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'"],
  ['image.digest=abc', "at '/image/digest': 'abc' does not match pattern"],
  ['image.repository=', "at '/image/repository': minLength: got 0, want 1"],
  ['image.name=postern', "at '/image': additional properties 'name' not allowed"],
  ['service.grpc.port=0', "at '/service/grpc/port': minimum: got 0, want 1"],
  ['service.http.port=70000', "at '/service/http/port': maximum: got 70,000, want 65,535"],
  [
    'service.grpc.type=Headless',
    "at '/service/grpc/type': value must be one of 'ClusterIP', 'NodePort', 'LoadBalancer'",
  ],
  ['config.workers=many', "at '/config/workers': got string, want integer"],
  ['config.workers=65', "at '/config/workers': maximum: got 65, want 64"],
  ['config.log.level=loud', "at '/config/log/level': value must be one of 'fatal', 'error'"],
  ['config.inspect.max-body=4 MB', "at '/config/inspect/max-body': '4 MB' does not match pattern"],
  ['config.inspect.caller-rate=16', "at '/config/inspect/caller-rate': minimum: got 16, want"],
  ['config.drain.notice=soon', "at '/config/drain/notice': 'soon' does not match pattern"],
  ['config.http.listen=0.0.0.0:1', "at '/config/http': additional properties 'listen' not allowed"],
  ['config.secret-key=x', "at '/config': additional properties 'secret-key' not allowed"],
  ['config.ldap.bind-password=x', "at '/config/ldap': additional properties 'bind-password' not allowed"],
  ['config.forward-credential=maybe', "at '/config/forward-credential': got string, want boolean"],
  ['secretKey.value=short', "at '/secretKey/value': minLength: got 5, want 32"],
  ['bootstrap.password=short', "at '/bootstrap/password': minLength: got 5, want 15"],
  ['secretFiles[0].env=PASSWORD', "at '/secretFiles/0': missing properties 'name', 'key'"],
  ['migrations.mode=hook', "at '/migrations/mode': value must be one of 'server', 'job'"],
  ['probes.readiness.type=exec', "at '/probes/readiness/type': value must be one of 'http', 'grpc'"],
  ['tls.enabled=sure', "at '/tls/enabled': got string, want boolean"],
  ['tls.certManager.duration=90 days', "at '/tls/certManager/duration': '90 days' does not match pattern"],
  ['mesh.istio.profile=best', "at '/mesh/istio/profile': value must be one of 'none', 'plain', 'full'"],
  ['mesh.maxRequestBytes=512', "at '/mesh/maxRequestBytes': minimum: got 512, want 1,024"],
  ['mesh.timeout=0s', "at '/mesh/timeout': '0s' does not match pattern"],
  ['envoy.upstream=platform:65536', "at '/envoy/upstream': 'platform:65536' does not match pattern"],
  ['envoy.upstream=http://platform', "at '/envoy/upstream': 'http://platform' does not match pattern"],
  ['topologySpread.whenUnsatisfiable=Never', "at '/topologySpread/whenUnsatisfiable': value must be one of"],
  [
    'metrics.prometheusRule.runbookBaseUrl=docs',
    "at '/metrics/prometheusRule/runbookBaseUrl': 'docs' does not match pattern",
  ],
  ['imagePullSecrets[0].secret=registry', "at '/imagePullSecrets/0': 'anyOf' failed"],
  ['listenAddress=127.0.0.1', "at '/listenAddress': value must be one of '0.0.0.0', '::'"],
  ['service.ipFamilies[0]=IPv5', "at '/service/ipFamilies/0': value must be one of 'IPv4', 'IPv6'"],
  ['service.ipFamilyPolicy=DualStack', "at '/service/ipFamilyPolicy': value must be one of '', 'SingleStack'"],
  ['podDisruptionBudget.minAvailable=half', "at '/podDisruptionBudget/minAvailable': 'half' does not match pattern"],
  ['extraEnvFrom[0]=proxy', "at '/extraEnvFrom/0': got string, want object"],
  ['envoy.probes.ready.port=1', "at '/envoy/probes': additional properties 'ready' not allowed"],
  ['ingress.hosts=example.com', "at '/ingress/hosts': got string, want array"],
  ['commonLabels.a.b=c', "at '/commonLabels/a': got object, want string"],
];

const NAMES = await matrix();
const SIDECAR: readonly string[] = ['mode=sidecar', 'envoy.upstream=a:1'];
const CERT_MANAGER: readonly string[] = ['tls.certManager.enabled=true', 'tls.certManager.issuerRef.name=a'];

/** Right one by one, and wrong together. */
const TOGETHER: readonly (readonly [set: readonly string[], refusal: string])[] = [
  [['database.existingSecret.name='], 'database: set existingSecret.name to a Secret'],
  [['secretKey.existingSecret.name='], 'secretKey: set existingSecret.name to a Secret'],
  [['database.url=postgresql://a@b/c'], 'database: set url or existingSecret.name, not both.'],
  [['database.existingSecret.name=', 'database.url=mysql://a:hidden@b/c'], 'database.url: expected postgresql://'],
  [['tls.enabled=true'], 'tls.enabled: set tls.existingSecret, or'],
  [['tls.enabled=true', 'tls.certManager.enabled=true'], 'tls.certManager.issuerRef.name: name the issuer'],
  [['tls.enabled=true', 'tls.existingSecret=t', 'probes.readiness.type=grpc'], "the kubelet's gRPC probe has no TLS"],
  [['tls.enabled=true', 'tls.existingSecret=t', 'mode=sidecar'], 'the mode sidecar listens on a Unix socket'],
  [
    ['tls.enabled=true', 'tls.existingSecret=t', 'mesh.envoyGateway.profile=plain', 'mesh.envoyGateway.gateway=ai'],
    'mesh.envoyGateway.clientSecret: name the Secret',
  ],
  [
    [
      ...['tls.enabled=true', 'tls.certManager.enabled=true', 'tls.certManager.issuerRef.name=a'],
      ...['mesh.envoyGateway.profile=plain', 'mesh.envoyGateway.gateway=ai', 'mesh.envoyGateway.namespace=ai'],
    ],
    'Set it to ClusterIssuer.',
  ],
  [
    ['tls.enabled=true', 'tls.existingSecret=t', 'mesh.istio.profile=plain', 'mesh.istio.gateway=ai'],
    "Istio's own mutual TLS protects checks",
  ],
  [['envoy.shadow=true'], "envoy.shadow: it is for the chart's own configuration"],
  [['mode=sidecar', 'envoy.config=x', 'envoy.shadow=true'], "envoy.shadow: it is for the chart's own configuration"],
  ...(['port', 'adminPort'] as const).map(
    (name) =>
      [
        ['mode=sidecar', 'envoy.upstream=a:1', `envoy.${name}=9090`],
        'envoy.port and envoy.adminPort must differ from each other and from 9090',
      ] as const,
  ),
  [
    ['mode=sidecar', 'envoy.upstream=a:1', 'envoy.port=9901'],
    'envoy.port and envoy.adminPort must differ from each other and from 9090',
  ],
  [['mode=sidecar'], "envoy.upstream: set it to the platform's address (host:port)"],
  [
    ['mode=sidecar', 'envoy.upstream=a:1', 'config.inspect.max-body=16 MiB'],
    'envoy.config: with config.inspect.max-body, set',
  ],
  [
    [
      ...['mode=sidecar', 'envoy.upstream=a:1'],
      ...[
        'config.routes[0].method=POST',
        'config.routes[0].path=/v1/a',
        'config.routes[0].permission=a:b',
        'config.routes[0].model=body',
      ],
    ],
    'envoy.config: config.routes has POST /v1/a, which reads the body.',
  ],
  [['mesh.istio.profile=plain'], 'mesh.istio.gateway: name the Gateway'],
  ...(['4194304', '4096 KiB', '4 MiB'] as const).map(
    (size) =>
      [
        ['mesh.istio.profile=plain', 'mesh.istio.gateway=ai', `config.inspect.max-body=${size}`],
        'mesh.maxRequestBytes: the proxy sends 1048576 bytes of a body, and config.inspect.max-body needs 4194304. Set it to 4194304.',
      ] as const,
  ),
  [
    ['mesh.istio.profile=plain', 'mesh.istio.gateway=ai', 'podLabels.sidecar\\.istio\\.io/inject=no'],
    "podLabels: without Istio's sidecar",
  ],
  [['mesh.envoyGateway.profile=full'], 'mesh.envoyGateway.gateway: name the Gateway'],
  [['enabled=false'], 'enabled: only a chart that has this one as a dependency'],
  [
    ['migrations.serverRole=postern'],
    'migrations.serverRole: set migrations.mode to job and migrations.existingSecret.name',
  ],
  [['migrations.serverRole=postern', 'migrations.mode=job'], 'migrations.serverRole: set migrations.mode to job and'],
  [['terminationGracePeriodSeconds=10'], 'must exceed preStopSeconds (5) and config.drain.notice (5 s) together'],
  [['autoscaling.enabled=true', 'autoscaling.minReplicas=20'], 'minReplicas must not exceed maxReplicas'],
  ...['team.a', 'Postern', '9lives'].map(
    (name) => [[`fullnameOverride=${name}`], `fullnameOverride: ${name} cannot begin the name of a Service.`] as const,
  ),
  [[...SIDECAR, 'envoy.readyPath=/ready'], 'envoy.readyPath: the admin interface of the chart'],
  [['tls.enabled=true', ...CERT_MANAGER, 'tls.certManager.duration=168h'], 'renewBefore (720h) must be shorter'],
  [['tls.enabled=true', ...CERT_MANAGER, 'tls.certManager.renewBefore=2160h'], 'renewBefore (2160h) must be shorter'],
  [CERT_MANAGER, 'tls.certManager.enabled: no certificate is issued while tls.enabled is false.'],
  ...['interval=5s', 'interval=9999ms', 'scrapeTimeout=1m'].map(
    (set) =>
      [
        ['metrics.serviceMonitor.enabled=true', `metrics.serviceMonitor.${set}`],
        'metrics.serviceMonitor: scrapeTimeout (',
      ] as const,
  ),
  ...['0', '0%'].map(
    (none) => [[`strategy.rollingUpdate.maxSurge=${none}`], 'maxSurge and maxUnavailable must not both be 0.'] as const,
  ),
  [[...SIDECAR, 'mesh.envoyGateway.admission.enabled=true'], 'need the gate as a Service. Set mode to central.'],
  [['config.drain.notice=1h'], 'must exceed preStopSeconds (5) and config.drain.notice (3600 s) together'],
  [['nameOverride=my_gate'], 'fullnameOverride: postern-my_gate cannot begin the name of a Service.'],
  [['ingress.enabled=true'], 'ingress.hosts: name at least one host.'],
  [['httpRoute.enabled=true'], 'httpRoute.parentRefs: name at least one Gateway.'],
];

function refusalOf(values: readonly string[]): Promise<{ readonly ok: boolean; readonly output: string }> {
  const sets = values.flatMap((value) =>
    /=(-?\d+|true|false)$/.test(value) ? ['--set', value] : [value.includes('[') ? '--set' : '--set-string', value],
  );
  return helm('template', 'postern', CHART, ...MINIMAL, ...sets);
}

describe('the schema of the values', () => {
  it('has at least 25 wrong values to refuse', () => {
    expect(WRONG.length).toBeGreaterThanOrEqual(25);
  });

  it('refuses every wrong value, and names each of those that are set together', async () => {
    const pathOf = (set: string): string => set.slice(0, set.indexOf('='));
    const isFirst = (set: string): boolean => WRONG.find(([other]) => pathOf(other) === pathOf(set))?.[0] === set;
    // A command takes one value of each path.
    for (const wrong of [WRONG.filter(([set]) => isFirst(set)), WRONG.filter(([set]) => !isFirst(set))]) {
      const { ok, output } = await refusalOf(wrong.map(([set]) => set));
      expect(ok).toBe(false);
      expect(wrong.filter(([, refusal]) => !output.includes(refusal))).toEqual([]);
    }
  });

  it('accepts each example of the reference of settings as it is written there, except what the chart sets itself', async () => {
    const page = await readFile(join(ROOT, 'docs/configuration.md'), 'utf8');
    const examples = [...page.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, yaml = '']) => yaml).join('');
    expect(examples).toContain('traces:');
    const folder = await mkdtemp(join(tmpdir(), 'postern-values-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const file = join(folder, 'values.yaml');
    await writeFile(file, `config:\n${examples.replaceAll(/^/gm, '  ')}\n`);
    const { output } = await helm('template', 'postern', CHART, ...MINIMAL, '-f', file);
    const refused = output.split('\n').filter((line) => line.includes("at '/"));
    expect(refused.length).toBeGreaterThan(3);
    expect(refused.filter((line) => !line.includes('additional properties'))).toEqual([]);
  });

  it('accepts the number 0 for a duration that may be 0, and a list of domains of a directory', async () => {
    const zeros = ['drain.notice', 'audit.retention', 'api-keys.retention'].map((path) => `config.${path}=0`);
    const { ok, output } = await refusalOf([...zeros, 'config.ldap.domain[0]=corp.example']);
    expect(ok, output).toBe(true);
    expect(output).toMatch(/^ {6}notice: 0$/m);
  });

  it('accepts a number of bytes for a size, also from a file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'postern-values-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const file = join(folder, 'values.yaml');
    const mesh = 'mesh: { maxRequestBytes: 16777216, istio: { profile: plain, gateway: ai } }';
    await writeFile(file, `config: { inspect: { max-body: 16777216 } }\n${mesh}\n`);
    const { ok, output } = await helm('template', 'postern', CHART, ...MINIMAL, '-f', file);
    expect(ok, output).toBe(true);
    const text = textAt(only(manifestsOf(output), 'ConfigMap'), 'data', 'postern.yaml');
    const secrets = { POSTERN_DATABASE_URL: 'postgresql://a@b/c', POSTERN_SECRET_KEY: 'k'.repeat(32) };
    expect(loaded(load(text, secrets)).config.inspect.maxBodyBytes).toBe(16_777_216);
  });

  it.each([
    [['mode=sidecar', 'envoy.config=a', 'envoy.readyPath=/ready']],
    [['tls.enabled=true', ...CERT_MANAGER, 'tls.certManager.duration=721h']],
    [['metrics.serviceMonitor.enabled=true', 'metrics.serviceMonitor.interval=10s']],
    [['strategy.rollingUpdate.maxSurge=0', 'strategy.rollingUpdate.maxUnavailable=1']],
    [['strategy.type=Recreate', 'strategy.rollingUpdate.maxSurge=0']],
  ])('accepts %j together', async (sets) => {
    const { ok, output } = await refusalOf(sets);
    expect(ok, output).toBe(true);
  });

  it('shows no secret in a refusal', async () => {
    expect((await refusalOf(['secretKey.value=hidden'])).output).not.toContain('hidden');
    expect((await refusalOf(['bootstrap.password=hidden'])).output).not.toContain('hidden');
    expect(
      (await refusalOf(['database.existingSecret.name=', 'database.url=mysql://a:hidden@b/c'])).output,
    ).not.toContain('hidden');
  });

  it('takes no unknown member in any map of the chart', async () => {
    const schema: unknown = JSON.parse(await readFile(join(CHART, 'values.schema.json'), 'utf8'));
    expect(openMaps(schema, '')).toEqual([]);
  });
});

describe('the chart', () => {
  it.each(TOGETHER)('refuses %j together', async (sets, refusal) => {
    const { ok, output } = await refusalOf(sets);
    expect(ok).toBe(false);
    expect(output).toContain(refusal);
  });

  it.each(NAMES)('passes helm lint --strict with the values %s', async (name) => {
    const { ok, output } = await helm('lint', '--strict', CHART, '-f', join(CHART, 'ci', `${name}-values.yaml`));
    expect(output).toContain('1 chart(s) linted, 0 chart(s) failed');
    expect(ok).toBe(true);
  });

  it('has the files that npm run chart writes', async () => {
    for (const [path, text] of await madeFiles(ROOT)) expect(await readFile(join(ROOT, path), 'utf8'), path).toBe(text);
  });

  it('documents every value, and the schema knows each', async () => {
    const { values, undocumented } = documentValues(await readFile(join(CHART, 'values.yaml'), 'utf8'));
    expect(undocumented).toEqual([]);
    expect(values.length).toBeGreaterThan(100);
    expect(values.map(({ path }) => path).filter((path) => !schemaHas(path))).toEqual([]);
  });

  it('takes every setting of the server but its own and secrets', () => {
    expect(configPaths().filter((path) => !schemaHas(['config', ...path.split('.')]))).toEqual([]);
  });

  it('starts Node with the flags of the other ways to start', async () => {
    const values: unknown = parse(await readFile(join(CHART, 'values.yaml'), 'utf8'));
    expect(listAt(values, 'image', 'command')).toEqual(['node', ...NODE_FLAGS, 'src/main.ts']);
  });

  it('has one version', async () => {
    const chart: unknown = parse(await readFile(join(CHART, 'Chart.yaml'), 'utf8'));
    expect(at(chart, 'appVersion')).toBe(at(chart, 'version'));
  });
});

/** Maps with named members that take others as well. Pieces of Kubernetes' own objects have no named members. */
function openMaps(schema: unknown, path: string): readonly string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const open =
    at(schema, 'properties') !== undefined &&
    at(schema, 'type') !== undefined &&
    at(schema, 'additionalProperties') !== false;
  return [
    ...(open ? [path] : []),
    ...Object.entries(schema).flatMap(([name, member]) => openMaps(member, `${path}/${name}`)),
  ];
}
