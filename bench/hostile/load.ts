/** The innocents' load, run by a process of its own, and what its report says of any interval. */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { quantile } from '../stack.ts';
import type { Edge } from './connection.ts';
import type { InnocentRequest } from './innocents.ts';
import type { Command, Report, Sent } from './innocents-process.ts';
import { VERDICTS, type Verdict } from './judge.ts';
import { stopChild } from './stand.ts';

export const PER_SECOND = 200;

export interface Load extends AsyncDisposable {
  /** Sends these beside the mix, evenly over the time. */
  add(requests: readonly InnocentRequest[], overMs: number): void;
  /** Waits for the answers that are under way. */
  stop(): Promise<Report>;
}

export function startLoad(edge: Edge, mix: readonly InnocentRequest[]): Load {
  const child = fork(join(import.meta.dirname, 'innocents-process.ts'));
  const send = (command: Command): void => {
    child.send(command);
  };
  send({ kind: 'start', edge, perSecond: PER_SECOND, mix });
  return {
    add: (requests, overMs) => send({ kind: 'add', requests, overMs }),
    async stop() {
      const reported = once(child, 'message');
      send({ kind: 'stop' });
      const [report] = (await reported) as [Report];
      return report;
    },
    [Symbol.asyncDispose]: () => stopChild(child),
  };
}

export interface Figures {
  readonly requests: number;
  readonly verdicts: Readonly<Record<Verdict, number>>;
  readonly p99Ms: number;
}

/** The figures of the requests that were due in this interval, in milliseconds since the epoch. */
export function figuresOf({ sent }: Report, fromMs: number, untilMs: number): Figures {
  const chosen = sent.filter(([dueMs]) => dueMs >= fromMs && dueMs < untilMs);
  const tookMs = chosen.map(([, took]) => took);
  return { requests: chosen.length, verdicts: countVerdicts(chosen), p99Ms: quantile(tookMs, 0.99) };
}

function countVerdicts(sent: readonly Sent[]): Record<Verdict, number> {
  const counts: Record<Verdict, number> = { right: 0, wrong: 0, unavailable: 0, empty: 0, lost: 0 };
  for (const [, , index] of sent) {
    const verdict = VERDICTS[index];
    if (verdict !== undefined) counts[verdict] += 1;
  }
  return counts;
}

/** Requests without a decision: 503s, and those without an answer. */
export function undecided({ verdicts }: Figures): number {
  return verdicts.unavailable + verdicts.empty + verdicts.lost;
}
