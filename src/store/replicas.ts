/**
 * Replicas report how far they have applied the change feed, so that a write can wait until no replica decides by older
 * data.
 *
 * Each process with a cache keeps one row in `replicas`. A writer that wants to wait sends a notification; every
 * process then reads the feed and updates its row, and the writer polls the rows. Where notifications do not arrive,
 * rows are as old as the last heartbeat.
 *
 * A process may die without removing its row. PostgreSQL then ends the session that sent its notifications, and 15 s
 * after the last report the row no longer counts. A process that is only separated from the database still decides, and
 * its session lasts until the connection is known to be lost. While the session lasts, and for a process without
 * notifications, the row counts until the process no longer trusts its cache.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { SingleFlight } from '../concurrency/single-flight.ts';
import type { Database } from './database.ts';

export const REPORT_CHANNEL = 'postern_report';

/** The local end of the change feed. */
export interface AppliedFeed {
  /** The last change that every cache has applied; undefined before the feed's start. */
  readonly applied: number | undefined;
  /**
   * The id of the PostgreSQL process that sends notifications; undefined before the first one, and without
   * notifications.
   */
  readonly session: number | undefined;
  catchUp(): Promise<void>;
  /** Resolves when no cache reads again what a change has changed. Never rejects. */
  settled(): Promise<void>;
  /** Sets the listener for a writer's request of a report. */
  onReportRequest(listener: () => void): void;
}

interface ReplicaOptions {
  readonly db: Pick<Database, 'query'>;
  readonly feed: AppliedFeed;
  /** Unique among all processes of the installation. */
  readonly id: string;
  /** The same for all processes of one server. */
  readonly server: string;
  /** Bounds the time for which this process decides by its cache without a poll of the feed. */
  readonly maxStalenessMs: number;
  /** Default: 5000. */
  readonly heartbeatMs?: number;
  readonly onError?: (error: unknown) => void;
}

const HEARTBEAT_MS = 5000;
/** Rows of processes that ended without removing them. */
const FORGET_AFTER = '1 hour';

const REPORT = {
  name: 'report_replica',
  text: `
    with forgotten as (delete from replicas where trusted_until < clock_timestamp() - interval '${FORGET_AFTER}')
    insert into replicas (id, server, applied, trusted_until, session, reported_at)
    values ($1, $2, $3, clock_timestamp() + make_interval(secs => $4), $5, clock_timestamp())
    on conflict (id) do update set server = excluded.server, applied = excluded.applied, trusted_until = excluded.trusted_until,
      session = excluded.session, reported_at = excluded.reported_at`,
};

export class Replica {
  readonly #options: ReplicaOptions;
  readonly #reports = new SingleFlight(() => this.#reportAll());
  #timer: NodeJS.Timeout | undefined;
  #isRequested = false;
  #stopped = false;

  constructor(options: ReplicaOptions) {
    this.#options = options;
  }

  /** Registers the process. Call it after the feed's start and before the first cached answer. Rejects with a Fault. */
  async start(): Promise<void> {
    this.#options.feed.onReportRequest(() => this.report());
    await this.#write();
    this.#timer = setInterval(() => void this.#reports.run(), this.#options.heartbeatMs ?? HEARTBEAT_MS);
    this.#timer.unref();
  }

  /** Reads the feed and reports the position; requests during a report share the next one. Never rejects. */
  report(): void {
    this.#isRequested = true;
    void this.#reports.run();
  }

  /** Removes the row. Never rejects: a row that stays is forgotten later. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await this.#reports.idle();
    await removeReplica(this.#options.db, this.#options.id).catch((error: unknown) => this.#options.onError?.(error));
  }

  async #reportAll(): Promise<void> {
    try {
      do {
        const requested = this.#isRequested;
        this.#isRequested = false;
        if (requested) {
          await this.#options.feed.catchUp();
          await this.#options.feed.settled();
        }
        await this.#write();
      } while (this.#isRequested && !this.#stopped);
    } catch (error) {
      this.#options.onError?.(error);
    }
  }

  async #write(): Promise<void> {
    const { db, feed, id, server, maxStalenessMs } = this.#options;
    await db.query({
      ...REPORT,
      values: [id, server, feed.applied ?? 0, maxStalenessMs / 1000, feed.session ?? null],
    });
  }
}

/** Removes the row of a process that has ended. */
export async function removeReplica(db: Pick<Database, 'query'>, id: string): Promise<void> {
  await db.query({ text: 'delete from replicas where id = $1', values: [id] });
}

export type AppliedByReplicas =
  | { readonly kind: 'applied' }
  /** `replicas`: number of servers that have not applied the change; undefined = unknown. */
  | { readonly kind: 'partial'; readonly replicas: number | undefined };

const FIRST_POLL_MS = 2;
const MAX_POLL_MS = 50;

/** Three heartbeats. */
const SILENT_AFTER = '15 seconds';
const IS_LIVE = `
  trusted_until > clock_timestamp() and (
    session is null
    or reported_at > clock_timestamp() - interval '${SILENT_AFTER}'
    or exists (select from pg_stat_activity where pg_stat_activity.pid = replicas.session)
  )`;

/** The least position of all live replicas; null if there is none. */
const LEAST = { name: 'least_applied', text: `select min(applied) as least from replicas where ${IS_LIVE}` };

const PENDING = {
  name: 'pending_replicas',
  text: `
    select count(distinct server)::int as pending from replicas
    where applied < $1 and ${IS_LIVE}`,
};

interface Waiter {
  readonly through: number;
  readonly resolve: (outcome: AppliedByReplicas) => void;
}

/** Waits for replicas on behalf of writes. One statement at a time polls for all waiting writes. */
export class ReplicaWaits {
  readonly #db: Pick<Database, 'query'>;
  readonly #waiters = new Set<Waiter>();
  #polling: Promise<void> | undefined;
  #hasNewWaiters = false;

  constructor(db: Pick<Database, 'query'>) {
    this.#db = db;
  }

  /**
   * Waits until every live replica has applied the feed up to `through`, or until `maxWaitMs` has passed. Never
   * rejects.
   * @param through a sequence number of the change feed
   */
  async wait(through: number, maxWaitMs: number): Promise<AppliedByReplicas> {
    const { promise, resolve } = Promise.withResolvers<AppliedByReplicas | 'late'>();
    const waiter: Waiter = { through, resolve };
    const timer = setTimeout(() => resolve('late'), maxWaitMs);
    this.#waiters.add(waiter);
    this.#hasNewWaiters = true;
    this.#polling ??= this.#poll();
    const outcome = await promise;
    clearTimeout(timer);
    this.#waiters.delete(waiter);
    return outcome === 'late' ? this.#partial(through) : outcome;
  }

  async #poll(): Promise<void> {
    try {
      for (let pollMs = FIRST_POLL_MS; this.#waiters.size > 0; pollMs = Math.min(pollMs * 2, MAX_POLL_MS)) {
        if (this.#hasNewWaiters) {
          this.#hasNewWaiters = false;
          pollMs = FIRST_POLL_MS;
          await this.#db.query({ text: `select pg_notify('${REPORT_CHANNEL}', '')` });
        }
        const [row] = await this.#db.query(LEAST);
        const least = row?.['least'] === null ? Number.POSITIVE_INFINITY : Number(row?.['least']);
        for (const waiter of this.#waiters) {
          if (waiter.through > least) continue;
          this.#waiters.delete(waiter);
          waiter.resolve({ kind: 'applied' });
        }
        if (this.#waiters.size > 0) await sleep(pollMs);
      }
    } catch {
      for (const { resolve } of this.#waiters) resolve({ kind: 'partial', replicas: undefined });
      this.#waiters.clear();
    } finally {
      // In the same tick as the last check of the waiters, so that none joins a loop that has ended.
      this.#polling = undefined;
    }
  }

  async #partial(through: number): Promise<AppliedByReplicas> {
    const rows = await this.#db.query({ ...PENDING, values: [through] }).catch(() => undefined);
    if (rows === undefined) return { kind: 'partial', replicas: undefined };
    const pending = Number(rows[0]?.['pending'] ?? 0);
    return pending === 0 ? { kind: 'applied' } : { kind: 'partial', replicas: pending };
  }
}
