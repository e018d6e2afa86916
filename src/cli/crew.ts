/** The workers of a first process: hired, replaced when they end by themselves, and dismissed together. */

import cluster, { type Worker } from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StoreAddress } from '../server/store.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import { isReport, type Order } from './worker-messages.ts';

/** A worker that ends by itself is replaced, but not faster than this. */
const RESTART_AFTER_MS = 1_000;
/** A worker that was told to stop has cut what is left long before. */
const KILL_AFTER_MS = 20_000;

export type Ready = { readonly kind: 'ready' };
export type Ended = { readonly kind: 'ended'; readonly code: number | null; readonly signal: string | null };

export interface Hand {
  readonly worker: Worker;
  /** The first time that it can decide. */
  readonly ready: Promise<Ready>;
  readonly ended: Promise<Ended>;
}

export interface Crew {
  hire(): Hand;
  /** Replaces it whenever it ends, until all are dismissed. */
  keep(hand: Hand): void;
  /** What keeps all of them from deciding; nothing = at least one can. */
  unready(): readonly string[];
  /** Lets all of them drain; resolves when none is left. */
  dismiss(): Promise<void>;
}

/** @param size how many there are to be */
export function gatherCrew(size: number, store: StoreAddress, telemetry: Telemetry): Crew {
  const hands = new Map<number, Hand>();
  /** What keeps each one from deciding, as it last said. */
  const reasons = new Map<number, readonly string[]>();
  const dismissal = new AbortController();
  const dismissed = dismissal.signal;
  const kept: Promise<void>[] = [];

  function hire(): Hand {
    const worker = cluster.fork();
    const ready = Promise.withResolvers<Ready>();
    const ended = Promise.withResolvers<Ended>();
    const hand: Hand = { worker, ready: ready.promise, ended: ended.promise };
    hands.set(worker.id, hand);
    const end = (code: number | null, signal: string | null): void => {
      hands.delete(worker.id);
      reasons.delete(worker.id);
      ended.resolve({ kind: 'ended', code, signal });
    };
    worker.on('exit', end);
    worker.on('error', (err) => {
      telemetry.log.error({ err }, 'a worker could not be started or reached');
      // One that never ran has no exit to tell of.
      if (worker.process.pid === undefined) end(null, null);
    });
    worker.on('message', (message: unknown) => {
      if (!isReport(message)) return;
      switch (message.kind) {
        case 'hello':
          tell(worker, dismissed.aborted ? { kind: 'drain' } : { kind: 'start', store });
          break;
        case 'state':
          reasons.set(worker.id, message.reasons);
          if (message.reasons.length === 0) ready.resolve({ kind: 'ready' });
          break;
        default:
          message satisfies never;
      }
    });
    return hand;
  }

  async function replace(first: Hand): Promise<void> {
    for (let hand = first; ; hand = hire()) {
      const { code, signal } = await hand.ended;
      if (dismissed.aborted) return;
      telemetry.log.error({ code, signal }, 'a worker ended by itself; another takes its place');
      await sleep(RESTART_AFTER_MS, undefined, { signal: dismissed }).catch(() => undefined);
      if (dismissed.aborted) return;
    }
  }

  return {
    hire,
    keep: (hand) => void kept.push(replace(hand)),
    unready() {
      if (dismissed.aborted) return ['draining: the process is stopping'];
      const all = [...reasons.values()];
      if (all.some((each) => each.length === 0)) return [];
      return all.length < size ? ['workers: not all have started'] : [...new Set(all.flat())];
    },
    async dismiss() {
      dismissal.abort();
      const left = [...hands.values()];
      for (const { worker } of left) tell(worker, { kind: 'drain' });
      const kill = setTimeout(() => {
        for (const { worker } of left) worker.process.kill('SIGKILL');
      }, KILL_AFTER_MS);
      await Promise.all([...left.map(({ ended }) => ended), ...kept]);
      clearTimeout(kill);
    },
  };
}

function tell(worker: Worker, message: Order): void {
  worker.send(message, () => undefined);
}
