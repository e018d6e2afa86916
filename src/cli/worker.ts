/** One of several processes behind the same ports: a whole server with a cache of its own, kept true by the change feed like any replica. */

import { Passwords } from '../identity/passwords.ts';
import { openStore, type StoreAddress } from '../server/store.ts';
import { type Server, startServer } from '../server.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import type { Loaded } from './configuration.ts';
import { stopSignal } from './signals.ts';
import { isOrder, type Report } from './worker-messages.ts';

const REPORT_EVERY_MS = 1_000;

/** Waits for the store's address, serves, and drains when told. A worker whose first process is gone is ended by Node. */
export async function serveAsWorker(loaded: Loaded, telemetry: Telemetry): Promise<number> {
  // A terminal's Ctrl-C reaches the whole group; the first process tells when to stop.
  void stopSignal();
  const orders = takeOrders();
  telemetry.answerCluster();
  report({ kind: 'hello' });
  try {
    const address = await Promise.race([orders.start, orders.drain]);
    if (address !== undefined) await work(loaded, telemetry, address, orders.drain);
    return 0;
  } finally {
    telemetry.flush();
  }
}

async function work(
  { config, secrets }: Loaded,
  telemetry: Telemetry,
  address: StoreAddress,
  drain: Promise<undefined>,
): Promise<void> {
  await using running = new AsyncDisposableStack();
  const store = await openStore(config, secrets, telemetry, address);
  running.defer(() => store.close());
  const passwords = await Passwords.start();
  const server = await startServer({ config, secrets, store, passwords, telemetry, health: false });
  running.defer(() => server.close());
  const reporting = setInterval(() => void reportState(server), REPORT_EVERY_MS);
  running.defer(() => clearInterval(reporting));
  await reportState(server);
  await drain;
}

interface Orders {
  readonly start: Promise<StoreAddress>;
  readonly drain: Promise<undefined>;
}

/** Listens from now on: an order that comes while this one is busy starting is not lost. */
function takeOrders(): Orders {
  const start = Promise.withResolvers<StoreAddress>();
  const drain = Promise.withResolvers<undefined>();
  process.on('message', (message: unknown) => {
    if (!isOrder(message)) return;
    switch (message.kind) {
      case 'start':
        start.resolve(message.store);
        break;
      case 'drain':
        drain.resolve(undefined);
        break;
      default:
        message satisfies never;
    }
  });
  return { start: start.promise, drain: drain.promise };
}

async function reportState(server: Server): Promise<void> {
  report({ kind: 'state', reasons: await server.ready() });
}

function report(message: Report): void {
  process.send?.(message, undefined, {}, () => undefined);
}
