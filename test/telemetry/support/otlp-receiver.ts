/** The client side of an OpenTelemetry collector: OTLP over HTTP with JSON, on loopback. */

import { createServer, type IncomingHttpHeaders } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Type } from 'typebox';
import { Value } from 'typebox/value';

const OtlpValue = Type.Object({
  stringValue: Type.Optional(Type.String()),
  intValue: Type.Optional(Type.String({ pattern: '^-?\\d+$' })),
  doubleValue: Type.Optional(Type.Number()),
  boolValue: Type.Optional(Type.Boolean()),
  arrayValue: Type.Optional(Type.Object({ values: Type.Array(Type.Object({ stringValue: Type.String() })) })),
});
const Attributes = Type.Array(Type.Object({ key: Type.String(), value: OtlpValue }));
const NANOS = Type.String({ pattern: '^\\d{13,20}$' });
const TRACE_ID = Type.String({ pattern: '^[0-9a-f]{32}$' });
const SPAN_ID = Type.String({ pattern: '^[0-9a-f]{16}$' });

const Logs = Type.Object({
  resourceLogs: Type.Array(
    Type.Object({
      resource: Type.Object({ attributes: Attributes }),
      scopeLogs: Type.Array(
        Type.Object({
          scope: Type.Object({ name: Type.String() }),
          logRecords: Type.Array(
            Type.Object({
              timeUnixNano: NANOS,
              observedTimeUnixNano: NANOS,
              severityNumber: Type.Integer({ minimum: 1, maximum: 24 }),
              severityText: Type.String(),
              eventName: Type.String(),
              body: OtlpValue,
              attributes: Attributes,
              traceId: Type.Optional(TRACE_ID),
            }),
          ),
        }),
      ),
    }),
  ),
});

const Traces = Type.Object({
  resourceSpans: Type.Array(
    Type.Object({
      resource: Type.Object({ attributes: Attributes }),
      scopeSpans: Type.Array(
        Type.Object({
          scope: Type.Object({ name: Type.String() }),
          spans: Type.Array(
            Type.Object({
              traceId: TRACE_ID,
              spanId: SPAN_ID,
              parentSpanId: Type.Optional(SPAN_ID),
              name: Type.String(),
              kind: Type.Integer({ minimum: 1, maximum: 5 }),
              startTimeUnixNano: NANOS,
              endTimeUnixNano: NANOS,
              attributes: Attributes,
              status: Type.Object({ code: Type.Optional(Type.Integer()), message: Type.Optional(Type.String()) }),
            }),
          ),
        }),
      ),
    }),
  ),
});

type Known = string | number | boolean | readonly string[] | undefined;

export interface ReceivedRecord {
  readonly severity: string;
  readonly timeUnixNano: string;
  readonly traceId: string | undefined;
  readonly resource: Readonly<Record<string, Known>>;
  readonly attributes: Readonly<Record<string, Known>>;
}

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parent: string | undefined;
  readonly name: string;
  readonly kind: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, Known>>;
  readonly failed: boolean;
}

export interface OtlpReceiver {
  readonly endpoint: string;
  readonly requests: readonly { readonly path: string; readonly headers: IncomingHttpHeaders; readonly text: string }[];
  readonly records: readonly ReceivedRecord[];
  readonly spans: readonly ReceivedSpan[];
  /** Answers of the next requests, in place of 200: a status, and a delay before it. */
  readonly next: { readonly status: number; readonly body?: string; readonly afterMs?: number }[];
  close(): Promise<void>;
}

/** Throws for a request that the protocol does not describe. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const requests: { path: string; headers: IncomingHttpHeaders; text: string }[] = [];
  const records: ReceivedRecord[] = [];
  const spans: ReceivedSpan[] = [];
  const next: { status: number; body?: string; afterMs?: number }[] = [];
  const take = (path: string, body: unknown): void => {
    if (path === '/v1/logs') records.push(...recordsOf(Value.Parse(Logs, body)));
    else if (path === '/v1/traces') spans.push(...spansOf(Value.Parse(Traces, body)));
    else throw new Error(`no signal is at ${path}`);
  };
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece);
    const text = Buffer.concat(pieces).toString();
    const path = request.url ?? '';
    requests.push({ path, headers: request.headers, text });
    const answer = next.shift() ?? { status: 200 };
    if (answer.afterMs !== undefined) await sleep(answer.afterMs, undefined, { ref: false });
    if (answer.status === 200) {
      try {
        take(path, JSON.parse(text));
      } catch (error) {
        response.writeHead(400).end(String(error));
        return;
      }
    }
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body ?? '{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the receiver has no port');
  return {
    endpoint: `http://127.0.0.1:${address.port}`,
    requests,
    records,
    spans,
    next,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function recordsOf({ resourceLogs }: Type.Static<typeof Logs>): readonly ReceivedRecord[] {
  return resourceLogs.flatMap(({ resource, scopeLogs }) =>
    scopeLogs.flatMap(({ logRecords }) =>
      logRecords.map(({ severityText: severity, timeUnixNano, traceId, attributes }) => ({
        severity,
        timeUnixNano,
        traceId,
        resource: valuesOf(resource.attributes),
        attributes: valuesOf(attributes),
      })),
    ),
  );
}

function spansOf({ resourceSpans }: Type.Static<typeof Traces>): readonly ReceivedSpan[] {
  return resourceSpans.flatMap(({ scopeSpans }) =>
    scopeSpans.flatMap((scope) =>
      scope.spans.map(
        ({ traceId, spanId, parentSpanId, name, kind, startTimeUnixNano, endTimeUnixNano, attributes, status }) => ({
          traceId,
          spanId,
          parent: parentSpanId,
          name,
          kind,
          startMs: Number(startTimeUnixNano) / 1e6,
          endMs: Number(endTimeUnixNano) / 1e6,
          attributes: valuesOf(attributes),
          failed: status.code === 2,
        }),
      ),
    ),
  );
}

function valuesOf(attributes: Type.Static<typeof Attributes>): Readonly<Record<string, Known>> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ??
        value.boolValue ??
        value.doubleValue ??
        (value.intValue === undefined
          ? value.arrayValue?.values.map(({ stringValue }) => stringValue)
          : Number(value.intValue)),
    ]),
  );
}
