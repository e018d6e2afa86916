/** `grpc.health.v1.Health`: SERVING only while this server can decide. https://grpc.io/docs/guides/health-checking/ */

import type { GrpcMethods, OpenCall } from './grpc/methods.ts';
import { failure } from './grpc/status.ts';
import { isReadable, lastField, readText, requireUtf8 } from './wire-read.ts';

/** The names of the services; the empty name is the server. */
const SERVICES: ReadonlySet<string> = new Set(['', 'envoy.service.auth.v3.Authorization']);
const MAX_WATCHERS = 1024;
/** Far more than the length of a service's name. */
const MAX_REQUEST_BYTES = 4096;

/** HealthCheckResponse.status = 1 */
const SERVING = Buffer.from([0x08, 1]);
const NOT_SERVING = Buffer.from([0x08, 2]);
const SERVICE_UNKNOWN = Buffer.from([0x08, 3]);

const NO_REQUEST = failure('invalidArgument', 'not a HealthCheckRequest');
const UNKNOWN_SERVICE = failure('notFound', 'unknown service');
const TOO_MANY = failure('resourceExhausted', 'too many watchers');

export interface Health {
  readonly methods: GrpcMethods;
  setServing(serving: boolean): void;
  /** Ends every watch, so that its connection can close. */
  endWatches(): void;
}

/** Creates the service, which begins as NOT_SERVING. */
export function createHealth(): Health {
  let state = NOT_SERVING;
  /** The open watches, and whether each watches a known service. */
  const watches = new Map<OpenCall, boolean>();
  return {
    methods: {
      '/grpc.health.v1.Health/Check': {
        kind: 'unary',
        maxMessageBytes: MAX_REQUEST_BYTES,
        answer(message) {
          const service = readService(message);
          if (service === undefined) return NO_REQUEST;
          return SERVICES.has(service) ? state : UNKNOWN_SERVICE;
        },
      },
      '/grpc.health.v1.Health/Watch': {
        kind: 'server-stream',
        maxMessageBytes: MAX_REQUEST_BYTES,
        open(message, call) {
          const service = readService(message);
          if (service === undefined) return NO_REQUEST;
          if (watches.size >= MAX_WATCHERS) return TOO_MANY;
          const known = SERVICES.has(service);
          watches.set(call, known);
          call.onEnd(() => watches.delete(call));
          call.send(known ? state : SERVICE_UNKNOWN);
          return undefined;
        },
      },
    },
    setServing(serving) {
      const next = serving ? SERVING : NOT_SERVING;
      if (next === state) return;
      state = next;
      for (const [call, known] of watches) if (known) call.send(state);
    },
    endWatches() {
      for (const call of watches.keys()) call.end();
      watches.clear();
    },
  };
}

/** HealthCheckRequest.service = 1; undefined if the bytes are no such message. */
function readService(bytes: Buffer): string | undefined {
  let service: string | undefined;
  isReadable(() => {
    const field = lastField({ bytes, at: 0 }, bytes.length, 0x0a);
    if (field !== undefined) requireUtf8(bytes, field.start, field.end);
    service = field === undefined ? '' : readText(bytes, field.start, field.end);
  });
  return service;
}
