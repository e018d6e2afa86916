/**
 * The complete definition of Envoy's messages, by a complete Protocol Buffers library: what the server's own reader and
 * writer are held to.
 */

import { join } from 'node:path';
import { loadSync } from '@grpc/proto-loader';

const loaded = loadSync(['envoy/service/auth/v3/external_auth.proto', 'grpc/health/v1/health.proto'], {
  includeDirs: [join(import.meta.dirname, '../../../protos')],
  keepCase: true,
  longs: Number,
  enums: Number,
  defaults: true,
  oneofs: true,
});

interface Method {
  requestSerialize(value: object): Buffer;
  requestDeserialize(bytes: Buffer): object;
  responseDeserialize(bytes: Buffer): object;
}

function method(service: string, name: string): Method {
  const definition = loaded[service];
  const found = definition !== undefined && !('format' in definition) ? definition[name] : undefined;
  if (found === undefined) throw new Error(`no ${service}/${name} in protos/`);
  return found;
}

const check = method('envoy.service.auth.v3.Authorization', 'Check');

export interface HeaderValueMessage {
  readonly key?: string;
  readonly value?: string;
  readonly raw_value?: Uint8Array;
}

export interface HttpMessage {
  readonly id?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly header_map?: { readonly headers?: readonly HeaderValueMessage[] };
  readonly path?: string;
  readonly host?: string;
  readonly scheme?: string;
  readonly size?: number;
  readonly protocol?: string;
  readonly body?: string;
  readonly raw_body?: Uint8Array;
}

export interface CheckRequestMessage {
  readonly attributes?: {
    readonly source?: object;
    readonly destination?: object;
    readonly request?: { readonly time?: object; readonly http?: HttpMessage };
    readonly context_extensions?: Readonly<Record<string, string>>;
    readonly tls_session?: object;
  };
}

export function encodeRequest(message: CheckRequestMessage): Buffer {
  return check.requestSerialize(message);
}

export function decodeRequest(bytes: Buffer): CheckRequestMessage {
  return check.requestDeserialize(bytes);
}

export interface HeaderOptionMessage {
  readonly header: { readonly key: string; readonly value: string };
  readonly append: { readonly value: boolean } | null;
  readonly append_action: number;
}

interface Struct {
  readonly fields: Readonly<Record<string, { readonly stringValue?: string; readonly kind?: string }>>;
}

/** A CheckResponse, with absent messages as null. */
export interface CheckResponseMessage {
  readonly status: { readonly code: number } | null;
  readonly http_response?: 'denied_response' | 'ok_response';
  readonly denied_response?: {
    readonly status: { readonly code: number } | null;
    readonly headers: readonly HeaderOptionMessage[];
    readonly body: string;
  } | null;
  readonly ok_response?: {
    readonly headers: readonly HeaderOptionMessage[];
    readonly headers_to_remove: readonly string[];
    readonly response_headers_to_add: readonly HeaderOptionMessage[];
  } | null;
  readonly dynamic_metadata: Struct | null;
}

export function decodeResponse(bytes: Buffer): CheckResponseMessage {
  // The library gives the shape of the definition, which it cannot know the type of.
  return check.responseDeserialize(bytes) as CheckResponseMessage;
}

/** An answer in the words of a test. */
export interface Answer {
  /** Envoy allows exactly when this is 0. */
  readonly code: number;
  readonly kind: 'ok' | 'denied' | 'none';
  /** HTTP status of a denial. */
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly options: readonly HeaderOptionMessage[];
  readonly removed: readonly string[];
  /** Headers that the client gets with the upstream's answer. */
  readonly added: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
  readonly bodyText: string;
  readonly metadata: Readonly<Record<string, string | undefined>>;
}

export function readAnswer(bytes: Buffer): Answer {
  const message = decodeResponse(bytes);
  const { denied_response: denied, ok_response: ok } = message;
  const options = denied?.headers ?? ok?.headers ?? [];
  const text = denied?.body ?? '';
  return {
    code: message.status?.code ?? 0,
    kind: denied != null ? 'denied' : ok != null ? 'ok' : 'none',
    status: denied?.status?.code,
    options,
    headers: Object.fromEntries(options.map(({ header }) => [header.key, header.value])),
    removed: ok?.headers_to_remove ?? [],
    added: Object.fromEntries((ok?.response_headers_to_add ?? []).map(({ header }) => [header.key, header.value])),
    bodyText: text,
    body: text === '' ? {} : JSON.parse(text),
    metadata: Object.fromEntries(
      Object.entries(message.dynamic_metadata?.fields ?? {}).map(([name, value]) => [name, value.stringValue]),
    ),
  };
}
