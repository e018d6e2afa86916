/** The chart: rendered and validated with every values file, and installed when KUBECONFIG names a cluster. */

import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installOnCluster } from '../lib/chart/cluster.ts';
import type { Check, CheckOutcome } from '../lib/deploy-check.ts';
import { run } from '../lib/tools/cache.ts';
import { CRD_SOURCES, findCrds } from '../lib/tools/crds.ts';
import { findHelm, HELM_VERSION, KUBECTL_VERSION } from '../lib/tools/helm.ts';
import {
  findKubernetesValidate,
  KUBERNETES_VALIDATE_VERSION,
  KUBERNETES_VERSION,
  kubernetesValidate,
  OLDEST_KUBERNETES_VERSION,
  strictSchemas,
} from '../lib/tools/kubernetes-validate.ts';
import { createManifestValidator, manifestsOf } from '../lib/tools/manifests.ts';

const CHART = join(import.meta.dirname, '../../helm/postern');
const HELM = { name: 'helm', version: HELM_VERSION };
const CRD_VERSIONS = CRD_SOURCES.map(({ module, version }) => `${module} ${version}`).join(', ');

function failed(says: string): CheckOutcome {
  return { kind: 'failed', says };
}

async function valuesFiles(): Promise<string[]> {
  return (await readdir(join(CHART, 'ci'))).sort().map((name) => join(CHART, 'ci', name));
}

/** Runs with helm's path, or says that it is missing. */
async function withHelm(check: (helm: string) => Promise<CheckOutcome>): Promise<CheckOutcome> {
  const search = await findHelm();
  return search.kind === 'missing' ? { kind: 'unavailable', says: search.message } : check(join(search.path, 'helm'));
}

/** Rendered texts by values file; throws what helm says. */
async function renderAll(helm: string): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  for (const file of await valuesFiles()) {
    const ran = await run(helm, ['template', 'postern', CHART, '--namespace', 'postern', '--values', file]);
    if (!ran.ok) throw new Error(`${file}: ${ran.output}`);
    texts.set(file, ran.output);
  }
  return texts;
}

export const checks: readonly Check[] = [
  {
    name: 'the chart passes helm lint --strict with every values file',
    tool: HELM,
    run: () =>
      withHelm(async (helm) => {
        const files = await valuesFiles();
        for (const file of files) {
          const { ok, output } = await run(helm, ['lint', '--strict', CHART, '--values', file]);
          if (!ok) return failed(`${file}: ${output}`);
        }
        return { kind: 'ok', says: `${files.length} values files` };
      }),
  },
  {
    name: 'the chart is packaged',
    tool: HELM,
    run: () =>
      withHelm(async (helm) => {
        const folder = await mkdtemp(join(tmpdir(), 'postern-chart-'));
        try {
          const packed = await run(helm, ['package', CHART, '--destination', folder]);
          if (!packed.ok) return failed(packed.output);
          const [archive = ''] = await readdir(folder);
          const shown = await run(helm, [
            'template',
            'postern',
            join(folder, archive),
            '--values',
            join(CHART, 'ci/minimal-values.yaml'),
          ]);
          return shown.ok ? { kind: 'ok', says: archive } : failed(shown.output);
        } finally {
          await rm(folder, { recursive: true, force: true });
        }
      }),
  },
  {
    name: `every rendered object meets the strict schemas of Kubernetes ${KUBERNETES_VERSION} and of the custom resources`,
    tool: { name: 'schemas', version: `${KUBERNETES_VERSION}; ${CRD_VERSIONS}` },
    run: () =>
      withHelm(async (helm) => {
        const kubernetes = await findKubernetesValidate();
        const crds = await findCrds();
        if (kubernetes.kind === 'missing') return { kind: 'unavailable', says: kubernetes.message };
        if (crds.kind === 'missing') return { kind: 'unavailable', says: crds.message };
        const validator = createManifestValidator(strictSchemas(kubernetes.path), crds.path);
        let objects = 0;
        for (const [file, text] of await renderAll(helm)) {
          const [flaw] = await validator.validate(text);
          if (flaw !== undefined) return failed(`${file}: ${flaw.object}: ${flaw.message}`);
          objects += manifestsOf(text).length;
        }
        return { kind: 'ok', says: `${objects} objects of ${(await valuesFiles()).length} values files` };
      }),
  },
  {
    name: 'kubernetes-validate --strict accepts every rendered object that Kubernetes itself defines',
    tool: { name: 'kubernetes-validate', version: KUBERNETES_VALIDATE_VERSION },
    run: () =>
      withHelm(async (helm) => {
        const tool = await findKubernetesValidate();
        if (tool.kind === 'missing') return { kind: 'unavailable', says: tool.message };
        const folder = await mkdtemp(join(tmpdir(), 'postern-rendered-'));
        try {
          const files: string[] = [];
          for (const [index, text] of [...(await renderAll(helm)).values()].entries()) {
            // The tool accepts an empty file, so the objects are counted here.
            if (manifestsOf(text).length === 0) return failed('a values file renders nothing');
            const file = join(folder, `${index}.yaml`);
            await writeFile(file, text);
            files.push(file);
          }
          for (const version of [KUBERNETES_VERSION, OLDEST_KUBERNETES_VERSION]) {
            const { ok, output } = await kubernetesValidate(tool.path, files, version);
            if (!ok) return failed(`${version}: ${output}`);
          }
          return {
            kind: 'ok',
            says: `${files.length} files, Kubernetes ${KUBERNETES_VERSION} and ${OLDEST_KUBERNETES_VERSION}`,
          };
        } finally {
          await rm(folder, { recursive: true, force: true });
        }
      }),
  },
  {
    name: 'the chart is installed, upgraded, rolled back and uninstalled in a namespace with Pod Security restricted',
    tool: { name: 'helm and kubectl', version: `${HELM_VERSION} and ${KUBECTL_VERSION}` },
    optional: true,
    run: () =>
      withHelm(async (helm) =>
        (process.env['KUBECONFIG'] ?? '') === ''
          ? {
              kind: 'unavailable',
              says: 'KUBECONFIG names no cluster; set it to a cluster where a namespace may be made and deleted',
            }
          : installOnCluster(helm, join(helm, '../kubectl'), CHART),
      ),
  },
];
