/** The transports of the gRPC server: what one guarantees, the other does. */

import { startGrpc } from '../../../src/extauthz/grpc/server.ts';
import { startGrpcOnNode } from '../../../src/extauthz/grpc-node/server.ts';

export const TRANSPORTS = [
  { transport: 'built-in', startGrpc },
  { transport: 'http2', startGrpc: startGrpcOnNode },
] as const;
export type Transport = (typeof TRANSPORTS)[number];
