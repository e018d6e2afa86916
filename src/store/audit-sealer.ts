/**
 * Seals the audit log while the server runs: each second, whatever has been committed since. Every server tries; a lock that lives as
 * long as one transaction lets one at a time through, so when the one at work dies the next second belongs to another.
 *
 * Nothing waits for it. It takes no lock that a writer needs, not the change feed's either, and works on a connection of its own.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from '../domain/errors.ts';
import { hex, type Mac } from './audit-chain.ts';
import { removeBatch, type SealedTo, type Step, sealBatch } from './audit-seal.ts';
import { anyWaiting } from './audit-seal-queries.ts';
import type { Database } from './database.ts';
import { connectionFault } from './faults.ts';

/** What happens in the chain, for logs. Nothing here may throw. */
export interface SealerEvents {
  onError?(error: Fault): void;
  /** A turn is over: nothing that could be sealed waits, or another server is at it. */
  onTurn?(): void;
  /** Somebody has had their hands in the chain: `postern verify-audit` says where. */
  onBroken?(what: string): void;
  /** Now and then, the newest seal as `seq:hash`: kept elsewhere, it proves later that nothing before it was cut off. */
  onAnchor?(anchor: string): void;
  /** @param rows so many were older than they have to be kept, and are gone */
  onRemoved?(rows: number): void;
}

export interface SealerOptions {
  readonly db: Database;
  readonly mac: Mac;
  /** Of the other `secret-key`, while the installation changes its key: a head signed so is believed. */
  readonly otherMac?: Mac | undefined;
  /** Rows are kept at least that long; undefined = for ever. */
  readonly keepMs?: number | undefined;
  /** 1000 unless told. */
  readonly intervalMs?: number;
  /** 10 minutes unless told: how often it looks for what is too old, and how often it tells the newest seal. */
  readonly upkeepMs?: number;
  readonly events?: SealerEvents;
}

/** Of one turn: the next is a second away. */
const MAX_BATCHES = 100;
/** Removing a batch of rows on a slow disk. */
const QUERY_TIMEOUT_MS = 5_000;
/** How long a server that stops waits for the last seal. What is not sealed then, another server seals, or the next start. */
const LAST_TURN_MS = 3_000;

export class AuditSealer {
  readonly #options: SealerOptions;
  readonly #db: Database;
  readonly #events: SealerEvents;
  #newest: SealedTo | undefined;
  #told: SealedTo | undefined;
  #turn: Promise<void> | undefined;
  #upkeepDue = true;
  #timers: NodeJS.Timeout[] = [];

  constructor(options: SealerOptions) {
    this.#options = options;
    this.#events = options.events ?? {};
    this.#db = options.db.reopen({ poolMax: 1, queryTimeoutMs: QUERY_TIMEOUT_MS });
  }

  start(): void {
    const { intervalMs = 1000, upkeepMs = 600_000 } = this.#options;
    this.#timers = [
      setInterval(() => this.#takeTurn(), intervalMs),
      setInterval(() => {
        this.#upkeepDue = true;
      }, upkeepMs),
    ];
  }

  /** Seals what waits now. Resolves with how many rows; 0 too when another server is at it. */
  async seal(): Promise<number> {
    if (!(await anyWaiting(this.#db.knex))) return 0;
    return this.#repeat(() => sealBatch(this.#db, this.#options.mac, this.#options.otherMac));
  }

  /** Removes what is older than it has to be kept, and seals that this was done. Resolves with how many rows went. */
  async removeExpired(): Promise<number> {
    const { keepMs, mac, otherMac } = this.#options;
    if (keepMs === undefined) return 0;
    const rows = await this.#repeat(() => removeBatch(this.#db, mac, keepMs, otherMac));
    if (rows > 0) this.#events.onRemoved?.(rows);
    return rows;
  }

  /** Seals once more, as far as the database answers. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
    const patience = new AbortController();
    const impatient = sleep(LAST_TURN_MS, undefined, { signal: patience.signal }).catch(() => undefined);
    await Promise.race([this.#lastTurn(), impatient]);
    patience.abort();
    await this.#db.close();
  }

  async #lastTurn(): Promise<void> {
    await this.#turn;
    await this.#reporting(() => this.seal());
    this.#tellAnchor();
  }

  async #repeat(step: () => Promise<Step>): Promise<number> {
    let total = 0;
    for (let batch = 0; batch < MAX_BATCHES; batch++) {
      const { rows, more, head, restarted } = await step();
      total += rows;
      this.#notice(head, restarted);
      if (!more) break;
    }
    return total;
  }

  /** Two turns never overlap: while one is under way the next is left out. */
  #takeTurn(): void {
    this.#turn ??= this.#reporting(async () => {
      await this.seal();
      this.#events.onTurn?.();
      if (!this.#upkeepDue) return;
      this.#upkeepDue = false;
      this.#tellAnchor();
      await this.removeExpired();
    }).finally(() => {
      this.#turn = undefined;
    });
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

  #tellAnchor(): void {
    if (this.#newest === undefined || this.#newest.seq === this.#told?.seq) return;
    this.#told = this.#newest;
    this.#events.onAnchor?.(`${this.#newest.seq}:${hex(this.#newest.hash)}`);
  }
}
