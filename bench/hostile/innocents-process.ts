/**
 * The innocents' load as a process of its own: a fixed number of requests per second, independent of the answers. A
 * latency counts from the moment at which the request was due, so a generator that falls behind makes it longer, not
 * shorter.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { Connection, type Edge, nameOf } from './connection.ts';
import type { InnocentRequest } from './innocents.ts';
import { prioritize } from './instrument.ts';
import { judge, VERDICTS, type Verdict } from './judge.ts';

prioritize();

/** Then a request counts as lost. */
const TIMEOUT_MS = 10_000;
const STEP_MS = 1;
/** The number of examples of each verdict. */
const KEPT_EXAMPLES = 300;

export type Command =
  | {
      readonly kind: 'start';
      readonly edge: Edge;
      readonly perSecond: number;
      readonly mix: readonly InnocentRequest[];
    }
  /** Sends these beside the mix, evenly over the time. */
  | { readonly kind: 'add'; readonly requests: readonly InnocentRequest[]; readonly overMs: number }
  | { readonly kind: 'stop' };

/** When it was due (milliseconds since the epoch), how long it took (ms), and the index of the verdict. */
export type Sent = readonly [dueMs: number, tookMs: number, verdict: number];

/** An answer that was not right, as `POST /v1/… expected 200 got 503 empty`. */
export interface Example {
  readonly dueMs: number;
  readonly verdict: Verdict;
  readonly text: string;
}

export interface Report {
  readonly sent: readonly Sent[];
  /** The first 300 of each verdict. */
  readonly examples: readonly Example[];
}

interface Due {
  readonly atMs: number;
  readonly request: InnocentRequest;
}

const sent: Sent[] = [];
const examples: Example[] = [];
const connections = new Map<number, Connection>();
let edge: Edge | undefined;
let added: Due[] = [];
let running = false;
let underWay = 0;

function now(): number {
  return performance.timeOrigin + performance.now();
}

function connectionOf(index: number, to: Edge): Connection {
  const known = connections.get(index) ?? new Connection(to, `127.0.1.${index + 1}`);
  connections.set(index, known);
  return known;
}

async function one({ atMs, request }: Due, to: Edge): Promise<void> {
  underWay += 1;
  const outcome = await connectionOf(request.connection, to).send(request, TIMEOUT_MS);
  underWay -= 1;
  const verdict = judge(request.expected, outcome);
  sent.push([atMs, now() - atMs, VERDICTS.indexOf(verdict)]);
  const kept = examples.filter((each) => each.verdict === verdict).length;
  if (verdict !== 'right' && kept < KEPT_EXAMPLES) {
    const expected = request.expected.kind === 'allow' ? '200' : `${request.expected.status} ${request.expected.code}`;
    examples.push({
      dueMs: atMs,
      verdict,
      text: `${request.method} ${request.path} expected ${expected} got ${nameOf(outcome)}`,
    });
  }
}

async function run(to: Edge, perSecond: number, mix: readonly InnocentRequest[]): Promise<void> {
  const begunMs = now();
  for (let next = 0; running; await sleep(STEP_MS)) {
    for (; begunMs + (next * 1000) / perSecond <= now(); next++) {
      const request = mix[next % mix.length];
      if (request !== undefined) void one({ atMs: begunMs + (next * 1000) / perSecond, request }, to);
    }
    const dueNow = added.filter(({ atMs }) => atMs <= now());
    added = added.filter(({ atMs }) => atMs > now());
    for (const due of dueNow) void one(due, to);
  }
}

async function stop(): Promise<void> {
  running = false;
  while (underWay > 0) await sleep(STEP_MS);
  for (const connection of connections.values()) connection.close();
  const report: Report = { sent, examples };
  process.send?.(report, () => process.disconnect?.());
}

process.once('disconnect', () => process.exit(0));
process.on('message', (command: Command) => {
  switch (command.kind) {
    case 'start':
      edge = command.edge;
      running = true;
      void run(edge, command.perSecond, command.mix);
      return;
    case 'add': {
      const { requests, overMs } = command;
      const fromMs = now();
      added.push(...requests.map((request, i) => ({ atMs: fromMs + (i * overMs) / requests.length, request })));
      return;
    }
    case 'stop':
      void stop();
      return;
    default:
      command satisfies never;
  }
});
