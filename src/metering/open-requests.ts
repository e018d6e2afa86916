/**
 * Requests that this process admitted and whose end it does not know. It notes them in the store, half a second's requests in one note, so
 * that another process can book them if this one dies with the reports of their ends.
 *
 * A note may name requests that are over: the store books each reservation once. So a note goes when the last of its requests has ended
 * here, or when no process has heard of any of them for as long as a reservation lives.
 */

import { dayOf, periodOf } from './calendar.ts';
import type { MeteringCounts } from './counts.ts';
import type { OpenRequest, OpenRequestNote, OpenRequestStore } from './ports.ts';
import { MAX_PROMPT_TOKENS } from './reservation-ids.ts';

export interface OpenRequestsParts {
  readonly store: OpenRequestStore;
  readonly processId: string;
  readonly reservationTtlMs: number;
  readonly monotonicMs: () => number;
  readonly maxOpen: number;
  readonly counts: MeteringCounts;
}

/** A request, with the moment of its check as its reservation carries it. */
export interface AdmittedRequest extends Pick<OpenRequest, 'counter' | 'tenant' | 'key' | 'user' | 'prompt'> {
  readonly minute: number;
  readonly offset: number;
}

interface Note {
  readonly number: number;
  readonly counters: readonly number[];
  open: number;
  expiresAtMs: number;
}

const FLUSH_MS = 500;
/** Requests in one note, and notes in one flush. */
const BATCH = 1000;
const MAX_BATCHES = 20;

export class OpenRequests {
  readonly #parts: OpenRequestsParts;
  /** Not noted yet, by the number of the reservation. */
  readonly #fresh = new Map<number, AdmittedRequest>();
  readonly #noted = new Map<number, Note>();
  readonly #notes = new Set<Note>();
  /** Numbers of notes that the store may forget. */
  #over: number[] = [];
  /** Words whose answer is missing: the same words are sent again. */
  #unanswered: OpenRequestNote | undefined;
  #lastNote = 0;
  #flushing: Promise<void> | undefined;
  #flushedAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: OpenRequestsParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#fresh.size + this.#noted.size;
  }

  /** Beyond the bound, a request is not noted. */
  add(opened: AdmittedRequest): void {
    if (this.size >= this.#parts.maxOpen) this.#parts.counts.requestsNotNoted += 1;
    else this.#fresh.set(opened.counter, opened);
  }

  /** The request was running at that moment, as this process or another one heard. */
  renew(counter: number, heardAtMs: number): void {
    const note = this.#noted.get(counter);
    if (note !== undefined) note.expiresAtMs = Math.max(note.expiresAtMs, heardAtMs + this.#parts.reservationTtlMs);
  }

  /** The request is over, and is booked or was cancelled. */
  ended(counter: number): void {
    if (this.#fresh.delete(counter)) return;
    const note = this.#noted.get(counter);
    if (note === undefined) return;
    this.#noted.delete(counter);
    note.open -= 1;
    if (note.open === 0) this.#forget(note);
  }

  /**
   * Sends the notes that are due. Never rejects: what the store did not take is sent again.
   * @param heardAtMs renewals before it that other processes heard are known here
   */
  tick(heardAtMs: number): Promise<void> {
    const now = this.#parts.monotonicMs();
    if (now - this.#flushedAtMs < FLUSH_MS) return this.#flushing ?? Promise.resolve();
    this.#flushedAtMs = now;
    for (const note of this.#notes) if (note.expiresAtMs <= heardAtMs) this.#forget(note);
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  #forget(note: Note): void {
    for (const counter of note.counters) this.#noted.delete(counter);
    this.#notes.delete(note);
    this.#over.push(note.number);
  }

  async #flush(): Promise<void> {
    for (let batch = 0; batch < MAX_BATCHES; batch++) {
      const words = this.#unanswered ?? this.#words();
      if (words === undefined) return;
      this.#unanswered = words;
      this.#parts.counts.statements += 1;
      try {
        await this.#parts.store.noteRequests(words);
      } catch {
        // The other statements of this process report that the store is away.
        return;
      }
      this.#unanswered = undefined;
    }
  }

  #words(): OpenRequestNote | undefined {
    if (this.#fresh.size === 0 && this.#over.length === 0) return undefined;
    const { processId, monotonicMs, reservationTtlMs } = this.#parts;
    const taken: AdmittedRequest[] = [];
    for (const opened of this.#fresh.values()) {
      if (taken.length >= BATCH) break;
      taken.push(opened);
    }
    const note: Note = {
      number: ++this.#lastNote,
      counters: taken.map(({ counter }) => counter),
      open: taken.length,
      expiresAtMs: monotonicMs() + reservationTtlMs,
    };
    for (const { counter } of taken) {
      this.#fresh.delete(counter);
      this.#noted.set(counter, note);
    }
    if (taken.length > 0) this.#notes.add(note);
    return { processId, note: note.number, requests: taken.map(requestOf), over: this.#over.splice(0, BATCH) };
  }
}

function requestOf({ minute, offset, counter, tenant, key, user, prompt }: AdmittedRequest): OpenRequest {
  const estimate = Math.min(prompt, MAX_PROMPT_TOKENS);
  return { counter, tenant, key, user, prompt: estimate, period: periodOf(minute, offset), day: dayOf(minute, offset) };
}
