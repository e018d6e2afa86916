/**
 * Traces in OpenTelemetry's format: spans of the work that a request waits for. A span belongs to the asynchronous
 * context of its request, so the store and the directories need not pass it on.
 *
 * This module is loaded only if traces are configured. Every caller has an optional `Tracing` and does nothing without
 * it.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { randomFillSync } from 'node:crypto';
import { BoundedQueue } from '../concurrency/bounded-queue.ts';
import { inTime } from '../concurrency/in-time.ts';
import { SingleFlight } from '../concurrency/single-flight.ts';
import { Fault, Refusal } from '../domain/errors.ts';
import { maskText } from './masking.ts';
import { OtlpExporter, type OtlpTarget } from './otlp/exporter.ts';
import { type Attributes, attributesOf, unixNano } from './otlp/value.ts';
import { readTraceparent } from './traceparent.ts';

/** Numbers of the specification. */
const SPAN_KIND = { internal: 1, server: 2, client: 3 } as const;
type SpanKind = keyof typeof SPAN_KIND;

export interface Span {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** Adds attributes. They must hold no secret, and text of a client only if it is bounded and masked. */
  set(attributes: Attributes): void;
  /**
   * Passes the span to the exporter. Must be called once. A span without an end is not exported. @param error the error
   * of failed work
   */
  end(error?: unknown): void;
}

export interface Tracing {
  /**
   * Starts the span of a request. Undefined if the request is not sampled.
   * @param traceparent the request's header, if it had exactly one
   */
  request(name: string, traceparent: string | undefined): Span | undefined;
  /** Runs work as part of a span. Spans that start in it, and in everything that it awaits, are its children. */
  within<T>(span: Span, work: () => T): T;
  /** Starts a child of the current span. Undefined outside of a span. */
  child(name: string, kind: SpanKind, attributes?: Attributes): Span | undefined;
  /** Runs work as a child of the current span. Outside of a span, only runs it. The span fails if the work fails. */
  traced<T>(
    name: string,
    kind: SpanKind,
    attributes: Attributes,
    work: (span: Span | undefined) => Promise<T>,
  ): Promise<T>;
  /** Spans that were not exported because the collector did not accept them or the buffer was full. */
  readonly dropped: number;
  /** Exports the waiting spans within two seconds, at shutdown. */
  close(): Promise<void>;
}

export interface TracingOptions {
  readonly target: OtlpTarget;
  /** `parent`: only requests with a sampled traceparent. `always`: also requests without a traceparent. */
  readonly sample: 'parent' | 'always';
  /** Called for the first lost batch after an exported one. */
  readonly onLost: (error: unknown) => void;
  readonly warn: (message: string) => void;
}

const MAX_WAITING = 4096;
const MAX_BATCH = 512;
const EXPORT_EVERY_MS = 1000;
const CLOSE_TIMEOUT_MS = 2000;
const ERROR_STATUS = 2;
const MAX_MESSAGE = 256;
const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;
/** Takes many ids from one call of the random source. */
const POOL_BYTES = 4096;

export function createTracing(options: TracingOptions): Tracing {
  const current = new AsyncLocalStorage<ExportedSpan>();
  const spans = new SpanExport(options);
  const ids = randomIds();

  function begin(
    name: string,
    kind: SpanKind,
    traceId: string,
    parent: string | undefined,
    attributes: Attributes,
  ): ExportedSpan {
    return new ExportedSpan({ name, kind, traceId, parent, spanId: ids(SPAN_ID_BYTES) }, attributes, (span) =>
      // The exporter's work is no part of a trace.
      current.exit(() => spans.add(span)),
    );
  }

  function child(name: string, kind: SpanKind, attributes: Attributes = {}): ExportedSpan | undefined {
    const parent = current.getStore();
    return parent && begin(name, kind, parent.traceId, parent.spanId, attributes);
  }

  return {
    request(name, traceparent) {
      const parent = readTraceparent(traceparent);
      if (parent !== undefined)
        return parent.sampled ? begin(name, 'server', parent.traceId, parent.spanId, {}) : undefined;
      return options.sample === 'always' ? begin(name, 'server', ids(TRACE_ID_BYTES), undefined, {}) : undefined;
    },
    within: (span, work) => (span instanceof ExportedSpan ? current.run(span, work) : work()),
    child,
    async traced(name, kind, attributes, work) {
      const span = child(name, kind, attributes);
      if (span === undefined) return work(undefined);
      try {
        const result = await current.run(span, () => work(span));
        span.end();
        return result;
      } catch (error) {
        span.end(error);
        throw error;
      }
    },
    get dropped() {
      return spans.dropped;
    },
    close: () => spans.close(),
  };
}

/** Sends finished spans to the collector, a batch at a time. */
class SpanExport {
  readonly #options: TracingOptions;
  readonly #exporter: OtlpExporter;
  readonly #waiting = new BoundedQueue<string>(MAX_WAITING);
  /** Never rejects. */
  readonly #sending = new SingleFlight(() => this.#sendAll());
  #timer: NodeJS.Timeout | undefined;
  #isLosing = false;
  dropped = 0;

  constructor(options: TracingOptions) {
    this.#options = options;
    this.#exporter = new OtlpExporter(options.target, 'v1/traces', options.warn);
  }

  add(span: string): void {
    if (!this.#waiting.push(span)) {
      this.dropped++;
      return;
    }
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#sending.run();
    }, EXPORT_EVERY_MS).unref();
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await inTime(this.#sending.run(), CLOSE_TIMEOUT_MS, () => undefined);
    this.#exporter.close();
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) await this.#sendBatch();
  }

  async #sendBatch(): Promise<void> {
    const { target, onLost } = this.#options;
    const batch = this.#waiting.take(MAX_BATCH);
    try {
      await this.#exporter.send(tracesRequest(target, batch));
      this.#isLosing = false;
    } catch (error) {
      this.dropped += batch.length;
      if (!this.#isLosing) onLost(error);
      this.#isLosing = true;
    }
  }
}

interface SpanIdentity {
  readonly name: string;
  readonly kind: SpanKind;
  readonly traceId: string;
  readonly spanId: string;
  readonly parent: string | undefined;
}

class ExportedSpan implements Span {
  readonly #identity: SpanIdentity;
  readonly #finished: (span: string) => void;
  readonly #startedAtMs = performance.timeOrigin + performance.now();
  #attributes: Attributes;

  constructor(identity: SpanIdentity, attributes: Attributes, finished: (span: string) => void) {
    this.#identity = identity;
    this.#attributes = attributes;
    this.#finished = finished;
  }

  get traceId(): string {
    return this.#identity.traceId;
  }

  get spanId(): string {
    return this.#identity.spanId;
  }

  set(attributes: Attributes): void {
    this.#attributes = { ...this.#attributes, ...attributes };
  }

  end(error?: unknown): void {
    const { traceId, spanId, parent, name, kind } = this.#identity;
    this.#finished(
      maskText(
        JSON.stringify({
          traceId,
          spanId,
          parentSpanId: parent,
          name,
          kind: SPAN_KIND[kind],
          startTimeUnixNano: unixNano(this.#startedAtMs),
          endTimeUnixNano: unixNano(performance.timeOrigin + performance.now()),
          attributes: attributesOf(this.#attributes),
          status: error === undefined ? {} : { code: ERROR_STATUS, message: messageOf(error) },
        }),
      ),
    );
  }
}

/**
 * Returns the message of this program's own errors. Returns only the type of other errors, whose messages may quote
 * values.
 */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return 'Error';
  return maskText(error instanceof Fault || error instanceof Refusal ? error.message : error.name).slice(
    0,
    MAX_MESSAGE,
  );
}

function tracesRequest({ resource }: OtlpTarget, spans: readonly string[]): string {
  const scope = JSON.stringify({ name: 'postern' });
  return `{"resourceSpans":[{"resource":{"attributes":${JSON.stringify(resource)}},"scopeSpans":[{"scope":${scope},"spans":[${spans.join(',')}]}]}]}`;
}

/** Returns a source of ids: hexadecimal digits of the requested number of random bytes, never all zeros. */
function randomIds(): (bytes: number) => string {
  const pool = Buffer.alloc(POOL_BYTES);
  let at = POOL_BYTES;
  const take = (bytes: number): string => {
    if (at + bytes > POOL_BYTES) {
      randomFillSync(pool);
      at = 0;
    }
    at += bytes;
    const id = pool.toString('hex', at - bytes, at);
    return /^0+$/.test(id) ? take(bytes) : id;
  };
  return take;
}
