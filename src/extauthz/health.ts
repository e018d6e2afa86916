/** `grpc.health.v1.Health`, truthful: serving only while this server is ready to decide. https://grpc.io/docs/guides/health-checking/ */

import {
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type sendUnaryData,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { rawMethod } from './raw-method.ts';
import { MALFORMED, readLength, readTag, readText, requireUtf8, skipField } from './wire-read.ts';

/** The services that answer by name; the empty name stands for the server. */
const SERVICES: ReadonlySet<string> = new Set(['', 'envoy.service.auth.v3.Authorization']);
const MAX_WATCHERS = 1024;

/** HealthCheckResponse.status = 1 */
const SERVING = Buffer.from([0x08, 1]);
const NOT_SERVING = Buffer.from([0x08, 2]);
const SERVICE_UNKNOWN = Buffer.from([0x08, 3]);

export const HEALTH: ServiceDefinition = {
  Check: rawMethod('/grpc.health.v1.Health/Check', false),
  Watch: rawMethod('/grpc.health.v1.Health/Watch', true),
};

export interface Health {
  readonly implementation: UntypedServiceImplementation;
  setServing(serving: boolean): void;
  /** Ends every watch, so that connections can close. */
  endWatches(): void;
}

type Watch = ServerWritableStream<Buffer, Buffer>;

/** Begins as not serving. */
export function createHealth(): Health {
  let state = NOT_SERVING;
  const watches = new Set<Watch>();
  return {
    implementation: {
      Check(call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>): void {
        const service = readService(call.request);
        if (service === undefined) done({ code: status.INVALID_ARGUMENT, details: 'not a HealthCheckRequest' });
        else if (SERVICES.has(service)) done(null, state);
        else done({ code: status.NOT_FOUND, details: 'unknown service' });
      },
      Watch(call: Watch): void {
        const service = readService(call.request);
        if (service === undefined || watches.size >= MAX_WATCHERS) {
          call.emit('error', {
            code: service === undefined ? status.INVALID_ARGUMENT : status.RESOURCE_EXHAUSTED,
            details: 'no watch',
          });
          return;
        }
        watches.add(call);
        call.once('cancelled', () => watches.delete(call));
        call.once('close', () => watches.delete(call));
        call.write(SERVICES.has(service) ? state : SERVICE_UNKNOWN);
      },
    },
    setServing(serving) {
      const next = serving ? SERVING : NOT_SERVING;
      if (next === state) return;
      state = next;
      for (const watch of watches) if (SERVICES.has(readService(watch.request) ?? '')) watch.write(state);
    },
    endWatches() {
      for (const watch of watches) watch.end();
      watches.clear();
    },
  };
}

/** HealthCheckRequest.service = 1; undefined when the bytes are no such message. */
function readService(bytes: Buffer): string | undefined {
  const cursor = { bytes, at: 0 };
  let service = '';
  try {
    while (cursor.at < bytes.length) {
      const tag = readTag(cursor, bytes.length);
      if (tag !== 0x0a) {
        skipField(cursor, tag, bytes.length);
        continue;
      }
      const end = readLength(cursor, bytes.length);
      requireUtf8(bytes, cursor.at, end);
      service = readText(bytes, cursor.at, end);
      cursor.at = end;
    }
    return service;
  } catch (error) {
    if (error === MALFORMED) return undefined;
    throw error;
  }
}
