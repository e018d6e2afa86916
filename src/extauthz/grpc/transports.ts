/** The transports of the gRPC server, by the names that the configuration uses. */

import { type GrpcTransport, type StartGrpc, startGrpc } from './server.ts';

/** Loads the transport's modules, and returns the function that starts a server. */
export async function loadTransport(transport: GrpcTransport): Promise<StartGrpc> {
  switch (transport) {
    case 'built-in':
      return startGrpc;
    case 'grpc-js':
      return (await import('../grpc-js/server.ts')).startGrpcOnGrpcJs;
    default:
      return transport satisfies never;
  }
}
