/**
 * The floor of Postern's own transports: an otherwise empty method.
 * `node bench/floors/built-in.ts 127.0.0.1:9291 [bytes of the answer] [built-in|grpc-js]`
 */

import { boundsFor } from '../../src/extauthz/bounds.ts';
import { loadTransport } from '../../src/extauthz/grpc/transports.ts';
import { fixedAllow } from './answer.ts';

/** The most that `inspect.max-body` may be. */
const MAX_BODY_BYTES = 16_777_216;

const [host = '127.0.0.1', port = '9291'] = (process.argv[2] ?? '').split(':');
const answer = fixedAllow(Number(process.argv[3] ?? 2));
const startGrpc = await loadTransport(process.argv[4] === 'grpc-js' ? 'grpc-js' : 'built-in');
await startGrpc(
  { '/envoy.service.auth.v3.Authorization/Check': { kind: 'unary', answer: () => answer } },
  { host, port: Number(port) },
  undefined,
  { unfinished: boundsFor(MAX_BODY_BYTES) },
);
