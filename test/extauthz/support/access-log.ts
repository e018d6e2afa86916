/** Messages of Envoy's access log, made with the complete definition. */

import { join } from 'node:path';
import { loadSync } from '@grpc/proto-loader';
import { USAGE_NAMESPACE } from '../../../src/extauthz/access-log/metadata.ts';

const loaded = loadSync(['envoy/service/accesslog/v3/als.proto', 'envoy/data/ai/v3/token_usage.proto'], {
  includeDirs: [join(import.meta.dirname, '../../../protos')],
  keepCase: true,
  longs: Number,
});
const service = loaded['envoy.service.accesslog.v3.AccessLogService'];
if (service === undefined || 'format' in service) throw new Error('no AccessLogService in protos/');
const encode = (message: object): Buffer => {
  const method = service['StreamAccessLogs'];
  if (method === undefined) throw new Error('no StreamAccessLogs in protos/');
  return method.requestSerialize(message);
};

/** The bytes of a message of Envoy's own counter. */
export function tokenUsage(message: object): Buffer {
  const type = loaded['envoy.data.ai.v3.TokenUsage'];
  if (!(type !== undefined && 'serialize' in type && typeof type.serialize === 'function'))
    throw new Error('no TokenUsage in protos/');
  return type.serialize(message);
}

export type Value = string | number | boolean | null;
const struct = (members: Readonly<Record<string, Value>>) => ({
  fields: Object.fromEntries(Object.entries(members).map(([name, value]) => [name, protoValue(value)])),
});
function protoValue(value: Value): object {
  switch (typeof value) {
    case 'string':
      return { stringValue: value };
    case 'number':
      return { numberValue: value };
    case 'boolean':
      return { boolValue: value };
    default:
      return { nullValue: 0 };
  }
}

export interface Told {
  readonly decision?: Readonly<Record<string, Value>>;
  readonly usage?: Readonly<Record<string, Value>>;
  readonly others?: Readonly<Record<string, Readonly<Record<string, Value>>>>;
  /** Typed metadata: the bytes of a message of any type, by their namespace. */
  readonly typed?: Readonly<Record<string, Buffer>>;
  readonly status?: number;
  readonly responseBytes?: number;
  /** Envoy's `x-request-id`. */
  readonly requestId?: string;
  /** `response_code_details`. */
  readonly details?: string;
  /** Nanoseconds to the first byte that went to the upstream; default: none went. */
  readonly forwardedNanos?: number;
  readonly type?: number;
  readonly intermediate?: boolean;
}

function entry(told: Told): object {
  const namespaces = Object.entries({
    ...told.others,
    ...(told.decision === undefined ? {} : { 'envoy.filters.http.ext_authz': told.decision }),
    ...(told.usage === undefined ? {} : { [USAGE_NAMESPACE]: told.usage }),
  });
  return {
    common_properties: {
      stream_id: 'a stream',
      upstream_cluster: 'upstream',
      start_time: { seconds: 1_800_000_000, nanos: 5 },
      metadata: {
        filter_metadata: Object.fromEntries(namespaces.map(([name, members]) => [name, struct(members)])),
        typed_filter_metadata: Object.fromEntries(
          Object.entries(told.typed ?? {}).map(([name, value]) => [name, { type_url: 'type.googleapis.com/x', value }]),
        ),
      },
      ...(told.forwardedNanos === undefined ? {} : { time_to_first_upstream_tx_byte: { nanos: told.forwardedNanos } }),
      access_log_type: told.type ?? 6,
      intermediate_log_entry: told.intermediate ?? false,
    },
    request: {
      path: '/v1/chat/completions',
      request_body_bytes: 77,
      request_headers: { a: 'b' },
      ...(told.requestId === undefined ? {} : { request_id: told.requestId }),
    },
    response: {
      ...(told.status === undefined ? {} : { response_code: { value: told.status } }),
      response_body_bytes: told.responseBytes ?? 0,
      response_code_details: told.details ?? '',
    },
  };
}

/** The first message of a log of that name. */
export const namedLog = (name: string, ...told: Told[]): Buffer =>
  encode({ identifier: { node: { id: 'edge' }, log_name: name }, http_logs: { log_entry: told.map(entry) } });
export const accessLog = (...told: Told[]): Buffer => namedLog('usage', ...told);

const varint = (value: number): Buffer =>
  value < 128
    ? Buffer.from([value])
    : Buffer.concat([Buffer.from([(value % 128) | 128]), varint(Math.floor(value / 128))]);
const field = (tag: number, bytes: Buffer): Buffer => Buffer.concat([Buffer.from([tag]), varint(bytes.length), bytes]);

/** One entry's bytes, without its tag and length. */
export function entryBytes(told: Told): Buffer {
  const message = encode({ http_logs: { log_entry: [entry(told)] } });
  let at = 0;
  for (let level = 0; level < 2; level++) {
    at += 1;
    while ((message[at] ?? 0) >= 128) at += 1;
    at += 1;
  }
  return message.subarray(at);
}

/** A message of entries that may be anything, each in its own length. */
export const messageOf = (entries: readonly Buffer[]): Buffer =>
  field(0x12, Buffer.concat(entries.map((bytes) => field(0x0a, bytes))));

/** The same bytes with `found`, which must be there, replaced by as many others. */
export function replaced(bytes: Buffer, found: string, by: readonly number[]): Buffer {
  const at = bytes.indexOf(found);
  if (at < 0 || by.length !== found.length) throw new Error(`${found} cannot be replaced`);
  const changed = Buffer.from(bytes);
  changed.set(by, at);
  return changed;
}

export const RESERVATION = 'ab'.repeat(16);
