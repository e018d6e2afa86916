/**
 * Several processes behind the same ports. The first one keeps the store, watches the others, and answers for their health and metrics.
 *
 * Connections are dealt to the workers in turn; Envoy keeps few and long ones, so give it at least as many as there are workers.
 *
 * The first worker finds out whether the addresses can be had: only when it is ready the others follow, and a failure is told once.
 * From then on a worker that ends is replaced.
 */

import { listening } from '../config/listening.ts';
import { removeStaleSocket } from '../extauthz/listen-address.ts';
import { startHealthServer } from '../http/health.ts';
import { configuredDirectories, warnOfDirectories } from '../server/directories.ts';
import type { Store } from '../server/store.ts';
import { clusterMetrics } from '../telemetry/cluster.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import type { Loaded } from './configuration.ts';
import { type Ended, gatherCrew } from './crew.ts';

/** Runs until told to stop; resolves with the exit code. */
export async function serveWithWorkers(loaded: Loaded, store: Store, telemetry: Telemetry, stop: Promise<void>): Promise<number> {
  const { config, secrets } = loaded;
  const directories = configuredDirectories(config, secrets);
  warnOfDirectories(directories, telemetry);
  const crew = gatherCrew(config.workers, { url: store.url, secretKey: store.secretKey }, telemetry);
  const health = await listening(
    'admin.listen',
    config.admin.listen,
    startHealthServer({
      listen: config.admin.listen,
      ready: async () => crew.unready(),
      warnings: directories?.problems ?? [],
      metrics: clusterMetrics(),
    }),
  );
  try {
    if (config.grpc.listen.kind === 'unix') {
      const { path } = config.grpc.listen;
      await listening('grpc.listen', `unix:${path}`, removeStaleSocket(path));
    }
    const first = crew.hire();
    const begun = await Promise.race([first.ready, first.ended, stop]);
    if (begun?.kind === 'ended') return refusedToStart(begun);
    if (begun?.kind === 'ready') {
      telemetry.log.info({ workers: config.workers }, 'ready');
      crew.keep(first);
      for (let i = 1; i < config.workers; i++) crew.keep(crew.hire());
      await stop;
    }
    telemetry.log.info('draining');
    await crew.dismiss();
    return 0;
  } finally {
    await health.close();
  }
}

/** What is wrong the worker has said itself, unless somebody else ended it. */
function refusedToStart({ code, signal }: Ended): number {
  if (code !== null && code > 0) return code;
  throw new Error(`The first worker ended (${signal ?? `with status ${code}`}) before it could serve.`);
}
