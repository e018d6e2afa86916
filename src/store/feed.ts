/**
 * Reads the change feed. Every transaction that changes a cached row writes numbered rows to `changes`, in commit
 * order. The feed reads them each second, and at once after a notification of PostgreSQL, and passes them to the caches
 * in batches.
 *
 * The position is lost when the feed's epoch or the server's timeline changes, when the server is behind the position
 * (it failed over to a lagging standby), or when unread changes were pruned. The feed then flushes all caches.
 *
 * During an upgrade a newer replica may write a kind of change that this program does not know. Such a change may
 * invalidate any entry, so it flushes all caches, and the feed continues after it.
 *
 * One read runs at a time. catchUp() waits for a read that begins after the call. Concurrent calls share it.
 */

import { inTime } from '../concurrency/in-time.ts';
import type { ChangeListener, FeedClock } from '../credential-cache/ports.ts';
import { Fault } from '../domain/errors.ts';
import { StoreClock } from '../domain/store-clock.ts';
import type { Database } from './database.ts';
import { connectionFault } from './faults.ts';
import { listenForChanges } from './feed-notifications.ts';
import { pruneChanges } from './feed-prune.ts';
import { canReadTimeline, type FeedPage, readPage } from './feed-read.ts';

export type FlushReason = 'epoch' | 'timeline' | 'behind' | 'pruned' | 'listener' | 'unknown_kind';

/** Characters of an unknown kind that are reported. */
const MAX_KIND_LENGTH = 64;
/** The largest number of unknown kinds that are reported. Flushes for further kinds are only counted. */
const MAX_REPORTED_KINDS = 100;

/** Events of the feed, for logs and metrics. The listeners must not throw. */
interface FeedEvents {
  onError?(error: Fault): void;
  /** @param lagMs age of the oldest applied change since its commit, by the server's clock; 0 without a change */
  onPoll?(lagMs: number): void;
  onFlush?(reason: FlushReason): void;
  /** Called once for each kind of change that this program does not know. Every such change flushes the caches. */
  onUnknownKind?(kind: string): void;
}

export interface FeedOptions {
  readonly db: Database;
  readonly listeners: readonly ChangeListener[];
  /** False behind a pooler that does not forward notifications: changes then arrive with the poll. Default: true. */
  readonly notifications?: boolean;
  /** Default: 1000. */
  readonly pollIntervalMs?: number;
  /** The largest number of changes of one batch. Default: 1000. */
  readonly batchSize?: number;
  /** Bounds catchUp(). Default: 4000, twice the statement timeout, because it may wait for a running read first. */
  readonly catchUpTimeoutMs?: number;
  /** Each read updates it with the server's clock. */
  readonly clock?: StoreClock;
  /** Retention of changes. Default: an hour. */
  readonly keepMs?: number;
  /** Default: 5 minutes. */
  readonly pruneIntervalMs?: number;
  readonly events?: FeedEvents;
}

interface FeedPosition {
  readonly epoch: string;
  readonly timeline: string | undefined;
  readonly last: number;
}

type Waiters = ReturnType<typeof Promise.withResolvers<void>>;

export class ChangeFeed implements FeedClock {
  readonly #options: Required<Omit<FeedOptions, 'events'>> & { readonly events: FeedEvents };
  /** A separate pool, so that lookups never delay a revocation. */
  readonly #db: Database;
  #polledAtMs = Number.NEGATIVE_INFINITY;
  #position: FeedPosition | undefined;
  #applied: number | undefined;
  #withTimeline = false;
  #waiting: Waiters | undefined;
  #reading: Promise<void> | undefined;
  #wanted = 0;
  /** Sequence number of the last notification. */
  #announced = 0;
  #state: 'new' | 'reading' | 'stopped' = 'new';
  #timers: NodeJS.Timeout[] = [];
  #stopListening: (() => Promise<void>) | undefined;
  #reportListener: (() => void) | undefined;
  #session: number | undefined;
  readonly #reportedKinds = new Set<string>();

  constructor(options: FeedOptions) {
    this.#options = {
      notifications: true,
      pollIntervalMs: 1000,
      batchSize: 1000,
      catchUpTimeoutMs: 4000,
      keepMs: 3_600_000,
      pruneIntervalMs: 300_000,
      clock: new StoreClock(),
      events: {},
      ...options,
    };
    this.#db = options.db.reopen({ poolMax: 1 });
  }

  get polledAtMs(): number {
    return this.#polledAtMs;
  }

  /** Sequence number of the last change that the listeners were passed; undefined before start(). */
  get position(): number | undefined {
    return this.#position?.last;
  }

  /** A position that every listener has applied, and has read again what it had to; undefined before start(). */
  get applied(): number | undefined {
    this.#noteApplied();
    return this.#applied;
  }

  /** Resolves when no listener reads again. Never rejects. */
  async settled(): Promise<void> {
    await Promise.all(this.#options.listeners.map((listener) => listener.settled?.()));
  }

  /** The PostgreSQL process that sends notifications; undefined before the first one. */
  get session(): number | undefined {
    return this.#session;
  }

  /** Sets the listener for requests of a writer to report the applied position. They come as notifications. */
  onReportRequest(listener: () => void): void {
    this.#reportListener = listener;
  }

  /** Reads the current position and starts the timers. Rejects with a Fault if the read fails; the caller may retry. */
  async start(): Promise<void> {
    const startedAtMs = performance.now();
    try {
      this.#withTimeline = await canReadTimeline(this.#db);
      const page = await this.#readPage(0, 0);
      this.#position = { epoch: page.epoch, timeline: page.timeline, last: page.position };
    } catch (error) {
      throw connectionFault(error);
    }
    this.#polledAtMs = startedAtMs;
    this.#state = 'reading';
    this.#timers = [
      setInterval(() => this.#wake(), this.#options.pollIntervalMs),
      setInterval(() => this.#pruneOrReport(), this.#options.pruneIntervalMs),
    ];
    if (this.#options.notifications) {
      this.#stopListening = listenForChanges(this.#options.db, {
        onConnect: (session) => {
          this.#session = session;
        },
        onChange: (seq) => this.#announce(seq),
        onReportRequest: () => this.#reportListener?.(),
        onError: (error) => this.#options.events.onError?.(error),
      });
    }
  }

  async catchUp(): Promise<void> {
    if (this.#state !== 'reading') throw new Fault('the change feed is not being read');
    this.#waiting ??= Promise.withResolvers<void>();
    const { promise } = this.#waiting;
    this.#wake();
    const { catchUpTimeoutMs } = this.#options;
    await inTime(promise, catchUpTimeoutMs, () => {
      throw new Fault(`the change feed was not read within ${catchUpTimeoutMs} ms`);
    });
  }

  /**
   * Deletes changes older than `keepMs`, unless another server does so. Returns their number. No read of the feed waits
   * for it: it has no connection in common with them.
   */
  prune(): Promise<number> {
    return pruneChanges(this.#options.db, this.#options.keepMs);
  }

  async stop(): Promise<void> {
    this.#state = 'stopped';
    for (const timer of this.#timers) {
      clearInterval(timer);
    }
    await this.#stopListening?.();
    await this.#reading;
    this.#waiting?.reject(new Fault('the change feed has stopped'));
    this.#waiting = undefined;
    await this.#db.close();
  }

  /** Handles the notification of a committed change: reads it, unless a read has already shown it. */
  #announce(seq: number | undefined): void {
    if (seq === undefined) {
      this.#wake();
      return;
    }
    this.#announced = Math.max(this.#announced, seq);
    // The running read may show the change.
    if (this.#isBehind()) this.#reading ??= this.#readWhileWanted();
  }

  #isBehind(): boolean {
    return this.#position !== undefined && this.#position.last < this.#announced;
  }

  #wake(): void {
    this.#wanted++;
    this.#reading ??= this.#readWhileWanted();
  }

  async #readWhileWanted(): Promise<void> {
    // Calls of the same tick share the read.
    await undefined;
    while ((this.#wanted > 0 || this.#isBehind()) && this.#state === 'reading') {
      this.#wanted = 0;
      const announced = this.#announced;
      const waiting = this.#waiting;
      this.#waiting = undefined;
      // The callers may have timed out. A rejection without a handler would end the process.
      waiting?.promise.catch(() => undefined);
      try {
        await this.#readToEnd();
        waiting?.resolve();
      } catch (error) {
        const fault = connectionFault(error);
        this.#options.events.onError?.(fault);
        waiting?.reject(fault);
      }
      // A read that began after the notification shows the change. If it does not, more reads would not show it either.
      if (this.#announced === announced) this.#announced = 0;
    }
    // In the same tick as the last check of #wanted, so that no wake-up is lost.
    this.#reading = undefined;
  }

  async #readToEnd(): Promise<void> {
    const limit = this.#options.batchSize;
    let lagMs = 0;
    for (let full = true; full; ) {
      const before = this.#position;
      if (before === undefined || this.#state !== 'reading') throw new Fault('the change feed has stopped');
      const startedAtMs = performance.now();
      const page = await this.#readPage(before.last, limit);
      const lost = lostPosition(before, page);
      if (lost === undefined) {
        this.#apply(before, page);
        lagMs = Math.max(lagMs, page.oldestAgeMs);
        full = page.full;
      } else {
        this.#flush(page, lost);
        full = false;
      }
      if (!full) {
        this.#polledAtMs = startedAtMs;
      }
    }
    this.#options.events.onPoll?.(lagMs);
  }

  #noteApplied(): void {
    if (this.#options.listeners.every(({ isCurrent }) => isCurrent ?? true)) this.#applied = this.#position?.last;
  }

  async #readPage(after: number, limit: number): Promise<FeedPage> {
    const sentMs = performance.now();
    const page = await readPage(this.#db, { after, limit, withTimeline: this.#withTimeline });
    this.#options.clock.learn(sentMs, performance.now(), page.nowMs);
    return page;
  }

  #apply(before: FeedPosition, page: FeedPage): void {
    const { last } = page;
    if (last === undefined) return;
    this.#noteApplied();
    if (page.unknownKinds.length > 0) {
      this.#flushUnknown(before, last, page.unknownKinds);
      return;
    }
    for (const listener of this.#options.listeners) {
      try {
        listener.apply(page.changes);
      } catch (error) {
        // A cache that failed to apply a change must not keep its entries.
        listener.flush(last);
        this.#options.events.onFlush?.('listener');
        this.#options.events.onError?.(new Fault('a cache could not apply a change', { cause: error }));
      }
    }
    this.#position = { ...before, last };
  }

  /** Flushes every cache, because changes of unknown kinds may invalidate any entry. The position advances as usual. */
  #flushUnknown(before: FeedPosition, last: number, kinds: readonly string[]): void {
    for (const listener of this.#options.listeners) {
      listener.flush(last);
    }
    this.#position = { ...before, last };
    this.#options.events.onFlush?.('unknown_kind');
    for (const kind of kinds.map((text) => text.slice(0, MAX_KIND_LENGTH))) {
      if (this.#reportedKinds.has(kind) || this.#reportedKinds.size >= MAX_REPORTED_KINDS) continue;
      this.#reportedKinds.add(kind);
      this.#options.events.onUnknownKind?.(kind);
    }
  }

  #flush(page: FeedPage, lost: FlushReason): void {
    for (const listener of this.#options.listeners) {
      listener.flush(page.position);
    }
    this.#position = { epoch: page.epoch, timeline: page.timeline, last: page.position };
    // The former numbers may be larger.
    this.#applied = 0;
    this.#options.events.onFlush?.(lost);
  }

  #pruneOrReport(): void {
    this.prune().catch((error: unknown) => this.#options.events.onError?.(connectionFault(error)));
  }
}

/** Returns why the position is lost; undefined if it is not. */
function lostPosition(before: FeedPosition, page: FeedPage): FlushReason | undefined {
  if (before.epoch !== page.epoch) return 'epoch';
  if (before.timeline !== page.timeline) return 'timeline';
  if (page.position < before.last) return 'behind';
  return before.last < page.prunedThrough ? 'pruned' : undefined;
}
