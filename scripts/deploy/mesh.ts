/** Checks of the plain profiles: the guides' manifests, and every decision case through what meshes make of them. */

import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { ENVOY_VERSION } from '../../src/cli/envoy.ts';
import { at, GUIDES, type Mapping, manifestsOf } from '../../test/mesh/support/guides.ts';
import type { Check, CheckOutcome } from '../lib/deploy-check.ts';
import { runTests } from '../lib/deploy-tests.ts';
import { startApiServer } from '../lib/issuers/api-server.ts';
import { definitionsOf, SOURCES, schemasOf } from '../lib/mesh/schemas.ts';
import { findKubeApiserver, KUBE_APISERVER_VERSION } from '../lib/tools/kube-apiserver.ts';

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);
const MODULE_TIMEOUT_MS = 120_000;
const READY_LIMIT_MS = 60_000;
const POLL_MS = 200;

interface Modules {
  readonly cache: string;
  readonly found: readonly (typeof SOURCES)[number][];
  readonly absent: readonly string[];
}

/** Finds the modules of the definitions, of which not all can be had everywhere. */
async function findModules(): Promise<Modules | undefined> {
  const cache = await run('go', ['env', 'GOMODCACHE']).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  );
  if (cache === undefined) return undefined;
  const found: (typeof SOURCES)[number][] = [];
  for (const source of SOURCES) {
    const folder = join(cache, source.module);
    if (!existsSync(folder))
      await run('go', ['mod', 'download', source.module], { timeout: MODULE_TIMEOUT_MS, cwd: '/' }).catch(
        () => undefined,
      );
    if (existsSync(folder)) found.push(source);
  }
  return { cache, found, absent: SOURCES.filter((one) => !found.includes(one)).map(({ module }) => module) };
}

const NO_GO: CheckOutcome = {
  kind: 'unavailable',
  says: 'Go is not installed. Install it to fetch the definitions',
};

function withAbsent(says: string, absent: readonly string[]): string {
  return absent.length === 0 ? says : `${says}; not to be had: ${absent.join(', ')}`;
}

/** Compares the schemas that the tests use with those in the modules, of as many modules as can be had here. */
async function compareSchemas(): Promise<CheckOutcome> {
  const kept: Readonly<Record<string, unknown>> = JSON.parse(
    readFileSync(join(ROOT, 'test/mesh/schemas.json'), 'utf8'),
  );
  const modules = await findModules();
  if (modules === undefined) return NO_GO;
  const { cache, found, absent } = modules;
  for (const source of found) {
    for (const [name, schema] of Object.entries(schemasOf(source, cache))) {
      if (JSON.stringify(kept[name]) !== JSON.stringify(schema))
        return { kind: 'failed', says: `${name} is not that of ${source.module}` };
    }
  }
  const says = withAbsent(`equal: ${found.map(({ module }) => module).join(', ')}`, absent);
  return found.length === 0 ? { kind: 'unavailable', says } : { kind: 'ok', says };
}

/** A manifest that only a rule in CEL refuses: its targets are of two kinds. */
const REFUSED = {
  apiVersion: 'agentgateway.dev/v1alpha1',
  kind: 'AgentgatewayPolicy',
  metadata: { name: 'refused', namespace: 'ai' },
  spec: {
    targetRefs: ['Gateway', 'HTTPRoute'].map((kind) => ({ group: 'gateway.networking.k8s.io', kind, name: 'ai' })),
    traffic: { phase: 'PreRouting' },
  },
};

/** Sends the manifests of the guides to an API server that has the definitions, with their rules in CEL. */
async function acceptManifests(): Promise<CheckOutcome> {
  const modules = await findModules();
  if (modules === undefined) return NO_GO;
  const program = await findKubeApiserver();
  if (program.kind === 'missing') return { kind: 'unavailable', says: program.message };
  const definitions = modules.found.flatMap((source) => definitionsOf(source, modules.cache));
  await using kubernetes = await startApiServer(program.path);
  for (const { whole } of definitions)
    await kubernetes.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', whole);
  for (const name of ['ai', 'postern']) await kubernetes.call('POST', '/api/v1/namespaces', { metadata: { name } });
  const create = (manifest: Mapping): Promise<unknown> | undefined => {
    const [group, version] = String(manifest['apiVersion']).split('/');
    const spec = definitions.find((one) => one.kind === manifest['kind'] && one.spec['group'] === group)?.spec;
    if (spec === undefined) return undefined;
    const scope = spec['scope'] === 'Cluster' ? '' : `namespaces/${at(manifest, 'metadata', 'namespace')}/`;
    const path = `/apis/${group}/${version}/${scope}${at(spec, 'names', 'plural')}`;
    return untilServed(() => kubernetes.call('POST', `${path}?dryRun=All&fieldValidation=Strict`, manifest));
  };
  const [wrong, skipped]: [string[], string[]] = [[], []];
  let accepted = 0;
  for (const guide of GUIDES) {
    for (const manifest of manifestsOf(guide)) {
      const answer = create(manifest);
      if (answer === undefined) skipped.push(`${guide} ${manifest['kind']}`);
      else
        await answer.then(
          () => accepted++,
          (error: unknown) => wrong.push(`${guide}: ${String(error)}`),
        );
    }
  }
  const refusal = await create(REFUSED)?.then(
    () => 'accepted',
    (error: unknown) => String(error),
  );
  if (refusal !== undefined && !refusal.includes('Only one Kind of targetRef'))
    wrong.push(`an AgentgatewayPolicy with targets of two kinds: ${refusal}`);
  if (wrong.length > 0) return { kind: 'failed', says: wrong.join('; ') };
  return { kind: 'ok', says: `${accepted} manifests; without a definition here: ${skipped.join(', ')}` };
}

/** Polls while the API server does not serve a definition yet that it took: 404. */
async function untilServed(work: () => Promise<unknown>): Promise<unknown> {
  for (const deadline = performance.now() + READY_LIMIT_MS; ; await sleep(POLL_MS)) {
    try {
      return await work();
    } catch (error) {
      if (performance.now() > deadline || !String(error).includes(': 404 ')) throw error;
    }
  }
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
  {
    name: "a real API server accepts the guides' manifests, with unknown fields refused and the projects' own rules",
    tool: { name: 'kube-apiserver', version: KUBE_APISERVER_VERSION },
    // As for the tokens of ServiceAccounts: no package brings the API server.
    optional: true,
    run: acceptManifests,
  },
];
