/**
 * The metrics of several worker processes as one. Counters are added; what is an age or a peak shows the worst.
 *
 * A worker says when it begins to answer, and only who has said so is asked: one that is still starting has counted nothing, and would
 * keep the others' numbers waiting.
 */

import cluster from 'node:cluster';
import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client';
import { withHistogramHeadings } from './histogram.ts';

type Samples = MetricObjectWithValues<MetricValue<string>>[];

/** From a worker. */
type Reply =
  | { readonly kind: 'metrics here' }
  | { readonly kind: 'metrics'; readonly question: number; readonly samples: Samples };

interface Question {
  readonly kind: 'metrics?';
  readonly question: number;
}

/** One question under way. */
interface Collection {
  readonly missing: Set<number>;
  readonly done: () => void;
}

/** A process that does not answer in time, because it is stuck or stopped, is shown as it was when it last answered. */
const ANSWER_TIMEOUT_MS = 1_000;

/**
 * For the first process, before it starts the workers. The function collects the metrics of all processes.
 * @param own the first process's own metrics
 */
export function clusterMetrics(own: Registry): () => Promise<string> {
  const last = new Map<number, Samples>();
  const answering = new Set<number>();
  const open = new Map<number, Collection>();
  let questions = 0;

  const settle = (workerId: number, { missing, done }: Collection): void => {
    if (missing.delete(workerId) && missing.size === 0) done();
  };
  cluster.on('message', (worker, message: unknown) => {
    if (!isReply(message)) return;
    switch (message.kind) {
      case 'metrics here':
        answering.add(worker.id);
        break;
      case 'metrics': {
        if (answering.has(worker.id)) last.set(worker.id, message.samples);
        const collection = open.get(message.question);
        if (collection !== undefined) settle(worker.id, collection);
        break;
      }
      default:
        message satisfies never;
    }
  });
  // Its numbers are gone with it.
  cluster.on('exit', ({ id }) => {
    answering.delete(id);
    last.delete(id);
    for (const collection of open.values()) settle(id, collection);
  });

  return async () => {
    const question: Question = { kind: 'metrics?', question: questions++ };
    const { promise, resolve } = Promise.withResolvers<void>();
    const collection: Collection = { missing: new Set(answering), done: resolve };
    const late = setTimeout(resolve, ANSWER_TIMEOUT_MS);
    open.set(question.question, collection);
    try {
      for (const id of answering) cluster.workers?.[id]?.send(question, () => undefined);
      if (answering.size > 0) await promise;
    } finally {
      clearTimeout(late);
      open.delete(question.question);
    }
    const samples = [await own.getMetricsAsJSON(), ...last.values()];
    return withHistogramHeadings(await AggregatorRegistry.aggregate(samples).metrics());
  };
}

/** For a worker, once: answers for this registry from now on. */
export function answerMetrics(registry: Registry): void {
  process.on('message', (message: unknown) => {
    if (isQuestion(message)) void answer(registry, message);
  });
  say({ kind: 'metrics here' });
}

async function answer(registry: Registry, { question }: Question): Promise<void> {
  say({ kind: 'metrics', question, samples: await registry.getMetricsAsJSON() });
}

function say(reply: Reply): void {
  process.send?.(reply, undefined, {}, () => undefined);
}

function isReply(message: unknown): message is Reply {
  return isKind(message, 'metrics here') || isKind(message, 'metrics');
}

function isQuestion(message: unknown): message is Question {
  return isKind(message, 'metrics?');
}

function isKind(message: unknown, kind: string): boolean {
  return typeof message === 'object' && message !== null && 'kind' in message && message.kind === kind;
}
