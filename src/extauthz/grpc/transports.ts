/** The transports of the gRPC server, by the names that the configuration uses. */

import { type GrpcTransport, type StartGrpc, startGrpc } from './server.ts';

/** Returns what starts a server on the transport; modules of one that is not in use are not loaded. */
export async function loadTransport(transport: GrpcTransport): Promise<StartGrpc> {
  switch (transport) {
    case 'built-in':
      return startGrpc;
    case 'http2':
      return (await import('../grpc-node/server.ts')).startGrpcOnNode;
    default:
      return transport satisfies never;
  }
}
