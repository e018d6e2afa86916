/** kubernetes-validate with the strict schemas of Kubernetes. */

import { join } from 'node:path';
import { cached, pipInstall, type Ran, run, type ToolSearch } from './cache.ts';

export const KUBERNETES_VALIDATE_VERSION = '1.37.0';
export const KUBERNETES_VERSION = '1.37';
/** The oldest that the chart supports. */
export const OLDEST_KUBERNETES_VERSION = '1.30';
const WHEEL = `kubernetes-validate==${KUBERNETES_VALIDATE_VERSION}`;

export function findKubernetesValidate(): Promise<ToolSearch> {
  const how = `install Python 3 with pip, which runs "pip install ${WHEEL}"`;
  return cached(`kubernetes-validate-${KUBERNETES_VALIDATE_VERSION}`, 'kubernetes-validate', how, (folder) =>
    pipInstall(WHEEL, folder, 'with-needs'),
  );
}

/** The folder of the strict JSON Schemas. @param path of the tool */
export function strictSchemas(path: string): string {
  return join(path, 'kubernetes_validate/kubernetes-json-schema', `v${KUBERNETES_VERSION}.0-local-strict`);
}

/**
 * Runs the tool itself. It accepts an empty file, and only warns of a kind that it does not know: the caller must count
 * documents.
 */
export function kubernetesValidate(path: string, files: readonly string[], version = KUBERNETES_VERSION): Promise<Ran> {
  const program = 'import sys; from kubernetes_validate.__main__ import main; sys.exit(main())';
  const env = { ...process.env, PYTHONPATH: path };
  return run('python3', ['-c', program, '-k', version, '--strict', ...files], { env });
}
