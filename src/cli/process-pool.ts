/**
 * The processes that the supervisor starts: gates and the API. Each is replaced when it ends by itself, and killed when
 * it hangs: a hung process answers no request, keeps its connections, and keeps its address from its successor.
 */

import cluster, { type Worker } from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProcessIdentity } from '../server/wiring-context.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import {
  type ApplyRequest,
  isReport,
  type Order,
  PROCESS_KIND,
  type ProcessKind,
  type Report,
  type StartOrder,
} from './process-messages.ts';
import { afterTick, hangs, NO_SILENCE, type Silence, TICK_MS } from './silence.ts';

/** The delay before a process that ended by itself is replaced. */
const RESTART_AFTER_MS = 1_000;
/** Starts at the end of `drain.notice`. A draining process closes its last connections before this time. */
const KILL_AFTER_MS = 20_000;

type Began = { readonly kind: 'began'; readonly address: string };
export type Ended = { readonly kind: 'ended'; readonly code: number | null; readonly signal: string | null };

export interface ChildProcess {
  readonly kind: ProcessKind;
  /** Resolves when it listens and has been ready once. */
  readonly began: Promise<Began>;
  readonly ended: Promise<Ended>;
}

interface ProcessPoolOptions extends Pick<StartOrder, 'config' | 'secrets' | 'store'> {
  readonly telemetry: Telemetry;
  /** The name of this server among the replicas. */
  readonly server: string;
  /** Called when a process has ended. */
  readonly onEnd: (identity: ProcessIdentity) => void;
}

interface Child extends ChildProcess {
  readonly worker: Worker;
  readonly identity: ProcessIdentity;
  /** Undefined before its first report. */
  state: Extract<Report, { kind: 'state' }> | undefined;
  takesOrders: boolean;
  /** The time since its last report. */
  silence: Silence;
  killed: boolean;
}

interface PoolState {
  /** The number of processes that have reported. */
  readonly running: number;
  /** The number of processes that are ready. */
  readonly ready: number;
  /** The reasons why the others are not ready, without duplicates. */
  readonly reasons: readonly string[];
  readonly warnings: readonly string[];
}

export class ProcessPool {
  readonly #options: ProcessPoolOptions;
  readonly #children = new Map<number, Child>();
  readonly #stopping = new AbortController();
  readonly #supervised: Promise<void>[] = [];
  readonly #restarts = new Map<ProcessKind, number>();
  /** By request: the gates that have not answered, and the callback for the last answer. */
  readonly #applying = new Map<number, { readonly missing: Set<number>; readonly done: () => void }>();
  readonly #watching: NodeJS.Timeout;
  #requests = 0;
  #tickedMs = performance.now();

  constructor(options: ProcessPoolOptions) {
    this.#options = options;
    // A gate accepts its connections itself: new ones depend neither on the supervisor nor on a gate that hangs.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    this.#watching = setInterval(() => this.#tick(), TICK_MS);
  }

  start(kind: ProcessKind): ChildProcess {
    const { config, server } = this.#options;
    // The API's heap has a bound of its own, so that it ends before the machine's memory does.
    cluster.setupPrimary({
      execArgv:
        kind === 'api' ? [...process.execArgv, `--max-old-space-size=${config.http.maxHeapMb}`] : process.execArgv,
      // Keeps the members of the configuration that are undefined.
      serialization: 'advanced',
    });
    const worker = cluster.fork({ [PROCESS_KIND]: kind });
    const began = Promise.withResolvers<Began>();
    const ended = Promise.withResolvers<Ended>();
    const child: Child = {
      kind,
      worker,
      identity: { id: `${server}/${worker.id}`, server },
      began: began.promise,
      ended: ended.promise,
      state: undefined,
      takesOrders: false,
      silence: NO_SILENCE,
      killed: false,
    };
    this.#children.set(worker.id, child);
    const end = (code: number | null, signal: string | null): void => {
      if (!this.#children.delete(worker.id)) return;
      for (const [request, applying] of this.#applying) this.#answered(request, worker.id, applying);
      this.#options.onEnd(child.identity);
      ended.resolve({ kind: 'ended', code, signal });
    };
    worker.on('exit', end);
    worker.on('error', (err) => {
      this.#options.telemetry.log.error({ err, process: kind }, 'a process could not be started, or does not respond');
      // A process that never ran emits no exit event.
      if (worker.process.pid === undefined) end(null, null);
    });
    let address: string | undefined;
    worker.on('message', (message: unknown) => {
      if (!isReport(message)) return;
      child.silence = NO_SILENCE;
      if (message.kind === 'listening') address = message.address;
      else this.#take(child, message);
      if (address !== undefined && child.state?.reasons.length === 0) began.resolve({ kind: 'began', address });
    });
    return child;
  }

  /** Replaces the process each time it ends by itself. */
  supervise(first: ChildProcess): void {
    this.#supervised.push(this.#replace(first));
  }

  state(kind: ProcessKind): PoolState {
    const states = [...this.#children.values()]
      .filter((child) => child.kind === kind)
      .flatMap(({ state }) => state ?? []);
    return {
      running: states.length,
      ready: states.filter(({ reasons }) => reasons.length === 0).length,
      reasons: [...new Set(states.flatMap(({ reasons }) => reasons))],
      warnings: [...new Set(states.flatMap(({ warnings }) => warnings))],
    };
  }

  get stopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** The number of processes that ended by themselves and were replaced. */
  get restarts(): ReadonlyMap<ProcessKind, number> {
    return this.#restarts;
  }

  /** Orders all processes to drain. Resolves when all have ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    clearInterval(this.#watching);
    const left = [...this.#children.values()];
    for (const { worker } of left) send(worker, { kind: 'drain' });
    const kill = setTimeout(() => {
      for (const { worker } of left) worker.process.kill('SIGKILL');
    }, this.#options.config.drain.noticeMs + KILL_AFTER_MS);
    await Promise.all([...left.map(({ ended }) => ended), ...this.#supervised]);
    clearTimeout(kill);
  }

  #take(child: Child, message: Exclude<Report, { kind: 'listening' }>): void {
    switch (message.kind) {
      case 'hello': {
        const { config, secrets, store } = this.#options;
        child.takesOrders = true;
        send(
          child.worker,
          this.#stopping.signal.aborted
            ? { kind: 'drain' }
            : { kind: 'start', config, secrets, store, identity: child.identity },
        );
        break;
      }
      case 'state':
        child.state = message;
        break;
      case 'apply':
        this.#applyAtGates(child, message);
        break;
      case 'applied': {
        const applying = this.#applying.get(message.request);
        if (applying !== undefined) this.#answered(message.request, child.worker.id, applying);
        break;
      }
      default:
        message satisfies never;
    }
  }

  /** Skips gates that do not accept orders yet, because their caches are empty. */
  #applyAtGates({ worker: api }: Child, { request: asked, through }: ApplyRequest): void {
    const gates = [...this.#children.values()].filter(({ kind, takesOrders }) => kind === 'gate' && takesOrders);
    const done = (): void => send(api, { kind: 'applied', request: asked });
    if (gates.length === 0) {
      done();
      return;
    }
    const request = this.#requests++;
    this.#applying.set(request, { missing: new Set(gates.map(({ worker }) => worker.id)), done });
    for (const { worker } of gates) send(worker, { kind: 'apply', request, through });
  }

  #answered(
    request: number,
    worker: number,
    { missing, done }: { readonly missing: Set<number>; readonly done: () => void },
  ): void {
    missing.delete(worker);
    if (missing.size > 0) return;
    this.#applying.delete(request);
    done();
  }

  async #replace(first: ChildProcess): Promise<void> {
    const { signal: stopping } = this.#stopping;
    for (let child = first; ; child = this.start(first.kind)) {
      const { code, signal } = await child.ended;
      if (stopping.aborted) return;
      const { kind } = child;
      this.#restarts.set(kind, (this.#restarts.get(kind) ?? 0) + 1);
      this.#options.telemetry.log.error(
        { process: kind, code, signal },
        'a process exited unexpectedly; starting a replacement',
      );
      await sleep(RESTART_AFTER_MS, undefined, { signal: stopping }).catch(() => undefined);
      if (stopping.aborted) return;
    }
  }

  /** Kills processes that reported before and hang now. */
  #tick(): void {
    const nowMs = performance.now();
    const sinceLastMs = nowMs - this.#tickedMs;
    this.#tickedMs = nowMs;
    for (const child of this.#children.values()) {
      if (child.state === undefined || child.killed) continue;
      child.silence = afterTick(child.silence, sinceLastMs);
      if (hangs(child.kind, child.silence)) this.#kill(child);
    }
  }

  #kill(child: Child): void {
    const { kind, worker, silence } = child;
    child.killed = true;
    this.#options.telemetry.log.error(
      { process: kind, pid: worker.process.pid, seconds: (silence.ticks * TICK_MS) / 1000 },
      'a process stopped reporting; killing it',
    );
    worker.process.kill('SIGKILL');
  }
}

function send(worker: Worker, message: Order): void {
  worker.send(message, () => undefined);
}
