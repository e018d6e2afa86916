/**
 * The decision log, which never delays a decision. It has a line for every denial, for one allow in `allowOneIn`, and
 * for faults of each kind up to a rate, then their number. The log encodes each line at once into a batch in memory.
 * Each outcome has its own memory bound, so a flood of faults does not displace denials. Batches go to the sink one at
 * a time. The log drops and counts lines beyond the bound and batches that the sink cannot deliver.
 */

import { inTime } from '../concurrency/in-time.ts';
import { type CheckOutcome, type OutcomeKind, outcomeKind } from './check-outcome.ts';
import { countedLine, type DecisionLine, lineOf } from './decision-line.ts';
import { FaultSampler } from './fault-sampler.ts';

export interface DecisionSink {
  /**
   * Returns the text of one line without secrets, with its line end. @param atMs the start of the check, in
   * milliseconds since the epoch
   */
  render(line: DecisionLine, atMs: number): string;
  /** Prepares the sink. Rejects with a sentence for the operator if it cannot be used. */
  open?(): Promise<void>;
  /**
   * Resolves when the lines (in UTF-8) have left this process. Rejects if they are lost. The log makes one call at a
   * time, and reuses the bytes afterwards.
   */
  deliver(lines: Buffer): Promise<void>;
  /** Called once, after the last batch. */
  close?(): Promise<void>;
}

export interface DecisionLogParts {
  readonly sink: DecisionSink;
  readonly monotonicMs: () => number;
  /** Milliseconds since the epoch. Default: this machine's clock. */
  readonly now?: () => number;
  /** The log has one allow in this many. 0: none. Default: 1000. */
  readonly allowOneIn?: number;
  /**
   * Faults of one kind in a second that have their own lines. The others of that second are one line with their number.
   * Default: 10.
   */
  readonly faultsPerSecond?: number;
  /** The bytes of each outcome that may wait for delivery. Default: 1 Mi. */
  readonly maxHeld?: number;
  /** Called for the first lost batch after a delivered one. */
  readonly onLost?: (error: unknown) => void;
}

interface Batch {
  readonly bytes: Buffer;
  used: number;
  /** Bytes and lines by outcome. */
  readonly held: Record<OutcomeKind, number>;
  readonly counts: Record<OutcomeKind, number>;
}

const DELIVER_EVERY_MS = 100;
/** The size of a batch, unless one line is longer. A full batch is sent at once. */
const BATCH_BYTES = 262_144;
/** The maximum bytes of one UTF-16 unit in UTF-8. */
const MAX_BYTES_PER_UNIT = 3;
const DEFAULT_MAX_HELD = 1_048_576;
/** How long the shutdown waits for the sink. */
const CLOSE_TIMEOUT_MS = 2000;

export class DecisionLog {
  readonly #sink: DecisionSink;
  readonly #now: () => number;
  readonly #allowOneIn: number;
  readonly #maxHeld: number;
  readonly #onLost: (error: unknown) => void;
  readonly #faults: FaultSampler;
  readonly #dropped: Record<OutcomeKind, number> = { allow: 0, deny: 0, fault: 0 };
  /** Bytes by outcome, including those of the batch in delivery. */
  readonly #held: Record<OutcomeKind, number> = { allow: 0, deny: 0, fault: 0 };
  /** The oldest batch first. Lines go to the last one. */
  readonly #batches: Batch[] = [];
  /** A delivered batch whose memory is used again. */
  #spare: Batch | undefined;
  #allowsToSkip: number;
  #timer: NodeJS.Timeout | undefined;
  #early: NodeJS.Immediate | undefined;
  #delivering: Promise<void> | undefined;
  #isLosing = false;

  constructor(parts: DecisionLogParts) {
    this.#sink = parts.sink;
    this.#now = parts.now ?? Date.now;
    this.#allowOneIn = parts.allowOneIn ?? 1000;
    this.#maxHeld = parts.maxHeld ?? DEFAULT_MAX_HELD;
    this.#onLost = parts.onLost ?? (() => undefined);
    this.#faults = new FaultSampler(parts.faultsPerSecond ?? 10, parts.monotonicMs);
    this.#allowsToSkip = this.#allowOneIn - 1;
  }

  /**
   * Checks without their own line, by outcome: faults beyond their rate, lines beyond the memory bound, and lines that
   * were lost in delivery. Allows that were not sampled do not count.
   */
  get dropped(): Readonly<Record<OutcomeKind, number>> {
    return this.#dropped;
  }

  /** Prepares the sink. Rejects with a sentence for the operator if it cannot be used. */
  async open(): Promise<void> {
    await this.#sink.open?.();
  }

  offer(outcome: CheckOutcome): void {
    const kind = outcomeKind(outcome.code);
    if (!this.#wants(kind, outcome)) return;
    if (this.#held[kind] >= this.#maxHeld) this.#dropped[kind]++;
    else this.#hold(kind, lineOf(outcome), outcome.startedAtMs);
  }

  /** Delivers all waiting lines within two seconds, at shutdown. */
  async close(): Promise<void> {
    this.#writeCounted(this.#faults.takeAll());
    await inTime(this.#deliverAll(), CLOSE_TIMEOUT_MS, () => undefined);
    clearTimeout(this.#timer);
    clearImmediate(this.#early);
    await this.#sink.close?.();
  }

  #wants(kind: OutcomeKind, { error }: CheckOutcome): boolean {
    switch (kind) {
      case 'fault':
        return this.#isLoggedFault(error);
      case 'allow':
        return this.#isSampled();
      case 'deny':
        return true;
      default:
        return kind satisfies never;
    }
  }

  #isLoggedFault(error: unknown): boolean {
    if (this.#faults.admit(error)) return true;
    this.#dropped.fault++;
    this.#schedule();
    return false;
  }

  #isSampled(): boolean {
    if (this.#allowsToSkip > 0 || this.#allowOneIn === 0) {
      this.#allowsToSkip--;
      return false;
    }
    this.#allowsToSkip = this.#allowOneIn - 1;
    return true;
  }

  #hold(kind: OutcomeKind, line: DecisionLine, atMs: number): void {
    const text = this.#sink.render(line, atMs);
    const batch = this.#batchFor(text.length * MAX_BYTES_PER_UNIT);
    const bytes = batch.bytes.write(text, batch.used);
    batch.used += bytes;
    batch.held[kind] += bytes;
    batch.counts[kind]++;
    this.#held[kind] += bytes;
    this.#schedule();
  }

  /** Returns the batch for the next line, with enough space for it. */
  #batchFor(bytes: number): Batch {
    const last = this.#batches.at(-1);
    if (last !== undefined && last.used + bytes <= last.bytes.length) return last;
    const next =
      bytes <= BATCH_BYTES
        ? (this.#spare ?? batchIn(Buffer.allocUnsafeSlow(BATCH_BYTES)))
        : batchIn(Buffer.allocUnsafeSlow(bytes));
    if (next === this.#spare) this.#spare = undefined;
    this.#batches.push(next);
    return next;
  }

  #schedule(): void {
    if (this.#batches.length > 1 && this.#delivering === undefined) this.#early ??= setImmediate(() => this.#deliver());
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#writeCounted(this.#faults.takeFinished());
      this.#deliver();
      if (this.#faults.isCounting) this.#schedule();
    }, DELIVER_EVERY_MS);
    this.#timer.unref();
  }

  #deliver(): void {
    this.#early = undefined;
    if (this.#delivering !== undefined) return;
    const batch = this.#batches.shift();
    if (batch === undefined) return;
    this.#delivering = this.#sink.deliver(batch.bytes.subarray(0, batch.used)).then(
      () => this.#settle(batch, undefined),
      (error: unknown) => this.#settle(batch, { error }),
    );
  }

  #settle(batch: Batch, lost: { readonly error: unknown } | undefined): void {
    this.#delivering = undefined;
    const { bytes, held, counts } = batch;
    for (const kind of KINDS) {
      this.#held[kind] -= held[kind];
      if (lost !== undefined) this.#dropped[kind] += counts[kind];
    }
    if (bytes.length === BATCH_BYTES) this.#spare = batchIn(bytes);
    if (lost !== undefined && !this.#isLosing) this.#onLost(lost.error);
    this.#isLosing = lost !== undefined;
    if (this.#batches.length > 0) this.#schedule();
  }

  async #deliverAll(): Promise<void> {
    while (this.#delivering !== undefined || this.#batches.length > 0) {
      this.#deliver();
      await this.#delivering;
    }
  }

  #writeCounted(counted: ReturnType<FaultSampler['takeAll']>): void {
    for (const { count, error } of counted)
      if (this.#held.fault < this.#maxHeld) this.#hold('fault', countedLine(error, count), this.#now());
  }
}

const KINDS = ['allow', 'deny', 'fault'] as const satisfies readonly OutcomeKind[];

function batchIn(bytes: Buffer): Batch {
  return { bytes, used: 0, held: { allow: 0, deny: 0, fault: 0 }, counts: { allow: 0, deny: 0, fault: 0 } };
}
