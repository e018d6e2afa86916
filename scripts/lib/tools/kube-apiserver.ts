/** Kubernetes' API server and its etcd, without a cluster: no registry has them as binaries, so Go builds them. */

import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cached, isThere, must, type ToolSearch } from './cache.ts';

export const KUBE_APISERVER_VERSION = '1.37.2';
const ETCD_VERSION = '3.7.0';
const API_SERVER = 'k8s.io/kubernetes/cmd/kube-apiserver';
const ETCD = 'go.etcd.io/etcd/server/v3';
/** The modules of Kubernetes' own repository, which k8s.io/kubernetes requires by path. */
const STAGING = [
  'api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider cluster-bootstrap code-generator',
  'component-base component-helpers controller-manager cri-api cri-client cri-streaming csi-translation-lib',
  'dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator kube-controller-manager kube-proxy kube-scheduler',
  'kubectl kubelet metrics mount-utils pod-security-admission sample-apiserver sample-cli-plugin sample-controller streaming',
].flatMap((line) => line.split(' '));
/** The build takes about 20 min of processor time. */
const BUILD_TIMEOUT_MS = 3_600_000;

const HOW = `install Go, which builds ${API_SERVER} ${KUBE_APISERVER_VERSION} and ${ETCD} ${ETCD_VERSION} once, or let KUBEBUILDER_ASSETS name a folder with kube-apiserver and etcd`;

/** Finds the folder with `kube-apiserver` and `etcd`: KUBEBUILDER_ASSETS, the cache, or a build into the cache. */
export async function findKubeApiserver(): Promise<ToolSearch> {
  const assets = process.env['KUBEBUILDER_ASSETS'];
  if (assets !== undefined && (await isThere(join(assets, 'kube-apiserver')))) return { kind: 'found', path: assets };
  return cached(`kube-apiserver-${KUBE_APISERVER_VERSION}`, "Kubernetes' API server", HOW, async (folder) => {
    await writeFile(join(folder, 'go.mod'), goModule());
    const args = ['build', '-mod=mod', '-trimpath', '-ldflags', '-s -w', '-o', './', API_SERVER, ETCD];
    const env = { ...process.env, CGO_ENABLED: '0' };
    await must('go', args, { cwd: folder, env, timeoutMs: BUILD_TIMEOUT_MS });
    await rename(join(folder, 'server'), join(folder, 'etcd'));
    for (const name of ['go.mod', 'go.sum']) await rm(join(folder, name));
  });
}

function goModule(): string {
  const version = `v0.${KUBE_APISERVER_VERSION.split('.').slice(1).join('.')}`;
  return [
    'module postern.test/kube-apiserver',
    'go 1.26.0',
    `require k8s.io/kubernetes v${KUBE_APISERVER_VERSION}`,
    `require ${ETCD} v${ETCD_VERSION}`,
    ...STAGING.map((name) => `replace k8s.io/${name} => k8s.io/${name} ${version}`),
    '',
  ].join('\n');
}
