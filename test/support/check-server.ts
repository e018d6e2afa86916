/**
 * A stand-in for Postern's gRPC side: remembers every Check and log entry as Envoy sent it and answers as the test
 * says.
 */

import {
  Server,
  ServerCredentials,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServiceDefinition,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { message, messages, readFields, text, writeFields } from './protobuf.ts';

export interface SeenCheck {
  readonly method: string;
  readonly path: string;
  /** Every header in the order sent; repeated ones apart. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Uint8Array;
  /** The time that `grpc-timeout` gives the call, milliseconds; undefined without that header. */
  readonly timeoutMs: number | undefined;
}

/** The parts of an entry of the HTTP access log that tests need. */
export interface SeenLogEntry {
  /** AccessLogType by its number. */
  readonly type: number;
  readonly intermediate: boolean;
  /** The answer's status; 0 before there is one. */
  readonly status: number;
  /** The strings in the metadata of ext_authz. */
  readonly metadata: Readonly<Record<string, string>>;
}

export type CheckAnswer =
  | {
      readonly kind: 'allow';
      readonly set?: Readonly<Record<string, string>>;
      readonly remove?: readonly string[];
      /** Dynamic metadata. */
      readonly metadata?: Readonly<Record<string, string>>;
    }
  | {
      readonly kind: 'deny';
      readonly status: number;
      readonly body?: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** The call itself fails. */
  | { readonly kind: 'fail' }
  /** No answer. */
  | { readonly kind: 'silent' };

export interface CheckServer {
  readonly address: string;
  readonly seen: SeenCheck[];
  /** In the order sent. */
  readonly logged: SeenLogEntry[];
  /** The answer from now on. */
  answer: (check: SeenCheck) => CheckAnswer;
  /** Resolves with the next Check that arrives. */
  next(): Promise<SeenCheck>;
  close(): void;
}

const bytes = (value: Uint8Array): Buffer => Buffer.from(value);
const same = (value: Buffer): Buffer => value;

function method(path: string): ServiceDefinition[string] {
  return {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  };
}

const SERVING = bytes(writeFields([[1, 1]]));

export async function startCheckServer(
  answer: CheckServer['answer'] = () => ({ kind: 'allow' }),
  credentials: ServerCredentials = ServerCredentials.createInsecure(),
): Promise<CheckServer> {
  const grpc = new Server({ 'grpc.max_receive_message_length': 16 * 1024 * 1024 });
  const waiting: ((check: SeenCheck) => void)[] = [];
  const seen: SeenCheck[] = [];
  const logged: SeenLogEntry[] = [];
  const port = await new Promise<number>((resolve, reject) => {
    grpc.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error === null ? resolve(bound) : reject(error)));
  });
  const server: CheckServer = {
    address: `127.0.0.1:${port}`,
    seen,
    logged,
    answer,
    next: () => new Promise((resolve) => void waiting.push(resolve)),
    close: () => grpc.forceShutdown(),
  };
  grpc.addService(
    { Check: method('/envoy.service.auth.v3.Authorization/Check') },
    {
      Check(call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) {
        const check = readCheck(call.request, call.getDeadline());
        seen.push(check);
        for (const resolve of waiting.splice(0)) resolve(check);
        const decided = server.answer(check);
        switch (decided.kind) {
          case 'allow':
            return reply(null, writeAllow(decided));
          case 'deny':
            return reply(null, writeDeny(decided.status, decided.body ?? '', decided.headers ?? {}));
          case 'fail':
            return reply({ code: status.INTERNAL, details: 'failed' });
          case 'silent':
            return undefined;
          default:
            return decided satisfies never;
        }
      },
    },
  );
  grpc.addService(
    { Check: method('/grpc.health.v1.Health/Check') },
    { Check: (_call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) => reply(null, SERVING) },
  );
  grpc.addService(
    {
      StreamAccessLogs: {
        ...method('/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs'),
        requestStream: true,
      },
    },
    {
      StreamAccessLogs(call: ServerReadableStream<Buffer, Buffer>, reply: sendUnaryData<Buffer>) {
        call.on('data', (batch: Buffer) => logged.push(...messages(message(batch, 2), 1).map(readLogEntry)));
        call.on('error', () => undefined);
        call.on('end', () => reply(null, Buffer.alloc(0)));
      },
    },
  );
  return server;
}

/**
 * HTTPAccessLogEntry: common_properties = 1 (metadata = 17, intermediate_log_entry = 27, access_log_type = 33),
 * response = 4 (response_code = 1).
 */
function readLogEntry(entry: Uint8Array): SeenLogEntry {
  const common = message(entry, 1);
  const namespaces = messages(message(common, 17), 1);
  const decision =
    namespaces.find((namespace) => text(message(namespace, 1)) === 'envoy.filters.http.ext_authz') ?? new Uint8Array();
  // Struct.fields = 1: key = 1, Value.string_value = 3.
  const members = messages(message(decision, 2), 1).map(
    (member) => [text(message(member, 1)), text(message(member, 2, 3))] as const,
  );
  return {
    type: numberAt(common, 33),
    intermediate: numberAt(common, 27) !== 0,
    status: numberAt(message(entry, 4, 1), 1),
    metadata: Object.fromEntries(members),
  };
}

function numberAt(bytes: Uint8Array, number: number): number {
  const value = readFields(bytes).find((field) => field.number === number)?.value;
  return typeof value === 'number' ? value : 0;
}

/** CheckRequest.attributes(1).request(4).http(2). */
function readCheck(request: Uint8Array, deadline: Date | number): SeenCheck {
  const http = message(request, 1, 4, 2);
  // `headers` (3) is a map, key 1 and value 2; `header_map` (13) holds HeaderValue messages, key 1 and raw_value 3.
  const mapped = messages(http, 3).map((entry) => [text(message(entry, 1)), text(message(entry, 2))] as const);
  const raw = messages(message(http, 13), 1).map(
    (entry) => [text(message(entry, 1)), text(message(entry, 3))] as const,
  );
  return {
    method: text(message(http, 2)),
    path: text(message(http, 4)),
    headers: [...mapped, ...raw],
    body: Buffer.concat([...messages(http, 11), ...messages(http, 12)]),
    timeoutMs: Number.isFinite(Number(deadline)) ? Number(deadline) - Date.now() : undefined,
  };
}

/** HeaderValueOption with `append_action` OVERWRITE_IF_EXISTS_OR_ADD. */
function headerOptions(number: number, headers: Readonly<Record<string, string>>): (readonly [number, Uint8Array])[] {
  return Object.entries(headers).map(([key, value]) => [
    number,
    writeFields([
      [
        1,
        writeFields([
          [1, key],
          [2, value],
        ]),
      ],
      [3, 2],
    ]),
  ]);
}

function writeAllow({ set = {}, remove = [], metadata = {} }: CheckAnswer & { kind: 'allow' }): Buffer {
  const ok = writeFields([...headerOptions(2, set), ...remove.map((name) => [5, name] as const)]);
  const members = Object.entries(metadata).map(([name, value]) =>
    writeFields([
      [1, name],
      [2, writeFields([[3, value]])],
    ]),
  );
  return bytes(
    writeFields([
      [1, new Uint8Array()],
      [3, ok],
      [4, writeFields(members.map((member) => [1, member] as const))],
    ]),
  );
}

function writeDeny(httpStatus: number, body: string, headers: Readonly<Record<string, string>>): Buffer {
  const denied = writeFields([[1, writeFields([[1, httpStatus]])], ...headerOptions(2, headers), [3, body]]);
  return bytes(
    writeFields([
      [1, writeFields([[1, 7]])],
      [2, denied],
    ]),
  );
}

/** How often a header came, and with what. */
export function valuesOf(check: SeenCheck, name: string): string[] {
  return check.headers.filter(([key]) => key === name).map(([, value]) => value);
}
