/** The floor: an otherwise empty grpc-js handler with raw buffers, answering every Check with one fixed allow. `node bench/floor.ts 127.0.0.1:9291` */

import { Server, ServerCredentials, type sendUnaryData } from '@grpc/grpc-js';

const identity = (bytes: Buffer): Buffer => bytes;
/** A CheckResponse whose status is an empty google.rpc.Status: code 0. */
const answer = Buffer.from([0x0a, 0x00]);

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
