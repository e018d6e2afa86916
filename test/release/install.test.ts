/** The files of docs/install: a server reads their settings, and systemd and Envoy accept their configuration. */

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { rootManifest } from '../../scripts/lib/release/packages.ts';
import { ENVOY_VERSION } from '../../src/cli/envoy.ts';
import { loadConfig } from '../../src/config/load.ts';
import { validateConfig } from '../support/envoy.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const DOCS = fileURLToPath(new URL('../../docs', import.meta.url));
const run = promisify(execFile);

interface Service {
  readonly image: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly secrets?: readonly string[];
  readonly ports?: readonly string[];
}
interface Compose {
  readonly services: Readonly<Record<'postern' | 'database' | 'platform', Service>> & {
    readonly envoy: Service & { readonly networks: { readonly inside: { readonly ipv4_address: string } } };
  };
  readonly secrets: Readonly<Record<string, unknown>>;
}
const compose: Compose = parse(await readFile(join(DOCS, 'install/compose.yaml'), 'utf8'));
const { postern, database, envoy, platform } = compose.services;

async function folderOf(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-install-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

it('a server reads the environment of compose.yaml: no problem, listeners for the other containers, Envoy as the only trusted proxy', async () => {
  const folder = await folderOf();
  const secrets = { 'database-url': 'postgresql://postern:p@database:5432/postern', 'secret-key': 's'.repeat(44) };
  for (const [name, text] of Object.entries(secrets)) await writeFile(join(folder, name), `${text}\n`);
  const env = Object.fromEntries(
    Object.entries(postern.environment ?? {}).map(([name, value]) => [name, value.replace('/run/secrets', folder)]),
  );
  const loaded = loadConfig({ env, file: undefined });
  if (loaded.kind === 'invalid') throw new Error(loaded.errors.map(({ message }) => message).join('\n'));
  expect(loaded.secrets).toMatchObject({ databaseUrl: secrets['database-url'], secretKey: secrets['secret-key'] });
  expect(env['POSTERN_HTTP_TRUSTED_PROXIES']).toBe(JSON.stringify([envoy.networks.inside.ipv4_address]));
  for (const name of ['HTTP', 'GRPC', 'ADMIN']) expect(env[`POSTERN_${name}_LISTEN`]).toMatch(/^0\.0\.0\.0:\d+$/);
});

it('compose.yaml has the tested versions, publishes only Envoy on loopback, and names each secret that it mounts', async () => {
  const { version } = await rootManifest();
  expect([postern.image, envoy.image]).toEqual([`postern:${version}`, `envoyproxy/envoy:v${ENVOY_VERSION}`]);
  expect([postern, database, platform].flatMap(({ ports = [] }) => ports)).toEqual([]);
  expect(envoy.ports).toEqual(['127.0.0.1:10000:10000']);
  const mounted = [postern, database].flatMap(({ secrets = [] }) => secrets);
  expect(new Set(mounted)).toEqual(new Set(Object.keys(compose.secrets)));
});

it('Envoy accepts the configuration that the guide prints for compose.yaml, which listens on the published port', async () => {
  const guide = await readFile(join(DOCS, 'install.md'), 'utf8');
  const [, words = ''] = / postern:[\d.]+ (envoy config .*) > envoy\.yaml$/m.exec(guide) ?? [];
  const { stdout } = await run(process.execPath, [MAIN, ...words.split(' ')], { maxBuffer: 1 << 24, env: {} });
  expect(stdout).toContain('port_value: 10000');
  expect(await validateConfig(parse(stdout))).toMatchObject({ ok: true });
});

it('Envoy accepts the lines of configuration in the README, between a listener and the cluster that they name', async () => {
  const readme = await readFile(join(DOCS, '../README.md'), 'utf8');
  const shown: { http_filters: readonly object[] } = parse(/^```yaml\n([\s\S]*?)^```$/m.exec(readme)?.[1] ?? '');
  const types = 'type.googleapis.com/envoy.extensions.filters';
  const router = { name: 'router', typed_config: { '@type': `${types}.http.router.v3.Router` } };
  const manager = {
    '@type': `${types}.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: 'edge',
    http_filters: [...shown.http_filters, router],
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'] }] },
  };
  const filters = [{ name: 'http', typed_config: manager }];
  const address = { socket_address: { address: '127.0.0.1', port_value: 0 } };
  const static_resources = {
    listeners: [{ name: 'edge', address, filter_chains: [{ filters }] }],
    clusters: [{ name: 'postern-grpc' }],
  };
  expect(await validateConfig({ static_resources })).toMatchObject({ ok: true });
});

it('systemd accepts the unit, which gives a server the time to drain', async () => {
  const unit = await readFile(join(DOCS, 'install/postern.service'), 'utf8');
  const file = join(await folderOf(), 'postern.service');
  // systemd-analyze also checks that the program exists.
  await writeFile(file, unit.replace('/opt/postern/node_modules/.bin/postern', process.execPath));
  expect(unit).toContain('\nTimeoutStopSec=20s\n');
  const { stdout, stderr } = await run('systemd-analyze', ['verify', file]).catch((error: NodeJS.ErrnoException) => {
    // Without systemd on the machine, each line must have the form of one.
    if (error.code !== 'ENOENT') throw error;
    expect(unit.split('\n').filter((line) => !/^(|#.*|\[\w+\]|\w+=.*)$/.test(line))).toEqual([]);
    return { stdout: '', stderr: '' };
  });
  expect(stdout + stderr).toBe('');
});
