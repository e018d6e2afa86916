/**
 * Installs the chart on a real cluster, in a namespace of its own that is deleted afterwards. Pods need not start: an
 * image may be missing there.
 */

import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { CheckOutcome } from '../deploy-check.ts';
import { must, run } from '../tools/cache.ts';
import { manifestsOf } from '../tools/manifests.ts';

const RELEASE = 'postern';
const ANSWER_TIMEOUT_MS = 20_000;

/** Throws what a tool says. @param chart the chart's folder */
export async function installOnCluster(helm: string, kubectl: string, chart: string): Promise<CheckOutcome> {
  const namespace = `postern-test-${randomBytes(4).toString('hex')}`;
  const folder = await mkdtemp(join(tmpdir(), 'postern-cluster-'));
  const done: string[] = [];
  let isMade = false;
  try {
    const answered = await run(kubectl, ['get', '--raw', '/readyz', '--request-timeout=10s'], {
      timeoutMs: ANSWER_TIMEOUT_MS,
    });
    if (!answered.ok)
      return { kind: 'failed', says: `the cluster that KUBECONFIG names does not answer: ${answered.output}` };
    const apply = async (name: string, objects: readonly object[], ...options: readonly string[]): Promise<string> => {
      const file = join(folder, name);
      await writeFile(file, objects.map((one) => stringify(one)).join('---\n'));
      return must(kubectl, ['apply', '--namespace', namespace, '--filename', file, ...options]);
    };
    await must(kubectl, ['create', 'namespace', namespace]);
    isMade = true;
    const levels = ['enforce', 'warn'].map((mode) => `pod-security.kubernetes.io/${mode}=restricted`);
    await must(kubectl, ['label', 'namespace', namespace, ...levels]);
    await apply('secrets.yaml', secrets());

    const dryRuns = await dryRunAll(helm, chart, namespace, apply);
    done.push(`${dryRuns} objects in server-side dry runs`);

    const values = join(chart, 'ci/minimal-values.yaml');
    const common = ['--namespace', namespace, '--values', values];
    await must(helm, ['install', RELEASE, chart, ...common]);
    done.push('install');
    await must(helm, ['upgrade', RELEASE, chart, ...common, '--set', 'replicaCount=3', '--set', 'migrations.mode=job']);
    // The same version once more with another Job: an unchangeable Job must not stand in the way.
    await must(helm, [
      ...['upgrade', RELEASE, chart, ...common, '--set', 'migrations.mode=job'],
      ...['--set', 'migrations.resources.requests.cpu=100m'],
    ]);
    done.push('two upgrades');
    const upgrade = (...sets: readonly string[]): Promise<string> =>
      must(helm, ['upgrade', RELEASE, chart, ...common, ...sets.flatMap((set) => ['--set', set])]);
    const replicas = async (name: string): Promise<string> =>
      must(kubectl, ['get', 'deployment', name, '--namespace', namespace, '--output', 'jsonpath={.spec.replicas}']);
    const sidecar = ['mode=sidecar', 'envoy.upstream=platform:8081'];
    await upgrade(...sidecar, 'replicaCount=5', 'envoy.replicaCount=6');
    // Once to switch autoscaling on, and once with it, before the autoscaler scales.
    for (let i = 0; i < 2; i++) {
      await upgrade(...sidecar, 'autoscaling.enabled=true');
      const kept = `${await replicas(RELEASE)} and ${await replicas(`${RELEASE}-envoy`)}`;
      if (kept !== '5 and 6')
        return { kind: 'failed', says: `with autoscaling there are ${kept} replicas, not 5 and 6` };
    }
    // As the autoscaler does. The upgrades leave the number to it, so the rollback of one of them meets no conflict.
    await must(kubectl, ['scale', 'deployment', `${RELEASE}-envoy`, '--namespace', namespace, '--replicas=9']);
    for (let i = 0; i < 2; i++) await upgrade(...sidecar, 'autoscaling.enabled=true');
    await must(helm, ['rollback', RELEASE, '--namespace', namespace]);
    const scaled = await replicas(`${RELEASE}-envoy`);
    if (scaled !== '9') return { kind: 'failed', says: `after the autoscaler there are ${scaled} replicas, not 9` };
    await upgrade();
    done.push('two changes of mode, autoscaling switched on');
    await must(helm, ['rollback', RELEASE, '1', '--namespace', namespace]);
    const seen = await replicas(RELEASE);
    if (seen !== '2') return { kind: 'failed', says: `after the rollback there are ${seen} replicas, not 2` };
    done.push('rollback');
    await must(helm, ['uninstall', RELEASE, '--namespace', namespace]);
    const label = `app.kubernetes.io/instance=${RELEASE}`;
    const kinds = 'deployments,jobs,services,configmaps,serviceaccounts,poddisruptionbudgets';
    const left = await must(kubectl, ['get', kinds, '--namespace', namespace, '--selector', label, '--output', 'name']);
    if (left.trim() !== '') return { kind: 'failed', says: `after the uninstall these are left: ${left}` };
    done.push('uninstall');
    return { kind: 'ok', says: done.join(', ') };
  } finally {
    // Left behind, it would say so itself by its name; the outcome of the check matters more.
    if (isMade) await run(kubectl, ['delete', 'namespace', namespace, '--ignore-not-found', '--wait=false']);
    await rm(folder, { recursive: true, force: true });
  }
}

type Apply = (name: string, objects: readonly object[], ...options: readonly string[]) => Promise<string>;

/**
 * Kubernetes' own objects of every values file, where a warning of Pod Security counts as an error; those of other
 * namespaces and custom resources need what the cluster may not have.
 */
async function dryRunAll(helm: string, chart: string, namespace: string, apply: Apply): Promise<number> {
  let count = 0;
  for (const file of await readdir(join(chart, 'ci'))) {
    const text = await must(helm, [
      'template',
      RELEASE,
      chart,
      '--namespace',
      namespace,
      '--values',
      join(chart, 'ci', file),
    ]);
    const own = manifestsOf(text).filter(
      ({ apiVersion, kind, metadata }) =>
        // A pod by itself would need its ServiceAccount, which a dry run does not leave behind.
        kind !== 'Pod' &&
        (metadata.namespace ?? namespace) === namespace &&
        /^(v1|apps|batch|policy|autoscaling|networking\.k8s\.io)\b/.test(apiVersion),
    );
    const said = await apply(file, own, '--dry-run=server', '--warnings-as-errors');
    const accepted = said.split('\n').filter((line) => line.endsWith('(server dry run)')).length;
    if (accepted !== own.length)
      throw new Error(`${file}: ${accepted} of ${own.length} objects were accepted: ${said}`);
    count += accepted;
  }
  return count;
}

function secrets(): readonly object[] {
  const make = (name: string, key: string, value: string): object => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name },
    stringData: { [key]: value },
  });
  return [
    make('postern-database', 'database-url', 'postgresql://postern@localhost/postern'),
    make('postern-secret-key', 'secret-key', randomBytes(32).toString('hex')),
  ];
}
