/**
 * The change feed, read. Every transaction that touches a cached row leaves numbered lines in `changes`, in commit
 * order; this reads them on, each second and at once when PostgreSQL notifies, and hands them to the caches batch by
 * batch.
 *
 * The place is lost when the feed's epoch or the server's timeline is another, when the server is behind what was read
 * (it failed over to a standby that lagged), or when lines not yet read have been pruned. Then the caches are told to
 * forget everything.
 *
 * During an upgrade a newer replica may write a kind of change that this program does not know. Such a change may
 * invalidate anything, so it flushes the caches, and the feed reads on.
 *
 * One read runs at a time. Whoever calls catchUp() waits for a read that began after the call, shared by all who called
 * meanwhile.
 */

import type { ChangeListener, FeedClock } from '../credential-cache/ports.ts';
import { Fault } from '../domain/errors.ts';
import { StoreClock } from '../domain/store-clock.ts';
import type { Database } from './database.ts';
import { connectionFault } from './faults.ts';
import { listenForChanges } from './feed-notifications.ts';
import { pruneChanges } from './feed-prune.ts';
import { type FeedPage, readPage, tellsTimeline } from './feed-read.ts';

export type FlushReason = 'epoch' | 'timeline' | 'behind' | 'pruned' | 'listener' | 'unknown_kind';

/** Characters of an unknown kind that are reported. */
const MAX_KIND_LENGTH = 64;
/** Unknown kinds that are reported; the flushes for further ones are only counted. */
const MAX_REPORTED_KINDS = 100;

/** What happens in the feed, for logs and counters. Nothing here may throw. */
export interface FeedEvents {
  onError?(error: Fault): void;
  /**
   * @param lagMs how long ago, by the server's clock, the oldest change just applied was committed; 0 when there was
   * none
   */
  onPoll?(lagMs: number): void;
  onFlush?(reason: FlushReason): void;
  /** Called once for each kind of change that this program does not know. Every such change flushes the caches. */
  onUnknownKind?(kind: string): void;
}

export interface FeedOptions {
  readonly db: Database;
  readonly listeners: readonly ChangeListener[];
  /**
   * False where a pooler is in between that cannot pass notifications on; then changes arrive with the poll. True
   * unless told.
   */
  readonly notifications?: boolean;
  /** 1000 unless told. */
  readonly pollIntervalMs?: number;
  /** Changes in one batch at most; 1000 unless told. */
  readonly batchSize?: number;
  /**
   * The longest that catchUp() waits; 4000 unless told: one read under way and one of its own, each as long as a
   * statement may take.
   */
  readonly catchUpTimeoutMs?: number;
  /** Learns the server's clock from each read. */
  readonly clock?: StoreClock;
  /** How long changes are kept; an hour unless told. */
  readonly keepMs?: number;
  /** 5 minutes unless told. */
  readonly pruneIntervalMs?: number;
  readonly events?: FeedEvents;
}

interface Place {
  readonly epoch: string;
  readonly timeline: string | undefined;
  readonly last: number;
}

type Waiters = ReturnType<typeof Promise.withResolvers<void>>;

export class ChangeFeed implements FeedClock {
  readonly #options: Required<Omit<FeedOptions, 'events'>> & { readonly events: FeedEvents };
  /** A pool of its own, so that a crowd of look-ups never delays the news that something was revoked. */
  readonly #db: Database;
  #polledAtMs = Number.NEGATIVE_INFINITY;
  #place: Place | undefined;
  #withTimeline = false;
  #waiting: Waiters | undefined;
  #reading: Promise<void> | undefined;
  #wanted = 0;
  /** The last change that a notification was about. */
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

  /** The last change applied; undefined before start(). */
  get position(): number | undefined {
    return this.#place?.last;
  }

  /** The PostgreSQL process that sends notifications; undefined before the first one. */
  get session(): number | undefined {
    return this.#session;
  }

  /**
   * Sets what is called when a writer asks how far this process has applied the feed; without notifications it never
   * is.
   */
  onReportRequest(listener: () => void): void {
    this.#reportListener = listener;
  }

  /**
   * Finds the place to read on from, and begins. Rejects with a Fault when the database cannot be read; it may be
   * called again then.
   */
  async start(): Promise<void> {
    const startedAtMs = performance.now();
    try {
      this.#withTimeline = await tellsTimeline(this.#db);
      const page = await this.#readPage(0, 0);
      this.#place = { epoch: page.epoch, timeline: page.timeline, last: page.position };
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
    if (this.#state !== 'reading') {
      throw new Fault('the change feed is not being read');
    }
    this.#waiting ??= Promise.withResolvers<void>();
    const { promise } = this.#waiting;
    this.#wake();
    const late = Promise.withResolvers<never>();
    const limitMs = this.#options.catchUpTimeoutMs;
    const timer = setTimeout(
      () => late.reject(new Fault(`the change feed was not read within ${limitMs} ms`)),
      limitMs,
    );
    try {
      await Promise.race([promise, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Deletes changes that everybody has had time to read, unless another server is doing so. Resolves with how many. */
  prune(): Promise<number> {
    return pruneChanges(this.#db, this.#options.keepMs);
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

  /** A change is committed: to be read, unless it was. */
  #announce(seq: number | undefined): void {
    if (seq === undefined) {
      this.#wake();
      return;
    }
    this.#announced = Math.max(this.#announced, seq);
    // A read under way may show it.
    if (this.#isBehind()) this.#reading ??= this.#readWhileWanted();
  }

  #isBehind(): boolean {
    return this.#place !== undefined && this.#place.last < this.#announced;
  }

  #wake(): void {
    this.#wanted++;
    this.#reading ??= this.#readWhileWanted();
  }

  async #readWhileWanted(): Promise<void> {
    // So that all who call in this moment share the read.
    await undefined;
    while ((this.#wanted > 0 || this.#isBehind()) && this.#state === 'reading') {
      this.#wanted = 0;
      const announced = this.#announced;
      const waiting = this.#waiting;
      this.#waiting = undefined;
      // Whoever asked may have stopped waiting, and an error without a listener would end the process.
      waiting?.promise.catch(() => undefined);
      try {
        await this.#readToEnd();
        waiting?.resolve();
      } catch (error) {
        const fault = connectionFault(error);
        this.#options.events.onError?.(fault);
        waiting?.reject(fault);
      }
      // A look that began after it was announced shows it, or it is not to be seen here: then looking again and again
      // would not help.
      if (this.#announced === announced) this.#announced = 0;
    }
    // In the same breath as the last look at #wanted, so that no wake-up falls in between.
    this.#reading = undefined;
  }

  async #readToEnd(): Promise<void> {
    const limit = this.#options.batchSize;
    let lagMs = 0;
    for (let full = true; full; ) {
      const place = this.#place;
      if (place === undefined || this.#state !== 'reading') {
        throw new Fault('the change feed has stopped');
      }
      const startedAtMs = performance.now();
      const page = await this.#readPage(place.last, limit);
      const lost = lostPlace(place, page);
      if (lost === undefined) {
        this.#apply(place, page);
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

  async #readPage(after: number, limit: number): Promise<FeedPage> {
    const sentMs = performance.now();
    const page = await readPage(this.#db, { after, limit, withTimeline: this.#withTimeline });
    this.#options.clock.learn(sentMs, performance.now(), page.nowMs);
    return page;
  }

  #apply(place: Place, page: FeedPage): void {
    const { last } = page;
    if (last === undefined) {
      return;
    }
    if (page.unknownKinds.length > 0) {
      this.#flushUnknown(place, last, page.unknownKinds);
      return;
    }
    for (const listener of this.#options.listeners) {
      try {
        listener.apply(page.changes);
      } catch (error) {
        // A cache that could not take a change must not go on with what it has.
        listener.flush(last);
        this.#options.events.onFlush?.('listener');
        this.#options.events.onError?.(new Fault('a cache could not apply a change', { cause: error }));
      }
    }
    this.#place = { ...place, last };
  }

  /** Nothing is known of what these changes are about, so every cache is flushed; the position goes on as usual. */
  #flushUnknown(place: Place, last: number, kinds: readonly string[]): void {
    for (const listener of this.#options.listeners) {
      listener.flush(last);
    }
    this.#place = { ...place, last };
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
    this.#place = { epoch: page.epoch, timeline: page.timeline, last: page.position };
    this.#options.events.onFlush?.(lost);
  }

  #pruneOrReport(): void {
    this.prune().catch((error: unknown) => this.#options.events.onError?.(connectionFault(error)));
  }
}

function lostPlace(place: Place, page: FeedPage): FlushReason | undefined {
  if (place.epoch !== page.epoch) {
    return 'epoch';
  }
  if (place.timeline !== page.timeline) {
    return 'timeline';
  }
  if (page.position < place.last) {
    return 'behind';
  }
  return place.last < page.prunedThrough ? 'pruned' : undefined;
}
