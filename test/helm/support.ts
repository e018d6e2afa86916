/** The chart, rendered by the real helm. */

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Ran, run, type ToolSearch } from '../../scripts/lib/tools/cache.ts';
import { findHelm } from '../../scripts/lib/tools/helm.ts';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const CHART = join(ROOT, 'helm/postern');
export const NAMESPACE = 'postern';

/** The values that the smallest installation needs. */
export const MINIMAL = ['--set', 'database.existingSecret.name=db', '--set', 'secretKey.existingSecret.name=key'];

export function found(search: ToolSearch): string {
  if (search.kind === 'missing') throw new Error(search.message);
  return search.path;
}

export async function helm(...args: readonly string[]): Promise<Ran> {
  return run(join(found(await findHelm()), 'helm'), args);
}

/** The names of the values files in helm/postern/ci, without their ending. */
export async function matrix(): Promise<readonly string[]> {
  const files = await readdir(join(CHART, 'ci'));
  return files.map((file) => file.replace(/-values\.yaml$/, '')).sort();
}

/** The rendered text; throws what helm says. */
export async function render(name: string, ...more: readonly string[]): Promise<string> {
  const ran = await helm(
    'template',
    'postern',
    CHART,
    '-n',
    NAMESPACE,
    '-f',
    join(CHART, 'ci', `${name}-values.yaml`),
    ...more,
  );
  if (!ran.ok) throw new Error(`${name}: ${ran.output}`);
  return ran.output;
}
