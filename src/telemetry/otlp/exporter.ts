/**
 * Sends batches to an OpenTelemetry collector: OTLP over HTTP with JSON (OpenTelemetry Protocol 1.5, "OTLP/HTTP"). The
 * exporter retries a batch up to four times within about 8 s. Then the batch is lost, and its sender counts it.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { OtlpAttribute } from './value.ts';

export interface OtlpTarget {
  /** The base URL, such as `http://127.0.0.1:4318`. The signal's path is appended. */
  readonly endpoint: string;
  /** Headers of each request, such as `authorization`. */
  readonly headers: Readonly<Record<string, string>>;
  /** The attributes of the sender, such as `service.name`. */
  readonly resource: readonly OtlpAttribute[];
}

const REQUEST_TIMEOUT_MS = 5_000;
const RETRY_DELAYS_MS = [500, 1_000, 2_000, 4_000];
const MAX_RETRY_AFTER_MS = 8_000;
/** The beginning of an answer that is read. A collector sends at most some hundred bytes. */
const MAX_ANSWER_BYTES = 65_536;
/** The retryable statuses of the protocol. */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);

type Outcome =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'again'; readonly why: string; readonly afterMs: number | undefined }
  | { readonly kind: 'rejected'; readonly why: string };

export class OtlpExporter {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #warn: (message: string) => void;
  readonly #closing = new AbortController();

  /**
   * @param path the signal's path, such as `v1/logs`
   * @param warn called when a collector accepts a batch and rejects a part of it
   */
  constructor({ endpoint, headers }: OtlpTarget, path: string, warn: (message: string) => void) {
    this.#url = `${endpoint.replace(/\/+$/, '')}/${path}`;
    this.#headers = { ...headers, 'content-type': 'application/json' };
    this.#warn = warn;
  }

  /** Resolves when the collector has accepted the request. Rejects with the reason if the batch is lost. */
  async send(body: string): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      const outcome = await this.#post(body);
      if (outcome.kind === 'accepted') return;
      const delayMs = RETRY_DELAYS_MS[attempt];
      if (outcome.kind === 'rejected' || delayMs === undefined || this.#closing.signal.aborted) {
        throw new Error(`the collector at ${this.#url} did not accept a batch: ${outcome.why}`);
      }
      await sleep(outcome.afterMs ?? delayMs, undefined, { signal: this.#closing.signal, ref: false }).catch(
        () => undefined,
      );
    }
  }

  /** Ends waits and requests in progress. Batches that were not accepted are lost. */
  close(): void {
    this.#closing.abort();
  }

  async #post(body: string): Promise<Outcome> {
    try {
      const answer = await fetch(this.#url, {
        method: 'POST',
        headers: this.#headers,
        body,
        redirect: 'error',
        signal: AbortSignal.any([this.#closing.signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)]),
      });
      const text = await beginningOf(answer);
      if (answer.ok) {
        this.#reportPartial(text);
        return { kind: 'accepted' };
      }
      const why = `status ${answer.status}`;
      if (!RETRYABLE.has(answer.status)) return { kind: 'rejected', why };
      return { kind: 'again', why, afterMs: retryAfterMs(answer.headers.get('retry-after')) };
    } catch (error) {
      if (isInvalidRequest(error)) return { kind: 'rejected', why: 'a header of otlp.headers is not valid' };
      return { kind: 'again', why: reasonOf(error), afterMs: undefined };
    }
  }

  /** A collector may accept a request and reject some records. `partialSuccess` then has their number. */
  #reportPartial(text: string): void {
    const [, rejected = '0'] = /"rejected(?:LogRecords|Spans)"\s*:\s*"?(\d{1,15})/.exec(text) ?? [];
    if (Number(rejected) > 0) this.#warn(`the collector at ${this.#url} rejected ${rejected} records of a batch`);
  }
}

/** Reads an answer up to its bound, and ends the request there. */
async function beginningOf({ body }: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body ?? []) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes >= MAX_ANSWER_BYTES) break;
  }
  return Buffer.concat(pieces).toString();
}

function retryAfterMs(header: string | null): number | undefined {
  return header !== null && /^\d{1,6}$/.test(header) ? Math.min(Number(header) * 1000, MAX_RETRY_AFTER_MS) : undefined;
}

/** The cause has the address and the system's error. The error of fetch has neither. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message || error.cause.name : error.message;
}

/** Reports whether fetch did not send a request, because a header is no header. Its message quotes the header. */
function isInvalidRequest(error: unknown): boolean {
  return error instanceof TypeError && error.cause === undefined;
}
