/** The image's Dockerfile, and everything that `npm run release` makes. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Check, CheckOutcome } from '../lib/deploy-check.ts';
import { rootManifest } from '../lib/release/packages.ts';
import { makeRelease, SUMS } from '../lib/release/release.ts';
import { sumsOf } from '../lib/release/sums.ts';
import { ROOT, tool } from '../lib/release/tool.ts';
import { tryClientPackage, tryServerPackage } from '../lib/release/try-packages.ts';
import { run } from '../lib/tools/cache.ts';
import { findHadolint, HADOLINT_VERSION } from '../lib/tools/hadolint.ts';
import { findHelm } from '../lib/tools/helm.ts';

async function lintDockerfile(): Promise<CheckOutcome> {
  const search = await findHadolint();
  if (search.kind === 'missing') return { kind: 'unavailable', says: search.message };
  const { ok, output } = await run(search.path, ['--failure-threshold', 'style', 'Dockerfile'], { cwd: ROOT });
  return ok ? { kind: 'ok', says: 'Dockerfile' } : { kind: 'failed', says: output };
}

async function tryRelease(): Promise<CheckOutcome> {
  const helm = await findHelm();
  if (helm.kind === 'missing') return { kind: 'unavailable', says: helm.message };
  const folder = await mkdtemp(join(tmpdir(), 'postern-release-'));
  try {
    await tool(process.execPath, ['scripts/run.mjs', 'console:build'], ROOT);
    const { files, held } = await makeRelease(folder, () => undefined);
    const { version } = await rootManifest();
    const platform = `${process.platform}-${process.arch}`;
    const expected = [
      `chart/postern-${version}.tgz`,
      `image/postern-${version}-${platform}.cdx.json`,
      `image/postern-${version}-${platform}.tar.gz`,
      `npm/postern-${version}.tgz`,
      `npm/postern-client-${version}.tgz`,
    ];
    if (files.join() !== expected.join()) return { kind: 'failed', says: `the release holds ${files.join(', ')}` };
    if ((await readFile(join(folder, SUMS), 'utf8')) !== (await sumsOf(folder, files))) {
      return { kind: 'failed', says: `${SUMS} does not hold the digests of the files` };
    }
    const server = await tryServerPackage(join(folder, `npm/postern-${version}.tgz`));
    await tryClientPackage(join(folder, `npm/postern-client-${version}.tgz`));
    return {
      kind: 'ok',
      says: `${held.join('; ')}; the installed server: ${server.length} trials; the installed client`,
    };
  } catch (error) {
    return { kind: 'failed', says: error instanceof Error ? error.message : String(error) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export const checks: readonly Check[] = [
  {
    name: 'hadolint finds nothing in the Dockerfile',
    tool: { name: 'hadolint', version: HADOLINT_VERSION },
    run: lintDockerfile,
  },
  {
    name: 'a release is made; its image, its server package and its client package are installed and run',
    run: tryRelease,
  },
];
