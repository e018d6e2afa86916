/**
 * The chart with every values file of helm/postern/ci: what it renders is valid, stable and safe, and the server
 * accepts its configuration.
 */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { parse, stringify } from 'yaml';
import { findCrds } from '../../scripts/lib/tools/crds.ts';
import { findKubernetesValidate, strictSchemas } from '../../scripts/lib/tools/kubernetes-validate.ts';
import {
  createManifestValidator,
  type Manifest,
  type ManifestValidator,
  manifestsOf,
} from '../../scripts/lib/tools/manifests.ts';
import { configFile } from '../../src/config/file.ts';
import { loadConfig } from '../../src/config/load.ts';
import { makeAuthority } from '../support/certificates.ts';
import { at, containersOf, listAt, podSpecOf, textAt } from './objects.ts';
import { CHART, found, matrix, render } from './support.ts';

const FETCH_MS = 300_000;
const NAMES = await matrix();
/** Files of the alerts and the dashboard are copied as they are, so their text is no part of a snapshot. */
const COPIES: ReadonlySet<string> = new Set(['PrometheusRule postern', 'ConfigMap postern-dashboard']);

let validator: ManifestValidator;
const rendered = new Map<string, string>();

beforeAll(async () => {
  const [kubernetes, crds] = [await findKubernetesValidate(), await findCrds()];
  validator = createManifestValidator(strictSchemas(found(kubernetes)), found(crds));
  await Promise.all(NAMES.map(async (name) => rendered.set(name, await render(name))));
}, FETCH_MS);

it('the matrix has the ten modes of the guide at least', () => {
  expect(NAMES).toEqual(
    expect.arrayContaining([
      'minimal',
      'sidecar',
      'central-ha',
      'mtls',
      'istio-plain',
      'istio-full',
      'envoy-gateway-plain',
      'envoy-gateway-full',
      'existing-secrets',
      'everything',
    ]),
  );
});

describe.each(NAMES)('the chart with the values %s', (name) => {
  const text = (): string => rendered.get(name) ?? '';
  const manifests = (): readonly Manifest[] => manifestsOf(text());

  it('renders objects that the strict schemas of Kubernetes and of the custom resources accept', async () => {
    expect(await validator.validate(text())).toEqual([]);
  });

  it('renders what its snapshot says', async () => {
    const kept = manifests().filter(({ kind, metadata }) => !COPIES.has(`${kind} ${metadata.name}`));
    await expect(kept.map((one) => stringify(one, { lineWidth: 0 })).join('---\n')).toMatchFileSnapshot(
      `snapshots/${name}.yaml`,
    );
  });

  it('renders the same bytes a second time', async () => {
    expect(await render(name)).toBe(text());
  });

  it('has no object twice, and no name that is too long for a label', () => {
    const names = manifests().map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`);
    expect(new Set(names).size).toBe(names.length);
    for (const { metadata } of manifests()) expect(metadata.name.length).toBeLessThanOrEqual(63);
  });

  it('makes no Secret, ConfigMap, Job or ServiceAccount a hook', () => {
    const hooks = manifests().filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] !== undefined);
    expect(hooks.filter(({ kind }) => kind !== 'Pod')).toEqual([]);
  });

  it('has only containers that Pod Security restricted admits', () => {
    for (const manifest of manifests()) {
      const pod = podSpecOf(manifest);
      if (pod === undefined) continue;
      expect(at(pod, 'securityContext', 'runAsNonRoot')).toBe(true);
      expect(at(pod, 'securityContext', 'seccompProfile', 'type')).toBe('RuntimeDefault');
      expect(at(pod, 'automountServiceAccountToken')).toBe(false);
      expect(at(pod, 'hostNetwork')).toBeUndefined();
      for (const container of containersOf(pod)) {
        expect(at(container, 'securityContext')).toMatchObject({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
      }
    }
  });

  it('mounts only volumes that the pod has, and Services point at ports that a container names', () => {
    const ports = new Set<unknown>();
    for (const pod of manifests().map(podSpecOf)) {
      if (pod === undefined) continue;
      const volumes = listAt(pod, 'volumes').map((volume) => at(volume, 'name'));
      for (const container of containersOf(pod)) {
        for (const mount of listAt(container, 'volumeMounts')) expect(volumes).toContain(at(mount, 'name'));
        for (const port of listAt(container, 'ports')) ports.add(at(port, 'name'));
      }
    }
    for (const service of manifests().filter(({ kind }) => kind === 'Service')) {
      for (const port of listAt(service, 'spec', 'ports')) expect(ports).toContain(at(port, 'targetPort'));
    }
  });

  it('selects the pods of one Deployment by every Service and budget', () => {
    const labels = manifests()
      .filter(({ kind }) => kind === 'Deployment')
      .map((one) => at(one, 'spec', 'template', 'metadata', 'labels'));
    const selectors = manifests().flatMap((one) =>
      one.kind === 'Service'
        ? [at(one, 'spec', 'selector')]
        : one.kind === 'PodDisruptionBudget'
          ? [at(one, 'spec', 'selector', 'matchLabels')]
          : [],
    );
    expect(selectors.length).toBeGreaterThan(0);
    for (const selector of selectors) {
      const chosen = labels.filter((one) =>
        Object.entries(asMap(selector)).every(([key, value]) => asMap(one)[key] === value),
      );
      expect(chosen).toHaveLength(1);
    }
  });

  it('has a configuration that the server accepts', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'postern-helm-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const authority = makeAuthority();
    const { certPem, keyPem } = authority.issue('postern');
    await writeFile(join(folder, 'tls.crt'), certPem);
    await writeFile(join(folder, 'tls.key'), keyPem);
    await writeFile(join(folder, 'ca.crt'), authority.certPem);
    const config = manifests().find(
      ({ kind, metadata }) => kind === 'ConfigMap' && metadata.labels?.['app.kubernetes.io/component'] === 'config',
    );
    const files = Object.entries(asMap(at(config, 'data')));
    expect(files.length).toBeGreaterThan(0);
    await writeFile(join(folder, 'database-url'), 'postgresql://postern@localhost/postern\n');
    await writeFile(join(folder, 'secret-key'), 'k'.repeat(32));
    await writeFile(join(folder, 'password'), 'correct horse battery staple');
    for (const [file, content] of files) {
      const path = join(folder, file);
      await writeFile(path, String(content).replaceAll(/\/etc\/(postern-tls|directory-ca)/g, folder));
      const env: Record<string, string> = {
        POSTERN_DATABASE_URL_FILE: join(folder, 'database-url'),
        POSTERN_SECRET_KEY_FILE: join(folder, 'secret-key'),
      };
      for (const one of environmentOf(manifests())) {
        if (/PASSWORD_FILE$/.test(one)) env[one] = join(folder, 'password');
      }
      const loaded = loadConfig({ file: configFile(path), env });
      expect(loaded.kind === 'invalid' ? loaded.errors : []).toEqual([]);
    }
  });
});

/** Undefined for a file that is not there: the chart then has no such object. */
async function chartFile(name: string): Promise<string | undefined> {
  return readFile(join(CHART, 'files', name), 'utf8').catch(() => undefined);
}

it('the PrometheusRule and the dashboard hold the files of the chart, with the names of the release and the base of the guides', async () => {
  const manifests = manifestsOf(rendered.get('everything') ?? '');
  const [alerts, dashboard] = [await chartFile('alerts.yaml'), await chartFile('dashboard.json')];
  const rule = manifests.find(({ kind }) => kind === 'PrometheusRule');
  const placed = alerts
    ?.replace('absent(postern_build_info)', 'absent(postern_build_info{namespace="postern",job="postern"})')
    .replaceAll('https://postern.dev/docs/', 'https://git.example.com/postern/docs/');
  expect(at(rule, 'spec')).toEqual(parse(placed ?? ''));
  const config = manifests.find(({ metadata }) => metadata.name === 'postern-dashboard');
  expect(textAt(config, 'data', 'postern.json').trimEnd()).toBe(dashboard?.trimEnd() ?? '');
});

function asMap(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** The names of POSTERN_… variables of the server's container. */
function environmentOf(manifests: readonly Manifest[]): readonly string[] {
  return manifests
    .flatMap((one) => (one.kind === 'Deployment' ? containersOf(podSpecOf(one)) : []))
    .flatMap((container) => listAt(container, 'env'))
    .map((variable) => textAt(variable, 'name'))
    .filter((variable) => variable.startsWith('POSTERN_'));
}
