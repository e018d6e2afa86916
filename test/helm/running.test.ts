/**
 * The rendered chart, run without a cluster: real servers with its configuration, its arguments and its environment.
 */

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { type Manifest, manifestsOf } from '../../scripts/lib/tools/manifests.ts';
import { placeAddresses } from '../../src/cli/envoy-config.ts';
import { eventually } from '../server/support/eventually.ts';
import { type Addresses, isReady, openStand, type Running, type Stand } from '../server/support/postern.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { startConfig } from '../support/envoy.ts';
import { send } from '../support/http.ts';
import { freeAddresses, startContainer as startContainerOf } from './containers.ts';
import { containersOf, listAt, only, podSpecOf, textAt } from './objects.ts';
import { render } from './support.ts';

/** As long as a busy machine may need. */
const START_LIMIT_MS = 90_000;

vi.setConfig({ testTimeout: 120_000, hookTimeout: 300_000 });

let stand: Stand;
let database: FreshDatabase;
beforeAll(async () => {
  stand = await openStand();
  database = await freshDatabase();
});
afterAll(async () => {
  await stand?.close();
  await database?.close();
});

function startContainer(manifests: readonly Manifest[], pod: unknown, name: string, free: Addresses): Promise<Running> {
  return startContainerOf({ stand, databaseUrl: database.url, manifests, pod, name, free });
}

/** Runs the program of `helm test`, with the Services' names replaced by the addresses. */
function helmTest(
  manifests: readonly Manifest[],
  { http, grpc, admin }: Addresses,
): Promise<{ code: number | null; output: string }> {
  const [container] = containersOf(podSpecOf(only(manifests, 'Pod', 'postern-test')));
  const [program] = listAt(container, 'args');
  const [, ...options] = listAt(container, 'command').map(String);
  const text = String(program)
    .replaceAll('postern-http:8080', http)
    .replaceAll('postern-admin:9090', admin)
    .replace("connect(9191, 'postern-grpc'", `connect(${grpc.split(':')[1]}, '127.0.0.1'`);
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [...options, text], { timeout: 60_000 }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode, output: stdout + stderr }),
    );
  });
}

it('the central server starts with the rendered configuration, passes helm test, and ends with 0', async () => {
  const manifests = manifestsOf(await render('minimal'));
  const free = await freeAddresses();
  const pod = podSpecOf(only(manifests, 'Deployment'));
  const server = await startContainer(manifests, pod, 'postern', free);
  await eventually('it is ready', () => isReady(free.admin), START_LIMIT_MS);
  const passed = await helmTest(manifests, free);
  expect(passed.output).toContain('/.well-known/jwks.json answers 200');
  expect(passed.output).toContain('postern-grpc:9191 accepts connections');
  expect(passed.code).toBe(0);
  expect((await server.stop()).code).toBe(0);
  // Its root file system is read-only, so it may write nothing beside /tmp.
  expect(await readdir(stand.folder)).toEqual([expect.stringMatching(/^postern-/)]);
  expect((await helmTest(manifests, free)).code).not.toBe(0);
});

it('the API and the gate of the mode sidecar start with the rendered configuration, the gate on its socket and Envoy in front of both', async () => {
  const manifests = manifestsOf(await render('sidecar'));
  const [apiAt, gateAt] = [await freeAddresses(), await freeAddresses()];
  const api = await startContainer(manifests, podSpecOf(only(manifests, 'Deployment', 'postern')), 'postern', apiAt);
  const gate = await startContainer(
    manifests,
    podSpecOf(only(manifests, 'Deployment', 'postern-envoy')),
    'gate',
    gateAt,
  );
  await eventually(
    'both are ready',
    async () => (await isReady(apiAt.admin)) && (await isReady(gateAt.admin)),
    START_LIMIT_MS,
  );
  expect(await readdir(stand.folder)).toContain('gate.sock');
  expect((await helmTest(manifests, apiAt)).code).toBe(0);
  const config = textAt(only(manifests, 'ConfigMap', 'postern-envoy'), 'data', 'envoy.yaml');
  const places = { edge: '127.0.0.1:0', 'postern-grpc': `unix:${stand.folder}/gate.sock`, 'postern-http': apiAt.http };
  const edge = await startConfig(placeAddresses(config, { admin: '127.0.0.1:0', places }));
  onTestFinished(() => edge.stop());
  const statusOf = async (path: string): Promise<number> => (await send(edge.url, { path })).status;
  await eventually('Envoy finds the gate healthy', async () => (await statusOf('/v1/models')) === 401, START_LIMIT_MS);
  expect(await statusOf('/openapi.json')).toBe(200);
  expect((await gate.stop()).code).toBe(0);
  expect(await statusOf('/v1/models')).toBe(503);
  expect((await api.stop()).code).toBe(0);
});

it('a server of a dual-stack cluster answers over IPv4 and IPv6', async () => {
  const free = await freeAddresses();
  const onPort = (text: string, port: number, at: string): string =>
    text.replace(`[::]:${port}`, `[::]:${at.split(':')[1]}`);
  const text = onPort(await render('minimal', '--set', 'listenAddress=::'), 8080, free.http);
  const manifests = manifestsOf(onPort(onPort(text, 9191, free.grpc), 9090, free.admin));
  const server = await startContainer(manifests, podSpecOf(only(manifests, 'Deployment')), 'postern', free);
  await eventually('it is ready', () => isReady(free.admin), START_LIMIT_MS);
  for (const address of [free.admin, free.admin.replace('127.0.0.1', '[::1]')]) {
    expect((await fetch(`http://${address}/readyz`)).status, address).toBe(200);
  }
  expect((await server.stop()).code).toBe(0);
});

it('the Job of the migration runs with the rendered configuration, and grants the role of the servers its rights', async () => {
  const role = `servers-${randomBytes(4).toString('hex')}`;
  await database.db.knex.raw('create role ??', [role]);
  const manifests = manifestsOf(await render('argo', '--set', `migrations.serverRole=${role}`));
  const migrate = await startContainer(manifests, podSpecOf(only(manifests, 'Job')), 'migrate', await freeAddresses());
  expect((await migrate.finished).code).toBe(0);
  const granted = await database.db.query({
    text: "select has_table_privilege($1, 'users', 'update') as may",
    values: [role],
  });
  expect(granted).toEqual([{ may: true }]);
});
