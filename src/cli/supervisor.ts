/**
 * One server as several processes: gates behind the gRPC address, and one API. The supervisor keeps the embedded
 * database, starts and replaces the processes, passes the API's requests to the gates, and answers for the health and
 * the metrics of all.
 *
 * No request or connection of a client reaches the supervisor. It opens the gRPC listener once and shares it with the
 * gates, and each gate accepts connections itself. A gate depends on no other process once it runs.
 */

import { randomBytes } from 'node:crypto';
import { hostAndPort, listening } from '../config/listening.ts';
import { removeStaleSocket } from '../extauthz/listen-address.ts';
import { startHealthServer } from '../http/health.ts';
import type { Store } from '../server/store.ts';
import { removeReplica } from '../store/replicas.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import type { LoadedConfig } from './configuration.ts';
import { boundHeapGrowth } from './heap.ts';
import type { ProcessKind } from './process-messages.ts';
import { type ChildProcess, type Ended, ProcessPool } from './process-pool.ts';

const SERVER_NAME_BYTES = 8;

interface Supervised {
  /** The real addresses; `http` is undefined without an API. */
  readonly addresses: { readonly grpc: string; readonly http: string | undefined; readonly admin: string };
  /** Returns the reasons why the server cannot decide; empty = ready. */
  unready(): readonly string[];
  /** Drains and stops every process. */
  close(): Promise<void>;
}

type StartOutcome =
  | { readonly kind: 'serving'; readonly server: Supervised }
  | { readonly kind: 'stopped' }
  /** A process did not start and has reported the reason. */
  | { readonly kind: 'refused'; readonly code: number };

/**
 * Starts the processes.
 * @param kinds `gate` alone, or both
 * @param stop ends the start when it resolves
 */
export async function startSupervised(
  { config, secrets }: LoadedConfig,
  store: Store,
  telemetry: Telemetry,
  kinds: readonly ProcessKind[],
  stop: Promise<void>,
): Promise<StartOutcome> {
  await using starting = new AsyncDisposableStack();
  const pool = new ProcessPool({
    config,
    secrets,
    store: { url: store.url, secretKey: store.secretKey, otherSecretKey: store.otherSecretKey },
    telemetry,
    server: randomBytes(SERVER_NAME_BYTES).toString('hex'),
    onEnd: ({ id }) => {
      removeReplica(store.db, id).catch((err: unknown) =>
        telemetry.log.warn({ err }, 'a replica that ended could not be removed'),
      );
    },
  });
  telemetry.metrics.show('postern_processes_ready', () => kinds.map((kind) => [kind, pool.state(kind).ready]));
  telemetry.metrics.show('postern_process_restarts_total', () => pool.restarts);
  let begun = false;
  const unready = (): readonly string[] => reasons(pool, config.workers, begun);
  const health = await listening(
    'admin.listen',
    config.admin.listen,
    startHealthServer({
      listen: config.admin.listen,
      ready: unready,
      warnings: () => warnings(pool, kinds, begun),
      metrics: telemetry.metrics.cluster(),
    }),
  );
  starting.defer(() => health.close());
  if (config.grpc.listen.kind === 'unix') {
    const { path } = config.grpc.listen;
    await listening('grpc.listen', `unix:${path}`, removeStaleSocket(path));
  }
  starting.defer(() => pool.stop());

  // First one process of each kind, so that an address in use is reported once.
  const first = new Map(kinds.map((kind) => [kind, pool.start(kind)]));
  const addresses = await begin([...first.values()], stop);
  if (addresses.kind !== 'began') return addresses;
  for (const child of first.values()) pool.supervise(child);
  for (let i = 1; i < config.workers; i++) pool.supervise(pool.start('gate'));
  begun = true;
  boundHeapGrowth();

  const running = starting.move();
  return {
    kind: 'serving',
    server: {
      addresses: {
        grpc: addresses.of('gate') ?? '',
        http: addresses.of('api'),
        admin: hostAndPort({ kind: 'tcp', ...health.address }),
      },
      unready,
      close: () => running.disposeAsync(),
    },
  };
}

type Begin =
  | { readonly kind: 'began'; readonly of: (kind: ProcessKind) => string | undefined }
  | Exclude<StartOutcome, { kind: 'serving' }>;

async function begin(children: readonly ChildProcess[], stop: Promise<void>): Promise<Begin> {
  const allBegan = Promise.all(children.map(async ({ kind, began }) => ({ kind, address: (await began).address })));
  const outcome = await Promise.race([allBegan, ...children.map(({ ended }) => ended), stop]);
  if (outcome === undefined) return { kind: 'stopped' };
  if ('code' in outcome) return { kind: 'refused', code: exitCode(outcome) };
  return { kind: 'began', of: (kind) => outcome.find((child) => child.kind === kind)?.address };
}

/** The process has reported the reason itself, unless something else ended it. */
function exitCode({ code, signal }: Ended): number {
  if (code !== null && code > 0) return code;
  throw new Error(`A process exited (${signal ?? `with status ${code}`}) before it was ready. The log has the cause.`);
}

/** The server can decide if one gate can. During the start, the API must have begun as well. */
function reasons(pool: ProcessPool, workers: number, begun: boolean): readonly string[] {
  if (pool.stopping) return ['draining: the process is stopping'];
  const gates = pool.state('gate');
  if (gates.ready > 0) return begun ? [] : ['processes: some have not started'];
  return gates.running < workers ? ['workers: some have not started'] : gates.reasons;
}

/** A server without its API still decides, so its absence is a warning. */
function warnings(pool: ProcessPool, kinds: readonly ProcessKind[], begun: boolean): readonly string[] {
  const all = kinds.flatMap((kind) => pool.state(kind).warnings);
  if (!begun || !kinds.includes('api')) return all;
  const { running, ready, reasons } = pool.state('api');
  if (running === 0) return ['api: the process exited and is being restarted', ...all];
  return ready === 0 ? [...reasons.map((reason) => `api: ${reason}`), ...all] : all;
}
