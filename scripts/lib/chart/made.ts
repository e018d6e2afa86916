/** The files of the chart that are made of others, so that both always agree. */

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import { itemNamed, listAt, mapping } from '../../../src/cli/envoy-config.ts';
import { chartReadme } from './readme.ts';
import { documentValues } from './values-docs.ts';
import { valuesSchema } from './values-schema.ts';

/** @param root the project's folder; @returns path from it -> text */
export async function madeFiles(root: string): Promise<ReadonlyMap<string, string>> {
  const { values } = documentValues(await readFile(join(root, 'helm/postern/values.yaml'), 'utf8'));
  return new Map([
    ['helm/postern/values.schema.json', `${JSON.stringify(valuesSchema(values), null, 2)}\n`],
    ['helm/postern/README.md', chartReadme(values)],
    // Where the templates put other names and numbers, these are the names of the guides and the numbers of the default
    // configuration.
    ['helm/postern/files/istio-patches.yaml', await printedPatches(root, 'istio', 'configPatches')],
    ['helm/postern/files/envoy-gateway-patches.yaml', await printedPatches(root, 'envoy-gateway', 'jsonPatches')],
    [
      'helm/postern/files/envoy-sidecar.yaml',
      withoutHealthOfApi(await printedEnvoy(root, ['--profile', 'sidecar', '--http', 'postern-http:8080'])),
    ],
    ['helm/postern/files/envoy-sidecar-shadow.yaml', await printedEnvoy(root, ['--profile', 'sidecar', '--shadow'])],
  ]);
}

/** What `postern envoy config` prints without any configuration. */
async function printedEnvoy(root: string, args: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-chart-'));
  try {
    const command = [join(root, 'src/main.ts'), 'envoy', 'config', ...args];
    const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: folder, env: {} });
    return stdout;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The Service of the API has only its port, and leads to ready pods only. */
function withoutHealthOfApi(text: string): string {
  const config: unknown = parse(text);
  const cluster = itemNamed(config, 'postern-http', 'static_resources', 'clusters');
  delete cluster['health_checks'];
  for (const host of listAt(cluster, 'load_assignment', 'endpoints', 0, 'lb_endpoints'))
    delete mapping(host['endpoint'])['health_check_config'];
  return stringify(config, { aliasDuplicateObjects: false, lineWidth: 0 });
}

/** The member with the patches, which the command prints last. */
async function printedPatches(root: string, profile: string, member: 'configPatches' | 'jsonPatches'): Promise<string> {
  const [, patches] = (await printedEnvoy(root, ['--profile', profile])).split(`\n  ${member}:\n`);
  if (patches === undefined) throw new Error(`The profile ${profile} has no ${member}.`);
  return `${member}:\n${patches.replaceAll(/^ {2}/gm, '')}`;
}
