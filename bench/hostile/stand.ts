/**
 * The test stand: PostgreSQL, Postern, the stand-in upstream and Envoy with the production configuration, each a
 * process of its own.
 */

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openWorld } from '../server-under-test.ts';
import { Administrator } from './administrator.ts';
import { Connection, type Edge } from './connection.ts';
import { type Certificates, makeCertificates, type ProductionEnvoy, startProduction } from './envoy.ts';
import { ADMINISTRATOR, type Postern, startPostern } from './postern.ts';

const SERVING_TIMEOUT_MS = 20_000;
const POLL_MS = 100;
/** The exit code after a signal. */
const INTERRUPTED = 130;

/** Postern's gRPC listener and a certificate that it accepts: a client inside the mesh has one. */
export interface Mesh {
  /** `host:port` */
  readonly address: string;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export interface Stand extends AsyncDisposable {
  readonly folder: string;
  readonly databaseUrl: string;
  readonly certificates: Certificates;
  readonly edge: Edge;
  readonly mesh: Mesh;
  /** `host:port` of Postern's HTTP listener. */
  readonly http: string;
  readonly postern: Postern;
  readonly envoy: ProductionEnvoy;
  /** `http://host:port/ledger` */
  readonly ledger: string;
  readonly administrator: Administrator;
}

/**
 * Everything is stopped again in reverse order, also if a part does not start.
 * @param folder removed at the end
 * @param ownUpstream `host:port` of an upstream in place of the stand-in; it has no ledger
 * @param traces true: Envoy traces
 */
export async function openStand(
  folder: string,
  { ownUpstream, traces = false }: { readonly ownUpstream?: string; readonly traces?: boolean | undefined } = {},
): Promise<Stand> {
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const world = stack.use(await openWorld(join(folder, 'world'), async () => undefined));
  const certificates = makeCertificates(join(folder, 'etc'));
  const upstream = fork(join(import.meta.dirname, 'upstream-process.ts'));
  stack.defer(() => stopChild(upstream));
  const [upstreamPort] = (await once(upstream, 'message')) as [number];
  const postern = await startPostern({ folder, databaseUrl: world.url, certificates });
  stack.defer(() => postern.stop());
  const upstreamAddress = ownUpstream ?? `127.0.0.1:${upstreamPort}`;
  const behind = { grpc: postern.grpc, http: postern.http, upstream: upstreamAddress };
  const envoy = await startProduction(certificates, behind, traces);
  stack.defer(() => envoy.stop());
  const edge: Edge = { host: '127.0.0.1', port: envoy.port, ca: certificates.ca };
  await serving(edge);
  const { email, password } = ADMINISTRATOR;
  const administrator = await Administrator.login(postern.http, email, password);
  const running = stack.move();
  // An interrupted benchmark leaves no process behind either.
  const interrupt = (): void => void running.disposeAsync().finally(() => process.exit(INTERRUPTED));
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  running.defer(() => void process.off('SIGINT', interrupt).off('SIGTERM', interrupt));
  return {
    folder,
    databaseUrl: world.url,
    certificates,
    edge,
    mesh: { address: postern.grpc, ca: certificates.ca, ...certificates.client },
    http: postern.http,
    postern,
    envoy,
    ledger: `http://${upstreamAddress}/ledger`,
    administrator,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Envoy answers checks after it has found Postern healthy. */
async function serving(edge: Edge): Promise<void> {
  const connection = new Connection(edge, '127.0.0.1');
  const deadline = performance.now() + SERVING_TIMEOUT_MS;
  for (;;) {
    const outcome = await connection.send({ method: 'GET', path: '/v1/models' }, POLL_MS * 10);
    if (outcome.kind === 'reply' && outcome.status === 401) break;
    if (performance.now() > deadline) throw new Error(`Envoy does not serve: ${JSON.stringify(outcome)}`);
    await sleep(POLL_MS);
  }
  connection.close();
}

export async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}
