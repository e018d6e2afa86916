/**
 * The floor of `node:http2`: unary gRPC framed by hand, without a method, a deadline or a bound.
 * `node bench/floors/node-http2.ts 127.0.0.1:9291 [bytes of the answer]`
 */

import { createServer, type ServerHttp2Stream } from 'node:http2';
import { fixedAllow } from './answer.ts';

const PREFIX_BYTES = 5;
const [host = '127.0.0.1', port = '9291'] = (process.argv[2] ?? '').split(':');
const message = fixedAllow(Number(process.argv[3] ?? 2));
const answer = Buffer.alloc(PREFIX_BYTES + message.length);
answer.writeUInt32BE(message.length, 1);
message.copy(answer, PREFIX_BYTES);

const HEAD = [':status', '200', 'content-type', 'application/grpc'];
const WITH_TRAILERS = { waitForTrailers: true, sendDate: false };
const TRAILERS = { 'grpc-status': '0' };

function onTrailers(this: ServerHttp2Stream): void {
  this.sendTrailers(TRAILERS);
}

function onEnd(this: ServerHttp2Stream): void {
  this.on('wantTrailers', onTrailers);
  this.respond(HEAD, WITH_TRAILERS);
  this.end(answer);
}

const server = createServer({ settings: { maxConcurrentStreams: 1024 } });
server.on('stream', (stream: ServerHttp2Stream) => {
  stream.on('end', onEnd);
  stream.on('error', () => undefined);
  stream.resume();
});
server.listen(Number(port), host);
