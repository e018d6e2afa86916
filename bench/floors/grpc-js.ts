/**
 * The floor of grpc-js: an otherwise empty handler with raw buffers, which answers every Check with one fixed allow.
 * `node bench/floors/grpc-js.ts 127.0.0.1:9291 [bytes of the answer]`
 */

import { Server, ServerCredentials, type sendUnaryData } from '@grpc/grpc-js';
import { fixedAllow } from './answer.ts';

const identity = (bytes: Buffer): Buffer => bytes;
const answer = fixedAllow(Number(process.argv[3] ?? 2));

const server = new Server();
server.addService(
  {
    check: {
      path: '/envoy.service.auth.v3.Authorization/Check',
      requestStream: false,
      responseStream: false,
      requestSerialize: identity,
      requestDeserialize: identity,
      responseSerialize: identity,
      responseDeserialize: identity,
    },
  },
  { check: (_call: unknown, done: sendUnaryData<Buffer>) => done(null, answer) },
);
server.bindAsync(process.argv[2] ?? '127.0.0.1:9291', ServerCredentials.createInsecure(), (error) => {
  if (error) throw error;
  process.stdout.write('ready\n');
});
