import cluster from 'node:cluster';
import { Passwords } from '../identity/passwords.ts';
import { openStore, prepareStore } from '../server/store.ts';
import { startServer } from '../server.ts';
import { createTelemetry } from '../telemetry/telemetry.ts';
import type { Arguments } from './arguments.ts';
import { loadOrRefuse } from './configuration.ts';
import { stopSignal } from './signals.ts';
import { tellAdministrator } from './tell.ts';
import { serveAsWorker } from './worker.ts';
import { serveWithWorkers } from './workers.ts';

/** The production server: runs until SIGTERM or SIGINT, drains, and exits 0. */
export async function serve(args: Arguments): Promise<number> {
  const loaded = loadOrRefuse(args);
  const { config, secrets } = loaded;
  const telemetry = createTelemetry({ level: config.log.level });
  // A fault that nobody waited for is one request's, and no reason to end all others.
  process.on('unhandledRejection', (error) => telemetry.log.error({ err: error }, 'a failure was left unhandled'));
  if (cluster.isWorker) return serveAsWorker(loaded, telemetry);
  const stop = stopSignal();
  const store = await openStore(config, secrets, telemetry);
  try {
    const passwords = await Passwords.start();
    tellAdministrator(await prepareStore(config, secrets, store, passwords));
    if (config.workers > 1) return await serveWithWorkers(loaded, store, telemetry, stop);
    const server = await startServer({ config, secrets, store, passwords, telemetry, health: true });
    telemetry.log.info(server.addresses, 'ready');
    await stop;
    telemetry.log.info('draining');
    await server.close();
    return 0;
  } finally {
    await store.close();
    telemetry.flush();
  }
}
