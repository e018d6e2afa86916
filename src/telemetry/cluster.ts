/**
 * Aggregates the metrics of several worker processes: sums, and the maximum of ages and lags.
 *
 * A worker announces when it can respond, and the supervisor requests metrics only from such workers. A worker that is
 * still starting has no counts, and would delay the response.
 */

import cluster from 'node:cluster';
import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client';
import { withHistogramHeadings } from './histogram.ts';

type Samples = MetricObjectWithValues<MetricValue<string>>[];

/** A message of a worker. */
type Reply =
  | { readonly kind: 'metrics ready' }
  | { readonly kind: 'metrics'; readonly request: number; readonly samples: Samples };

interface MetricsRequest {
  readonly kind: 'metrics request';
  readonly request: number;
}

/** A request that waits for responses. */
interface Collection {
  readonly missing: Set<number>;
  readonly done: () => void;
}

/** The aggregate has the last values of a process that does not respond in time. */
const ANSWER_TIMEOUT_MS = 1_000;

/**
 * Must be called in the supervisor before it starts the workers. The returned function collects the metrics of all
 * processes.
 * @param own the supervisor's own metrics
 */
export function clusterMetrics(own: Registry): () => Promise<string> {
  const last = new Map<number, Samples>();
  const answering = new Set<number>();
  const open = new Map<number, Collection>();
  let requests = 0;

  const settle = (workerId: number, { missing, done }: Collection): void => {
    if (missing.delete(workerId) && missing.size === 0) done();
  };
  cluster.on('message', (worker, message: unknown) => {
    if (!isReply(message)) return;
    switch (message.kind) {
      case 'metrics ready':
        answering.add(worker.id);
        break;
      case 'metrics': {
        if (answering.has(worker.id)) last.set(worker.id, message.samples);
        const collection = open.get(message.request);
        if (collection !== undefined) settle(worker.id, collection);
        break;
      }
      default:
        message satisfies never;
    }
  });
  // The values of an exited worker no longer count.
  cluster.on('exit', ({ id }) => {
    answering.delete(id);
    last.delete(id);
    for (const collection of open.values()) settle(id, collection);
  });

  return async () => {
    const request: MetricsRequest = { kind: 'metrics request', request: requests++ };
    const { promise, resolve } = Promise.withResolvers<void>();
    const collection: Collection = { missing: new Set(answering), done: resolve };
    const late = setTimeout(resolve, ANSWER_TIMEOUT_MS);
    open.set(request.request, collection);
    try {
      for (const id of answering) cluster.workers?.[id]?.send(request, () => undefined);
      if (answering.size > 0) await promise;
    } finally {
      clearTimeout(late);
      open.delete(request.request);
    }
    const samples = [await own.getMetricsAsJSON(), ...last.values()];
    return withHistogramHeadings(await AggregatorRegistry.aggregate(samples).metrics());
  };
}

/** Must be called once in a worker. The worker then responds to requests with this registry. */
export function answerMetrics(registry: Registry): void {
  process.on('message', (message: unknown) => {
    if (isRequest(message)) void answer(registry, message);
  });
  send({ kind: 'metrics ready' });
}

async function answer(registry: Registry, { request }: MetricsRequest): Promise<void> {
  send({ kind: 'metrics', request, samples: await registry.getMetricsAsJSON() });
}

function send(reply: Reply): void {
  process.send?.(reply, undefined, {}, () => undefined);
}

function isReply(message: unknown): message is Reply {
  return isKind(message, 'metrics ready') || isKind(message, 'metrics');
}

function isRequest(message: unknown): message is MetricsRequest {
  return isKind(message, 'metrics request');
}

function isKind(message: unknown, kind: string): boolean {
  return typeof message === 'object' && message !== null && 'kind' in message && message.kind === kind;
}
