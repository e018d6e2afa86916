/** gRPC methods whose messages stay bytes: the library's own objects cost a third of the throughput. */

import type { MethodDefinition } from '@grpc/grpc-js';

const asIs = (bytes: Buffer): Buffer => bytes;

/** @param path `/package.Service/Method` */
export function rawMethod(path: string, responseStream: boolean): MethodDefinition<Buffer, Buffer> {
  return {
    path,
    requestStream: false,
    responseStream,
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
}
