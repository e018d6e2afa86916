/** Checks of the plain profiles: the guides' manifests, and every decision case through what meshes make of them. */

import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ENVOY_VERSION } from '../../src/cli/envoy.ts';
import type { Check, CheckOutcome } from '../lib/deploy-check.ts';
import { runTests } from '../lib/deploy-tests.ts';
import { SOURCES, schemasOf } from '../lib/mesh/schemas.ts';

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);
const MODULE_TIMEOUT_MS = 120_000;

/** Compares the schemas that the tests use with those in the modules, of as many modules as can be had here. */
async function compareSchemas(): Promise<CheckOutcome> {
  const kept: Readonly<Record<string, unknown>> = JSON.parse(
    readFileSync(join(ROOT, 'test/mesh/schemas.json'), 'utf8'),
  );
  const cache = await run('go', ['env', 'GOMODCACHE']).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  );
  if (cache === undefined)
    return { kind: 'unavailable', says: 'Go is not installed. Install it to fetch the definitions' };
  const [compared, absent]: [string[], string[]] = [[], []];
  for (const source of SOURCES) {
    const folder = join(cache, source.module);
    if (!existsSync(folder)) {
      await run('go', ['mod', 'download', source.module], { timeout: MODULE_TIMEOUT_MS, cwd: '/' }).catch(
        () => undefined,
      );
    }
    if (!existsSync(folder)) {
      absent.push(source.module);
      continue;
    }
    compared.push(source.module);
    for (const [name, schema] of Object.entries(schemasOf(source, cache))) {
      if (JSON.stringify(kept[name]) !== JSON.stringify(schema))
        return { kind: 'failed', says: `${name} is not that of ${source.module}` };
    }
  }
  const says = `equal: ${compared.join(', ')}${absent.length === 0 ? '' : `; not to be had: ${absent.join(', ')}`}`;
  return compared.length === 0 ? { kind: 'unavailable', says } : { kind: 'ok', says };
}

export const checks: readonly Check[] = [
  {
    name: 'the guides for meshes are valid, and every decision case passes through a real Envoy in each plain and each full profile',
    tool: { name: 'envoy', version: ENVOY_VERSION },
    run: () => runTests('test/mesh'),
  },
  {
    name: 'the schemas that validate the guides are those of the projects',
    tool: { name: 'go mod download', version: SOURCES.map(({ module }) => module).join(' ') },
    optional: true,
    run: compareSchemas,
  },
];
