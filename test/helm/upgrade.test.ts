/**
 * Upgrades of an installed chart: the real helm asks an API for the Deployments that are there. The API is a small
 * server with these Deployments; scripts/lib/chart/cluster.ts upgrades on a real cluster.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Ran } from '../../scripts/lib/tools/cache.ts';
import { type Manifest, manifestsOf } from '../../scripts/lib/tools/manifests.ts';
import { startServer } from '../support/http.ts';
import { at, only, textAt } from './objects.ts';
import { CHART, helm, NAMESPACE, render } from './support.ts';

/** The kinds of the values that are rendered here. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  v1: ['ConfigMap', 'Pod', 'Service', 'ServiceAccount'],
  'apps/v1': ['Deployment'],
  'autoscaling/v2': ['HorizontalPodAutoscaler'],
  'policy/v1': ['PodDisruptionBudget'],
};

/** The discovery documents that Helm requests. */
const DISCOVERY = new Map<string, object>([
  ['/version', { major: '1', minor: '37', gitVersion: 'v1.37.0' }],
  ['/api', { kind: 'APIVersions', versions: ['v1'] }],
  [
    '/apis',
    {
      kind: 'APIGroupList',
      groups: Object.keys(KINDS).flatMap((groupVersion) => {
        const [name, version] = groupVersion.split('/');
        return version === undefined ? [] : [{ name, versions: [{ groupVersion, version }] }];
      }),
    },
  ],
  ...Object.entries(KINDS).map(([groupVersion, kinds]): [string, object] => [
    groupVersion.includes('/') ? `/apis/${groupVersion}` : `/api/${groupVersion}`,
    {
      kind: 'APIResourceList',
      groupVersion,
      resources: kinds.map((kind) => ({ name: `${kind.toLowerCase()}s`, namespaced: true, kind, verbs: ['get'] })),
    },
  ]),
]);

/** A Deployment as another version, or another mode, left it. */
interface Live {
  readonly name: string;
  readonly replicas: number;
  readonly component: string;
  /** Default: the release that is upgraded. */
  readonly release?: string;
  /** Managers of the Deployment. Default: none. */
  readonly managers?: readonly object[];
}

/** Renders as an upgrade does, in a namespace with these Deployments. */
async function upgrade(live: readonly Live[], name: string): Promise<Ran> {
  const found = new Map(
    live.map((one) => [`/apis/apps/v1/namespaces/${NAMESPACE}/deployments/${one.name}`, deployment(one)]),
  );
  const api = await startServer((incoming: IncomingMessage, outgoing: ServerResponse) => {
    const [path = ''] = (incoming.url ?? '').split('?');
    const body = DISCOVERY.get(path) ?? found.get(path);
    outgoing.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' });
    outgoing.end(
      JSON.stringify(body ?? { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 }),
    );
  });
  const folder = await mkdtemp(join(tmpdir(), 'postern-upgrade-'));
  onTestFinished(async () => {
    api.close();
    await rm(folder, { recursive: true, force: true });
  });
  const kubeconfig = join(folder, 'kubeconfig');
  const named = [{ name: 'a', cluster: { server: `http://${api.address}` } }];
  const contexts = [{ name: 'a', context: { cluster: 'a', user: 'a' } }];
  await writeFile(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: named,
      contexts,
      users: [{ name: 'a', user: {} }],
      'current-context': 'a',
    }),
  );
  const server = ['--dry-run=server', '--disable-openapi-validation', '--kubeconfig', kubeconfig];
  const values = ['-f', join(CHART, 'ci', `${name}-values.yaml`)];
  return helm('template', 'postern', CHART, '-n', NAMESPACE, ...server, ...values);
}

function deployment({ name, replicas, component, release = 'postern', managers = [] }: Live): object {
  const labels = { 'app.kubernetes.io/name': 'postern', 'app.kubernetes.io/instance': 'postern' };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name,
      namespace: NAMESPACE,
      labels: { 'app.kubernetes.io/managed-by': 'Helm' },
      annotations: { 'meta.helm.sh/release-name': release, 'meta.helm.sh/release-namespace': NAMESPACE },
      managedFields: managers,
    },
    spec: { replicas, selector: { matchLabels: { ...labels, 'app.kubernetes.io/component': component } } },
  };
}

function upgraded({ ok, output }: Ran): readonly Manifest[] {
  if (!ok) throw new Error(output);
  return manifestsOf(output);
}

const replicasOf = (manifests: readonly Manifest[], name: string): unknown =>
  at(only(manifests, 'Deployment', name), 'spec', 'replicas');

it('a Deployment has the same selector in both modes', async () => {
  const selectorOf = async (name: string): Promise<unknown> =>
    at(only(manifestsOf(await render(name)), 'Deployment', 'postern'), 'spec', 'selector');
  expect(await selectorOf('sidecar')).toEqual(await selectorOf('minimal'));
});

it.each(['minimal', 'sidecar'])(
  'an upgrade to the values %s is not refused for a Deployment of either mode',
  async (name) => {
    const live = [
      { name: 'postern', replicas: 2, component: 'server' },
      { name: 'postern-envoy', replicas: 2, component: 'envoy' },
    ];
    expect(upgraded(await upgrade(live, name)).length).toBeGreaterThan(5);
  },
);

it('an upgrade that would change a selector is refused before anything is applied, and says what to do', async () => {
  const { ok, output } = await upgrade([{ name: 'postern', replicas: 2, component: 'api' }], 'sidecar');
  expect(ok).toBe(false);
  expect(output).toContain('The Deployment postern has the selector {"app.kubernetes.io/component":"api"');
  expect(output).toContain('Nothing was changed.');
  expect(output).toContain(`kubectl -n ${NAMESPACE} delete deployment postern --cascade=orphan`);
});

it('Helm refuses to change the Deployment of another release, and the chart does not advise its deletion', async () => {
  const { ok, output } = await upgrade(
    [{ name: 'postern', replicas: 2, component: 'api', release: 'other' }],
    'sidecar',
  );
  expect(ok).toBe(false);
  expect(output).toContain('current value is "other"');
  expect(output).not.toContain('--cascade=orphan');
});

it('an upgrade that switches autoscaling on keeps the replicas that run, of each Deployment', async () => {
  const live = [
    { name: 'postern', replicas: 6, component: 'server' },
    { name: 'postern-envoy', replicas: 9, component: 'envoy' },
  ];
  const manifests = upgraded(await upgrade(live, 'sidecar-ha'));
  expect([replicasOf(manifests, 'postern'), replicasOf(manifests, 'postern-envoy')]).toEqual([6, 9]);
});

const OWNED = { fieldsV1: { 'f:spec': { 'f:replicas': {} } } };
const SCALED = { manager: 'kube-controller-manager', operation: 'Update', subresource: 'scale', ...OWNED };

it.each([
  ['whose number Helm applied keeps it', [{ manager: 'helm', operation: 'Apply', ...OWNED }], 6],
  [
    'whose number Helm never applied gets none',
    [{ manager: 'helm', operation: 'Apply', fieldsV1: { 'f:spec': {} } }],
    undefined,
  ],
  ['that the autoscaler has scaled gets none', [{ manager: 'helm', operation: 'Apply', ...OWNED }, SCALED], undefined],
  [
    'that Helm changes from the client keeps its number',
    [{ manager: 'helm', operation: 'Update', ...OWNED }, SCALED],
    6,
  ],
])('with autoscaling, a Deployment %s', async (_case, managers, expected) => {
  const manifests = upgraded(
    await upgrade([{ name: 'postern', replicas: 6, component: 'server', managers }], 'sidecar-ha'),
  );
  expect(replicasOf(manifests, 'postern')).toBe(expected);
});

it('with autoscaling, a render without a cluster has no replicas, so that a GitOps tool leaves the count to the autoscaler', async () => {
  const manifests = manifestsOf(await render('sidecar-ha'));
  expect([replicasOf(manifests, 'postern'), replicasOf(manifests, 'postern-envoy')]).toEqual([undefined, undefined]);
});

it('each Deployment of the mode sidecar has an autoscaler, and both containers of the data plane can make Envoy scale', async () => {
  const manifests = manifestsOf(await render('sidecar-ha'));
  const scaled = manifests.filter(({ kind }) => kind === 'HorizontalPodAutoscaler');
  expect(scaled.map((one) => textAt(one, 'spec', 'scaleTargetRef', 'name'))).toEqual(['postern', 'postern-envoy']);
  const containers = [0, 1].map((i) => textAt(scaled[1], 'spec', 'metrics', i, 'containerResource', 'container'));
  expect(containers).toEqual(['envoy', 'gate']);
});
