/**
 * A process that the supervisor started: a gate, or the API. It ends with the supervisor, because Node ends the workers
 * of a cluster when its primary is gone.
 */

import { constants, setPriority } from 'node:os';
import type { LocalGates } from '../server/applied.ts';
import type { GateServer } from '../server/gate.ts';
import { openStore } from '../server/store.ts';
import type { RunningServer } from '../server/wiring-context.ts';
import { boundHeapGrowth } from './heap.ts';
import {
  type AppliedMessage,
  type ApplyRequest,
  isOrder,
  type ProcessKind,
  type Report,
  type StartOrder,
} from './process-messages.ts';
import { serverTelemetry } from './server-telemetry.ts';
import { stopSignal } from './signals.ts';
import { REPORT_EVERY_MS } from './silence.ts';
import { type ProcessWiring, startApiProcess, startGateProcess } from './start-process.ts';

/** The API answers a write without the gates that take longer. */
const MAX_WAIT_MS = 1_000;

/** The receivers of the supervisor's orders. */
interface Orders {
  readonly start: Promise<StartOrder>;
  readonly drain: Promise<undefined>;
  /** Resolves when the gate runs. A request to apply a change waits for it: its cache may have entries before. */
  readonly gate: PromiseWithResolvers<GateServer>;
  onApplied: (answer: AppliedMessage) => void;
}

/** Waits for the configuration, serves, and drains on the supervisor's order. */
export async function serveAsChild(kind: ProcessKind): Promise<number> {
  process.title = `postern ${kind}`;
  // Ctrl-C at a terminal reaches the whole process group, but only the supervisor's order stops this process.
  void stopSignal();
  const orders = takeOrders();
  report({ kind: 'hello' });
  const order = await Promise.race([orders.start, orders.drain]);
  if (order !== undefined) await work(kind, order, orders);
  return 0;
}

async function work(kind: ProcessKind, order: StartOrder, orders: Orders): Promise<void> {
  await using running = new AsyncDisposableStack();
  const { config, secrets, identity } = order;
  const telemetry = await serverTelemetry(order);
  running.defer(() => telemetry.flush());
  telemetry.metrics.answerCluster();
  const store = await openStore(config, secrets, telemetry, order.store);
  running.defer(() => store.close());
  const wiring = { config, secrets, store, telemetry, identity };
  const server = kind === 'gate' ? await gate(wiring, orders) : await api(wiring, orders);
  running.defer(() => server.close());
  boundHeapGrowth();
  report({ kind: 'listening', address: server.address });
  const reporting = setInterval(() => reportState(server), REPORT_EVERY_MS);
  running.defer(() => clearInterval(reporting));
  reportState(server);
  await orders.drain;
}

async function gate(wiring: ProcessWiring, orders: Orders): Promise<RunningServer> {
  const server = await startGateProcess(wiring, true);
  orders.gate.resolve(server);
  return server;
}

async function api(wiring: ProcessWiring, orders: Orders): Promise<RunningServer> {
  giveWay();
  const gates = supervisedGates(report);
  orders.onApplied = (answer) => gates.answered(answer);
  wiring.telemetry.metrics.show('postern_local_apply_timeouts_total', () => gates.timeouts);
  return startApiProcess(wiring, gates);
}

/** Lowers the priority of the API, so that a gate gets most of a processor that both use. */
function giveWay(): void {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // Some systems forbid it. The API then has the priority of a gate.
  }
}

/** Listens before anything else starts, so that no order is lost. */
function takeOrders(): Orders {
  const start = Promise.withResolvers<StartOrder>();
  const drain = Promise.withResolvers<undefined>();
  const orders: Orders = {
    start: start.promise,
    drain: drain.promise,
    gate: Promise.withResolvers<GateServer>(),
    onApplied: () => undefined,
  };
  process.on('message', (message: unknown) => {
    if (!isOrder(message)) return;
    switch (message.kind) {
      case 'start':
        start.resolve(message);
        break;
      case 'drain':
        drain.resolve(undefined);
        break;
      case 'apply':
        void apply(orders, message);
        break;
      case 'applied':
        orders.onApplied(message);
        break;
      default:
        message satisfies never;
    }
  });
  return orders;
}

async function apply(orders: Orders, { request, through }: ApplyRequest): Promise<void> {
  const server = await orders.gate.promise;
  await server.apply(through ?? undefined);
  report({ kind: 'applied', request });
}

function reportState(server: RunningServer): void {
  report({ kind: 'state', reasons: server.ready(), warnings: server.warnings() });
}

function report(message: Report): void {
  process.send?.(message, undefined, {}, () => undefined);
}

interface SupervisedGates extends LocalGates {
  /** Receives the supervisor's answer. */
  answered(answer: AppliedMessage): void;
  /** The number of writes that were answered before every gate had applied them. */
  readonly timeouts: number;
}

/** The gates of this server, as the API reaches them: through the supervisor. */
function supervisedGates(send: (request: ApplyRequest) => void): SupervisedGates {
  const waiting = new Map<number, () => void>();
  let requests = 0;
  let timeouts = 0;
  return {
    applied(through) {
      const request = requests++;
      return new Promise((resolve) => {
        const end = (): void => {
          clearTimeout(timer);
          waiting.delete(request);
          resolve();
        };
        const timer = setTimeout(() => {
          timeouts++;
          end();
        }, MAX_WAIT_MS);
        waiting.set(request, end);
        send({ kind: 'apply', request, through: through ?? null });
      });
    },
    answered: ({ request }) => waiting.get(request)?.(),
    get timeouts() {
      return timeouts;
    },
  };
}
