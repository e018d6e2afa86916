/** A gate or the API as the only process of its server, without a supervisor. */

import { hostAndPort, listening } from '../config/listening.ts';
import { startHealthServer } from '../http/health.ts';
import { NO_LOCAL_GATES } from '../server/applied.ts';
import type { Store } from '../server/store.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import type { LoadedConfig } from './configuration.ts';
import { boundHeapGrowth } from './heap.ts';
import type { ProcessKind } from './process-messages.ts';
import { startApiProcess, startGateProcess } from './start-process.ts';

interface Alone {
  readonly addresses: { readonly grpc?: string; readonly http?: string; readonly admin: string };
  close(): Promise<void>;
}

/** Starts the listener of that kind, with health and metrics. If it rejects, everything that it started has stopped. */
export async function startAlone(
  kind: ProcessKind,
  loaded: LoadedConfig,
  store: Store,
  telemetry: Telemetry,
  name: string,
): Promise<Alone> {
  await using starting = new AsyncDisposableStack();
  const { config, secrets } = loaded;
  const wiring = { config, secrets, store, telemetry, identity: { id: `${name}/1`, server: name } };
  const server =
    kind === 'gate' ? await startGateProcess(wiring, false) : await startApiProcess(wiring, NO_LOCAL_GATES);
  starting.defer(() => server.close());
  telemetry.metrics.show('postern_processes_ready', () => [[kind, server.ready().length === 0 ? 1 : 0]]);
  const health = await listening(
    'admin.listen',
    config.admin.listen,
    startHealthServer({
      listen: config.admin.listen,
      ready: server.ready,
      warnings: server.warnings,
      metrics: () => telemetry.metrics.exposition(),
    }),
  );
  boundHeapGrowth();
  // The admin listener closes last, so that it reports that the server drains.
  const running = starting.move();
  return {
    addresses: {
      ...(kind === 'gate' ? { grpc: server.address } : { http: server.address }),
      admin: hostAndPort({ kind: 'tcp', ...health.address }),
    },
    async close() {
      await running.disposeAsync();
      await health.close();
    },
  };
}
