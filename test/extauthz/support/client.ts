/** A client of the server under test, raw bytes in and out, as Envoy is one. */

import {
  type CallOptions,
  type ChannelCredentials,
  Client,
  type ClientReadableStream,
  credentials,
  type ServiceError,
} from '@grpc/grpc-js';

const asIs = (bytes: Buffer): Buffer => bytes;

export interface TestClient {
  check(request: Buffer): Promise<Buffer>;
  /** The status in the answer of `grpc.health.v1.Health/Check`; rejects with the call's error. */
  health(service: string | Buffer): Promise<number>;
  /** `Watch`: each status as it comes. */
  watch(service: string): ClientReadableStream<Buffer>;
  close(): void;
}

function serviceBytes(service: string | Buffer): Buffer {
  if (typeof service !== 'string') return service;
  return service === '' ? Buffer.alloc(0) : Buffer.concat([Buffer.of(0x0a, service.length), Buffer.from(service)]);
}

export function connectTo(
  address: string,
  channel: ChannelCredentials = credentials.createInsecure(),
  deadlineMs = 20_000,
): TestClient {
  const client = new Client(address, channel, {
    'grpc.ssl_target_name_override': 'localhost',
    // A connection of its own: clients in one process otherwise share one.
    'grpc.use_local_subchannel_pool': 1,
  });
  const options = (): CallOptions => ({ deadline: Date.now() + deadlineMs });
  const unary = (path: string, request: Buffer): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(path, asIs, asIs, request, options(), (error: ServiceError | null, answer?: Buffer) => {
        if (answer !== undefined) resolve(answer);
        else reject(error ?? new Error('no answer'));
      });
    });
  return {
    check: (request) => unary('/envoy.service.auth.v3.Authorization/Check', request),
    health: async (service) => statusOf(await unary('/grpc.health.v1.Health/Check', serviceBytes(service))),
    watch: (service) =>
      client.makeServerStreamRequest('/grpc.health.v1.Health/Watch', asIs, asIs, serviceBytes(service)),
    close: () => client.close(),
  };
}

/** HealthCheckResponse.status = 1 */
export function statusOf(answer: Buffer): number {
  return answer[0] === 0x08 ? (answer[1] ?? 0) : 0;
}
