/**
 * Seals the audit log while the server runs: each second, the rows committed since the last second. Every server tries.
 * A lock that ends with its transaction admits one server at a time, so if that server dies, another one seals.
 *
 * Nothing waits for the sealer. It takes no lock that a writer or the change feed needs, and has its own connection.
 */

import { inTime } from '../concurrency/in-time.ts';
import { SingleFlight } from '../concurrency/single-flight.ts';
import type { Fault } from '../domain/errors.ts';
import { hex, type Mac } from './audit-chain.ts';
import { removeBatch, type SealBatchResult, type SealedTo, sealBatch } from './audit-seal.ts';
import { anyWaiting } from './audit-seal-queries.ts';
import type { Database } from './database.ts';
import { connectionFault } from './faults.ts';

/** Events of the chain, for logs. The listeners must not throw. */
interface SealerEvents {
  onError?(error: Fault): void;
  /** A turn has ended: no row waits for a seal, or another server seals. */
  onTurn?(): void;
  /** The chain was changed from outside. `postern verify-audit` shows where. */
  onBroken?(what: string): void;
  /** The newest seal as `seq:hash`. A copy kept elsewhere proves that no earlier seal was removed. */
  onAnchor?(anchor: string): void;
  /** @param rows number of removed rows whose retention had ended */
  onRemoved?(rows: number): void;
}

export interface SealerOptions {
  readonly db: Database;
  readonly mac: Mac;
  /** MAC of the other `secret-key`, while the installation changes its key. A head that it signed is valid as well. */
  readonly otherMac?: Mac | undefined;
  /** Minimum retention of rows; undefined = unlimited. */
  readonly keepMs?: number | undefined;
  /** Default: 1000. */
  readonly intervalMs?: number;
  readonly events?: SealerEvents;
}

/** Interval at which it removes expired rows and reports the newest seal. */
const UPKEEP_MS = 600_000;
/** Batches of one turn. The next turn begins a second later. */
const MAX_BATCHES = 100;
/** Enough to remove a batch of rows on a slow disk. */
const QUERY_TIMEOUT_MS = 5_000;
/** A stopping server's wait for its last seal. Another server, or the next start, seals the remaining rows. */
const LAST_TURN_MS = 3_000;

export class AuditSealer {
  readonly #options: SealerOptions;
  readonly #db: Database;
  readonly #events: SealerEvents;
  #newest: SealedTo | undefined;
  #reportedAnchor: SealedTo | undefined;
  /** Skips a turn while another one runs. */
  readonly #turns = new SingleFlight(() => this.#reporting(() => this.#takeTurn()));
  #upkeepDue = true;
  #timers: NodeJS.Timeout[] = [];

  constructor(options: SealerOptions) {
    this.#options = options;
    this.#events = options.events ?? {};
    this.#db = options.db.reopen({ poolMax: 1, queryTimeoutMs: QUERY_TIMEOUT_MS });
  }

  start(): void {
    const { intervalMs = 1000 } = this.#options;
    this.#timers = [
      setInterval(() => void this.#turns.run(), intervalMs),
      setInterval(() => {
        this.#upkeepDue = true;
      }, UPKEEP_MS),
    ];
  }

  /** Seals the waiting rows. Resolves with their number, or with 0 if another server seals. */
  async seal(): Promise<number> {
    if (!(await anyWaiting(this.#db.knex))) return 0;
    return this.#repeat(() => sealBatch(this.#db, this.#options.mac, this.#options.otherMac));
  }

  /** Removes the rows whose retention has ended, and seals the removal. Resolves with the number of removed rows. */
  async removeExpired(): Promise<number> {
    const { keepMs, mac, otherMac } = this.#options;
    if (keepMs === undefined) return 0;
    const rows = await this.#repeat(() => removeBatch(this.#db, mac, keepMs, otherMac));
    if (rows > 0) this.#events.onRemoved?.(rows);
    return rows;
  }

  /** Seals a last time, if the database answers in time. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
    await inTime(this.#lastTurn(), LAST_TURN_MS, () => undefined);
    await this.#db.close();
  }

  async #lastTurn(): Promise<void> {
    await this.#turns.idle();
    await this.#reporting(() => this.seal());
    this.#reportAnchor();
  }

  async #repeat(step: () => Promise<SealBatchResult>): Promise<number> {
    let total = 0;
    for (let batch = 0; batch < MAX_BATCHES; batch++) {
      const { rows, more, head, restarted } = await step();
      total += rows;
      this.#notice(head, restarted);
      if (!more) break;
    }
    return total;
  }

  async #takeTurn(): Promise<void> {
    await this.seal();
    this.#events.onTurn?.();
    if (!this.#upkeepDue) return;
    this.#upkeepDue = false;
    this.#reportAnchor();
    await this.removeExpired();
  }

  async #reporting(work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#events.onError?.(connectionFault(error));
    }
  }

  #notice(head: SealedTo | undefined, restarted: boolean): void {
    if (restarted) this.#events.onBroken?.('the newest seal is not signed with secret-key; starting a new chain');
    if (head === undefined) return;
    if (this.#newest !== undefined && head.seq < this.#newest.seq) {
      this.#events.onBroken?.(`the newest seal is ${head.seq}, but it was ${this.#newest.seq} before`);
    }
    this.#newest = head;
  }

  #reportAnchor(): void {
    if (this.#newest === undefined || this.#newest.seq === this.#reportedAnchor?.seq) return;
    this.#reportedAnchor = this.#newest;
    this.#events.onAnchor?.(`${this.#newest.seq}:${hex(this.#newest.hash)}`);
  }
}
