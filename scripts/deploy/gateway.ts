/** No route past the check: the chart's admission policy and `postern gateway verify`, on a real API server. */

import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { textAt } from '../../test/helm/objects.ts';
import type { Check, CheckOutcome } from '../lib/deploy-check.ts';
import { OWNER, POLICY_CASES, type PolicyCase } from '../lib/gateway/admission.ts';
import { type ApiServer, startApiServer } from '../lib/issuers/api-server.ts';
import { must, run } from '../lib/tools/cache.ts';
import { crdObjects } from '../lib/tools/crds.ts';
import { findHelm } from '../lib/tools/helm.ts';
import { findKubeApiserver, KUBE_APISERVER_VERSION } from '../lib/tools/kube-apiserver.ts';
import { type Manifest, manifestsOf } from '../lib/tools/manifests.ts';

const ROOT = join(import.meta.dirname, '../..');
const CHART = join(ROOT, 'helm/postern');
const NAMESPACES = ['ai', 'other'];
const READY_LIMIT_MS = 60_000;
const POLL_MS = 200;
const ADMISSION = '/apis/admissionregistration.k8s.io/v1';

function policiesOf(namespace: string): string {
  return `/apis/gateway.envoyproxy.io/v1alpha1/namespaces/${namespace}/securitypolicies`;
}

function securityPolicy(name: string, spec: object): object {
  return { apiVersion: 'gateway.envoyproxy.io/v1alpha1', kind: 'SecurityPolicy', metadata: { name }, spec };
}

/** Polls until the call succeeds: the API server serves a definition or a policy some time after it took it. */
async function untilDone(work: () => Promise<unknown>): Promise<void> {
  for (const deadline = performance.now() + READY_LIMIT_MS; ; await sleep(POLL_MS)) {
    try {
      await work();
      return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
  }
}

async function define(kubernetes: ApiServer, ...names: readonly string[]): Promise<void> {
  const definitions = await crdObjects(names);
  if (definitions.length !== names.length) throw new Error(`not all of ${names.join(', ')} are defined`);
  for (const definition of definitions)
    await kubernetes.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
}

/** The namespaces, their owner, and the definition of a SecurityPolicy with its rules. */
async function prepare(kubernetes: ApiServer): Promise<void> {
  await define(kubernetes, 'securitypolicies.gateway.envoyproxy.io');
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const apiGroup = 'rbac.authorization.k8s.io';
  await kubernetes.call('POST', `${rbac}/clusterroles`, {
    metadata: { name: 'owner' },
    rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }],
  });
  for (const namespace of NAMESPACES) {
    await untilDone(() => kubernetes.call('POST', '/api/v1/namespaces', { metadata: { name: namespace } }));
    await kubernetes.call('POST', `${rbac}/namespaces/${namespace}/rolebindings`, {
      metadata: { name: 'owner' },
      roleRef: { apiGroup, kind: 'ClusterRole', name: 'owner' },
      subjects: [{ apiGroup, kind: 'User', name: OWNER }],
    });
    await untilDone(() => kubernetes.call('GET', policiesOf(namespace), undefined, { user: OWNER }));
  }
}

/** Policies that exist before the admission policy does, as in a cluster that installs it later. */
async function createBefore(kubernetes: ApiServer): Promise<void> {
  for (const [index, { before, namespace = 'ai' }] of POLICY_CASES.entries()) {
    if (before !== undefined)
      await kubernetes.call('POST', policiesOf(namespace), securityPolicy(`case-${index}`, before));
  }
}

/** Renders one template of the chart. */
async function rendered(helm: string, template: string): Promise<readonly Manifest[]> {
  const text = await must(helm, [
    ...['template', 'postern', CHART, '--namespace', 'postern', '--show-only', `templates/${template}.yaml`],
    ...['--values', join(CHART, 'ci/envoy-gateway-plain-values.yaml')],
    ...['--set', 'mesh.envoyGateway.admission.namespaces={ai,routes}'],
  ]);
  return manifestsOf(text);
}

async function installPolicy(kubernetes: ApiServer, helm: string): Promise<void> {
  for (const one of await rendered(helm, 'gateway-admission'))
    await kubernetes.call(
      'POST',
      `${ADMISSION}/${one.kind === 'ValidatingAdmissionPolicy' ? 'validatingadmissionpolicies' : 'validatingadmissionpolicybindings'}`,
      one,
    );
  const empty = securityPolicy('probe', {
    targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'a' }],
  });
  await untilDone(async () => {
    const answer = await answerTo(() => kubernetes.call('POST', `${policiesOf('ai')}?dryRun=All`, empty));
    if (answer !== 'refused') throw new Error('the policy is not in force');
  });
}

/** Throws if the API server refused for another reason than the chart's policy. */
async function answerTo(call: () => Promise<unknown>): Promise<'admitted' | 'refused'> {
  try {
    await call();
    return 'admitted';
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    if (text.includes("ValidatingAdmissionPolicy 'postern-postern-gateway'") && text.includes(': 403 '))
      return 'refused';
    throw error;
  }
}

async function answerOf(kubernetes: ApiServer, index: number, one: PolicyCase): Promise<string> {
  const { before, spec, namespace = 'ai', by } = one;
  const as = by ?? { user: OWNER };
  const name = `case-${index}`;
  const path = `${policiesOf(namespace)}/${name}`;
  if (before === undefined && spec !== undefined)
    return answerTo(() => kubernetes.call('POST', policiesOf(namespace), securityPolicy(name, spec), as));
  if (spec === undefined) return answerTo(() => kubernetes.call('DELETE', path, undefined, as));
  const now = await kubernetes.call('GET', path);
  return answerTo(() => kubernetes.call('PUT', path, { ...asObject(now), spec }, as));
}

function asObject(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}

async function refusesBypasses(): Promise<CheckOutcome> {
  const found = await findKubeApiserver();
  if (found.kind === 'missing') return { kind: 'unavailable', says: found.message };
  const helm = await findHelm();
  if (helm.kind === 'missing') return { kind: 'unavailable', says: helm.message };
  await using kubernetes = await startApiServer(found.path);
  await prepare(kubernetes);
  await createBefore(kubernetes);
  await installPolicy(kubernetes, join(helm.path, 'helm'));
  const wrong: string[] = [];
  const made = await rendered(join(helm.path, 'helm'), 'mesh-envoy-gateway');
  for (const one of made.filter(({ kind }) => kind === 'SecurityPolicy')) {
    const answer = await answerTo(() => kubernetes.call('POST', policiesOf('ai'), one));
    if (answer !== 'admitted') wrong.push(`the chart's own policy: ${answer}`);
  }
  for (const [index, one] of POLICY_CASES.entries()) {
    const answer = await answerOf(kubernetes, index, one);
    if (answer !== one.answer) wrong.push(`${one.name}: ${answer}`);
  }
  return wrong.length === 0
    ? { kind: 'ok', says: `${POLICY_CASES.length} policies, each refused or admitted as documented` }
    : { kind: 'failed', says: wrong.join('; ') };
}

const GATEWAY_API = 'gateway.networking.k8s.io';

/** A Gateway with a route that the check guards, and one that it does not. */
async function createRoutes(kubernetes: ApiServer): Promise<void> {
  const kinds = ['gateways', 'httproutes', 'grpcroutes', 'listenersets', 'tcproutes'];
  await define(kubernetes, ...kinds.map((kind) => `${kind}.${GATEWAY_API}`), 'securitypolicies.gateway.envoyproxy.io');
  const create = (plural: string, kind: string, name: string, spec: object): Promise<void> =>
    untilDone(() =>
      kubernetes.call('POST', `/apis/${GATEWAY_API}/v1/namespaces/default/${plural}`, {
        ...{ apiVersion: `${GATEWAY_API}/v1`, kind, metadata: { name }, spec },
      }),
    );
  await create('gateways', 'Gateway', 'ai', {
    gatewayClassName: 'ai',
    listeners: [{ name: 'http', protocol: 'HTTP', port: 80 }],
  });
  for (const [name, type, value] of [
    ['chat', 'PathPrefix', '/'],
    ['health', 'Exact', '/healthz'],
  ] as const)
    await create('httproutes', 'HTTPRoute', name, {
      parentRefs: [{ name: 'ai' }],
      rules: [{ matches: [{ path: { type, value } }] }],
    });
  const target = { group: GATEWAY_API, kind: 'HTTPRoute', name: 'health' };
  const policy = securityPolicy('open', { targetRefs: [target], cors: { allowOrigins: ['*'] } });
  await untilDone(() => kubernetes.call('POST', policiesOf('default'), policy));
}

/** Creates the ServiceAccount of the guide with its rights. Returns the guide's kubeconfig file, as a pod of it has it. */
async function kubeconfigOfGuide(kubernetes: ApiServer, folder: string): Promise<string> {
  const guide = await readFile(join(ROOT, 'docs/no-bypass.md'), 'utf8');
  const block =
    [...guide.matchAll(/```yaml\n([\s\S]*?)```/g)].find(([, text]) => text?.includes('kind: CronJob'))?.[1] ?? '';
  const manifests = manifestsOf(block);
  const accounts = '/api/v1/namespaces/postern/serviceaccounts';
  const paths = {
    ServiceAccount: accounts,
    ClusterRole: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
    ClusterRoleBinding: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
    ConfigMap: '/api/v1/namespaces/postern/configmaps',
    CronJob: '/apis/batch/v1/namespaces/postern/cronjobs',
  };
  await kubernetes.call('POST', '/api/v1/namespaces', { metadata: { name: 'postern' } });
  for (const [kind, path] of Object.entries(paths))
    for (const one of manifests.filter((manifest) => manifest.kind === kind)) await kubernetes.call('POST', path, one);
  const answer = await kubernetes.call('POST', `${accounts}/gateway-verify/token`, { spec: {} });
  await writeFile(join(folder, 'token'), textAt(answer, 'status', 'token'), { mode: 0o600 });
  await writeFile(join(folder, 'ca.crt'), kubernetes.ca);
  const text = textAt(
    manifests.find(({ kind }) => kind === 'ConfigMap'),
    'data',
    'kubeconfig',
  );
  return text
    .replace('https://kubernetes.default.svc', kubernetes.url)
    .replaceAll('/var/run/secrets/kubernetes.io/serviceaccount', folder);
}

async function findsOpenRoutes(): Promise<CheckOutcome> {
  const found = await findKubeApiserver();
  if (found.kind === 'missing') return { kind: 'unavailable', says: found.message };
  await using cleanUp = new AsyncDisposableStack();
  const kubernetes = cleanUp.use(await startApiServer(found.path));
  await createRoutes(kubernetes);
  const gateway = createServer(({ url }, response) => {
    response.writeHead(url === '/healthz' ? 200 : 401, { 'www-authenticate': 'Bearer realm="postern"' }).end();
  }).listen(0, '127.0.0.1');
  cleanUp.defer(() => void gateway.close());
  await once(gateway, 'listening');
  const bound = gateway.address();
  const address = `127.0.0.1:${typeof bound === 'object' ? bound?.port : ''}`;
  const folder = await mkdtemp(join(tmpdir(), 'postern-gateway-'));
  cleanUp.defer(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, 'kubeconfig'), await kubeconfigOfGuide(kubernetes, folder));
  const args = ['gateway', 'verify', '--kubeconfig', join(folder, 'kubeconfig'), '--address', address];
  const { output } = await run(process.execPath, [join(ROOT, 'src/main.ts'), ...args], { cwd: folder });
  const expected = [
    'SecurityPolicy default/open, of HTTPRoute health: it has neither extAuth nor mergeType, so it removes the check',
    `default/ai http  HTTPRoute default/health rule 1 match 1: GET http://*/healthz at ${address}: 200`,
    '1 of 2 requests were answered 401 by Postern, 0 matches are public, 1 policies or routes have no check.',
  ];
  return output.trim() === expected.join('\n')
    ? { kind: 'ok', says: 'one of two routes, and the policy that opens it' }
    : { kind: 'failed', says: output };
}

export const checks: readonly Check[] = [
  {
    name: 'the admission policy of the chart refuses every SecurityPolicy that would remove the check, and admits the others',
    tool: { name: 'kube-apiserver', version: KUBE_APISERVER_VERSION },
    // As for the tokens of ServiceAccounts: no package brings the API server.
    optional: true,
    run: refusesBypasses,
  },
  {
    name: 'postern gateway verify reads the routes of a cluster, and lists the one that lets a request pass',
    tool: { name: 'kube-apiserver', version: KUBE_APISERVER_VERSION },
    optional: true,
    run: findsOpenRoutes,
  },
];
