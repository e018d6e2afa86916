/**
 * The floor of Postern's own transports: an otherwise empty method.
 * `node bench/floors/built-in.ts 127.0.0.1:9291 [bytes of the answer] [built-in|http2]`
 */

import { loadTransport } from '../../src/extauthz/grpc/transports.ts';
import { fixedAllow } from './answer.ts';

const [host = '127.0.0.1', port = '9291'] = (process.argv[2] ?? '').split(':');
const answer = fixedAllow(Number(process.argv[3] ?? 2));
const startGrpc = await loadTransport(process.argv[4] === 'http2' ? 'http2' : 'built-in');
await startGrpc(
  { '/envoy.service.auth.v3.Authorization/Check': { kind: 'unary', answer: () => answer } },
  { host, port: Number(port) },
  undefined,
);
