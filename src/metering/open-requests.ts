/**
 * Requests that this process admitted and whose end it does not know. The process writes them to the store in notes,
 * one for the requests of half a second, so that another process can book them if this one dies with the reports of
 * their ends.
 *
 * A note may name requests that have ended: the store books each reservation once. The process deletes a note after the
 * last of its requests has ended here, or if no process has renewed any of them for the lifetime of a reservation.
 */

import { SingleFlight } from '../concurrency/single-flight.ts';
import { costOf } from '../decision/prices.ts';
import { dayOf, periodOf } from './calendar.ts';
import type { Charges } from './charge-text.ts';
import { chargedBatch } from './charged-batch.ts';
import type { SharedParts } from './parts.ts';
import type { OpenRequest, OpenRequestNote, OpenRequestStore } from './ports.ts';
import { MAX_PROMPT_TOKENS } from './reservation-ids.ts';

interface OpenRequestsParts extends Pick<SharedParts, 'processId' | 'monotonicMs' | 'counts'> {
  readonly store: OpenRequestStore;
  readonly reservationTtlMs: number;
  readonly maxOpen: number;
}

/** An admitted request, with the time of its check as its reservation has it. */
export interface AdmittedRequest extends Pick<OpenRequest, 'counter' | 'tenant' | 'key' | 'user' | 'prompt'> {
  readonly minute: number;
  readonly offset: number;
  /** The price of its model, and its budgets. */
  readonly charges: Charges;
}

interface Note {
  readonly number: number;
  readonly counters: readonly number[];
  open: number;
  expiresAtMs: number;
}

const FLUSH_MS = 500;
/** The largest number of requests in one note, and of notes in one flush. */
const BATCH = 1000;
const MAX_BATCHES = 20;

export class OpenRequests {
  readonly #parts: OpenRequestsParts;
  readonly #flush = new SingleFlight(() => this.#write());
  /** Requests without a note, by the number of the reservation. */
  readonly #fresh = new Map<number, AdmittedRequest>();
  readonly #noted = new Map<number, Note>();
  readonly #notes = new Set<Note>();
  /** Numbers of notes that the store may delete. */
  #over: number[] = [];
  /** A note that was sent without an answer. It is sent again. */
  #unanswered: OpenRequestNote | undefined;
  #lastNote = 0;
  #flushedAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: OpenRequestsParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#fresh.size + this.#noted.size;
  }

  /** Adds a request, unless `maxOpen` is reached. */
  add(request: AdmittedRequest): void {
    if (this.size >= this.#parts.maxOpen) this.#parts.counts.requestsNotNoted += 1;
    else this.#fresh.set(request.counter, request);
  }

  /** @param seenAtMs a time at which the request was running, as this or another process was informed */
  renew(counter: number, seenAtMs: number): void {
    const note = this.#noted.get(counter);
    if (note !== undefined) note.expiresAtMs = Math.max(note.expiresAtMs, seenAtMs + this.#parts.reservationTtlMs);
  }

  /** The request is booked or was cancelled. */
  ended(counter: number): void {
    if (this.#fresh.delete(counter)) return;
    const note = this.#noted.get(counter);
    if (note === undefined) return;
    this.#noted.delete(counter);
    note.open -= 1;
    if (note.open === 0) this.#forget(note);
  }

  /**
   * Sends the notes that are due. Never rejects: a note without an answer is sent again.
   * @param renewalsKnownMs a time such that all earlier renewals by other processes are known here
   */
  tick(renewalsKnownMs: number): Promise<void> {
    const now = this.#parts.monotonicMs();
    if (now - this.#flushedAtMs < FLUSH_MS) return this.#flush.idle();
    this.#flushedAtMs = now;
    for (const note of this.#notes) if (note.expiresAtMs <= renewalsKnownMs) this.#forget(note);
    return this.#flush.run();
  }

  #forget(note: Note): void {
    for (const counter of note.counters) this.#noted.delete(counter);
    this.#notes.delete(note);
    this.#over.push(note.number);
  }

  async #write(): Promise<void> {
    for (let batch = 0; batch < MAX_BATCHES; batch++) {
      this.#unanswered ??= this.#nextNote();
      if (this.#unanswered === undefined) return;
      this.#parts.counts.statements += 1;
      try {
        await this.#parts.store.noteRequests(this.#unanswered);
      } catch {
        // The other statements of this process report the outage.
        return;
      }
      this.#unanswered = undefined;
    }
  }

  #nextNote(): OpenRequestNote | undefined {
    if (this.#fresh.size === 0 && this.#over.length === 0) return undefined;
    const { processId, monotonicMs, reservationTtlMs } = this.#parts;
    const requests = chargedBatch(this.#fresh.values(), BATCH, ({ charges }) => charges.charges.length);
    const note: Note = {
      number: ++this.#lastNote,
      counters: requests.map(({ counter }) => counter),
      open: requests.length,
      expiresAtMs: monotonicMs() + reservationTtlMs,
    };
    for (const counter of note.counters) {
      this.#fresh.delete(counter);
      this.#noted.set(counter, note);
    }
    if (requests.length > 0) this.#notes.add(note);
    return { processId, note: note.number, requests: requests.map(openRequest), over: this.#over.splice(0, BATCH) };
  }
}

function openRequest({ minute, offset, charges, counter, tenant, key, user, prompt }: AdmittedRequest): OpenRequest {
  const { price } = charges;
  const estimate = Math.min(prompt, MAX_PROMPT_TOKENS);
  return {
    ...{ counter, tenant, key, user, prompt: estimate },
    ...{ period: periodOf(minute, offset), day: dayOf(minute, offset) },
    cost: price === undefined ? 0 : costOf(price, { prompt: estimate, completion: 0 }),
    priceVersion: price?.version ?? 0,
    charges: charges.charges,
  };
}
