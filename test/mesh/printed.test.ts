/**
 * The commands `postern envoy config` in the guides, as a reader would run them: what they print is valid, and fits the
 * resources of the guide.
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { runCommand } from '../support/command.ts';
import { at, documentsOf, isMapping, listAt, type Mapping, manifest, pageText } from './support/guides.ts';
import { problemsOf } from './support/schema.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-guide-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The arguments of each such command on a page. */
function commandsOf(page: string): readonly string[] {
  return [...pageText(page).matchAll(/^postern envoy config (.*?) > \S+/gm)].map(([, args = '']) => args);
}

/** Runs a command with the settings of Postern that the guide shows. */
async function printed(args: string, settings: Mapping): Promise<Mapping> {
  const file = join(folder, 'postern.yaml');
  writeFileSync(file, JSON.stringify(settings));
  const words = args.split(/\s+/).map((word) => (word === 'postern.yaml' ? file : word));
  const { code, stdout, stderr } = await runCommand(['envoy', 'config', ...words], {});
  expect([code, stderr]).toEqual([0, '']);
  const value: unknown = parse(stdout, { merge: true });
  if (!isMapping(value)) throw new Error(`${args} prints no mapping`);
  return value;
}

const settingsOf = (guide: 'istio' | 'envoy-gateway'): Mapping => documentsOf(guide).find((one) => 'http' in one) ?? {};

test.each(commandsOf('istio'))('istio.md: %s prints a valid EnvoyFilter for the Gateway of the guide', async (args) => {
  const filter = await printed(args, settingsOf('istio'));
  expect(problemsOf(filter)).toEqual([]);
  const gateway = manifest('istio', 'Gateway');
  expect(at(filter, 'metadata', 'namespace')).toBe(at(gateway, 'metadata', 'namespace'));
  expect(at(filter, 'spec', 'targetRefs')).toEqual(at(manifest('istio', 'AuthorizationPolicy'), 'spec', 'targetRefs'));
  const inserted = listAt(filter, 'spec', 'configPatches').filter(
    (patch) => at(patch, 'patch', 'operation') === 'INSERT_FIRST',
  );
  const platform = listAt(manifest('istio', 'HTTPRoute'), 'spec', 'rules').at(-1);
  const [name, port] = [at(platform, 'backendRefs', 0, 'name'), at(platform, 'backendRefs', 0, 'port')];
  const clusters = new Set(inserted.map((patch) => at(patch, 'patch', 'value', 'route', 'cluster')));
  expect([...clusters]).toEqual(args.includes('--upstream') ? [`outbound|${port}||${name}.ai.svc.cluster.local`] : []);
});

test.each(commandsOf('envoy-gateway'))(
  'envoy-gateway.md: %s prints a valid EnvoyPatchPolicy for the resources of the guide',
  async (args) => {
    const patches = await printed(args, settingsOf('envoy-gateway'));
    expect(problemsOf(patches)).toEqual([]);
    const gateway = manifest('envoy-gateway', 'Gateway');
    const [namespace, name] = [at(gateway, 'metadata', 'namespace'), at(gateway, 'metadata', 'name')];
    expect(at(patches, 'spec', 'targetRef')).toEqual(
      at(manifest('envoy-gateway', 'SecurityPolicy'), 'spec', 'targetRefs', 0),
    );
    const resources = listAt(patches, 'spec', 'jsonPatches').map((patch) => at(patch, 'name'));
    expect([...new Set(resources)]).toEqual([`${namespace}/${name}/${at(gateway, 'spec', 'listeners', 0, 'name')}`]);
    const policy = at(manifest('envoy-gateway', 'SecurityPolicy'), 'metadata', 'name');
    expect(JSON.stringify(patches)).toContain(`envoy.filters.http.ext_authz/securitypolicy/${namespace}/${policy}'`);
  },
);

test.each(['envoy', 'kubernetes'].flatMap((page) => commandsOf(page).map((args) => [page, args] as const)))(
  '%s.md: %s prints a configuration with a listener for the edge',
  async (_page, args) => {
    const listeners = listAt(await printed(args, {}), 'static_resources', 'listeners').map((listener) =>
      at(listener, 'name'),
    );
    expect(listeners).toEqual(['edge']);
  },
);

test('the guides have these commands', () => {
  const counts = ['istio', 'envoy-gateway', 'envoy', 'kubernetes'].map((page) => commandsOf(page).length);
  expect(counts).toEqual([2, 1, 1, 1]);
});
