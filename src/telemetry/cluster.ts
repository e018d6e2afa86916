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
  readonly samples: Samples[];
  readonly done: () => void;
}

const ANSWER_TIMEOUT_MS = 5_000;

/** For the first process, before it starts the workers. The function asks them all; it rejects when one does not answer within 5 s. */
export function clusterMetrics(): () => Promise<string> {
  const answering = new Set<number>();
  const open = new Map<number, Collection>();
  let questions = 0;

  const settle = (workerId: number, samples: Samples | undefined, { missing, samples: all, done }: Collection): void => {
    if (!missing.delete(workerId)) return;
    if (samples !== undefined) all.push(samples);
    if (missing.size === 0) done();
  };
  cluster.on('message', (worker, message: unknown) => {
    if (!isReply(message)) return;
    switch (message.kind) {
      case 'metrics here':
        answering.add(worker.id);
        break;
      case 'metrics': {
        const collection = open.get(message.question);
        if (collection !== undefined) settle(worker.id, message.samples, collection);
        break;
      }
      default:
        message satisfies never;
    }
  });
  // Its numbers are gone with it.
  cluster.on('exit', ({ id }) => {
    answering.delete(id);
    for (const collection of open.values()) settle(id, undefined, collection);
  });

  return async () => {
    const question: Question = { kind: 'metrics?', question: questions++ };
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const collection: Collection = { missing: new Set(answering), samples: [], done: resolve };
    const late = setTimeout(() => reject(new Error('a worker did not tell its metrics in time')), ANSWER_TIMEOUT_MS);
    open.set(question.question, collection);
    try {
      for (const id of answering) cluster.workers?.[id]?.send(question, () => undefined);
      if (answering.size > 0) await promise;
      return withHistogramHeadings(await AggregatorRegistry.aggregate(collection.samples).metrics());
    } finally {
      clearTimeout(late);
      open.delete(question.question);
    }
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
