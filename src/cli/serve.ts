/** `postern serve`: gates and the API under a supervisor, or one of the two. */

import { randomBytes } from 'node:crypto';
import { openStore, prepareStore, type Store } from '../server/store.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import { type Arguments, UsageError } from './arguments.ts';
import { type LoadedConfig, loadOrRefuse } from './configuration.ts';
import { KINDS, type ProcessKind } from './process-messages.ts';
import { serverTelemetry } from './server-telemetry.ts';
import { stopSignal } from './signals.ts';

/** Runs until SIGTERM or SIGINT, drains, and exits 0. */
export async function serve(args: Arguments): Promise<number> {
  const only = onlyOption(args);
  const loaded = await loadOrRefuse(args);
  const isAlone = only === 'api' || (only === 'gate' && loaded.config.workers === 1);
  const telemetry = await serverTelemetry(loaded);
  const stop = stopSignal();
  const opened = await openStore(loaded.config, loaded.secrets, telemetry);
  try {
    const store = await Promise.race([prepareStore(opened, loaded.config, telemetry), stop]);
    if (store === undefined) return 0;
    return isAlone
      ? await serveAlone(only, loaded, store, telemetry, stop)
      : await serveSupervised(only === undefined ? KINDS : [only], loaded, store, telemetry, stop);
  } finally {
    await opened.close();
    await telemetry.flush();
  }
}

function onlyOption(args: Arguments): ProcessKind | undefined {
  const text = args.value('only');
  if (text === undefined) return undefined;
  const kind = KINDS.find((known) => known === text);
  if (kind === undefined) throw new UsageError(`--only must be ${KINDS.join(' or ')}, not ${text}.`);
  return kind;
}

async function serveSupervised(
  kinds: readonly ProcessKind[],
  loaded: LoadedConfig,
  store: Store,
  telemetry: Telemetry,
  stop: Promise<void>,
): Promise<number> {
  const { startSupervised } = await import('./supervisor.ts');
  const outcome = await startSupervised(loaded, store, telemetry, kinds, stop);
  switch (outcome.kind) {
    case 'stopped':
      return 0;
    case 'refused':
      return outcome.code;
    case 'serving':
      telemetry.log.info({ ...outcome.server.addresses, workers: loaded.config.workers }, 'ready');
      await stop;
      telemetry.log.info('draining');
      await outcome.server.close();
      return 0;
    default:
      return outcome satisfies never;
  }
}

async function serveAlone(
  kind: ProcessKind,
  loaded: LoadedConfig,
  store: Store,
  telemetry: Telemetry,
  stop: Promise<void>,
): Promise<number> {
  const { startAlone } = await import('./alone.ts');
  const server = await startAlone(kind, loaded, store, telemetry, randomBytes(8).toString('hex'));
  telemetry.log.info(server.addresses, 'ready');
  await stop;
  telemetry.log.info('draining');
  await server.close();
  return 0;
}
