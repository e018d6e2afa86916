/**
 * Attack 9: 150 streams at Postern's gRPC listener, each with 4 MB of a message of 16 MB, by a client inside the mesh.
 */

import { type ClientHttp2Session, connect } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Attack, count, FULL_PACE, type Tally } from '../attack.ts';
import type { Mesh } from '../stand.ts';

const STREAMS = 150;
const ANNOUNCED_BYTES = 16 * 1_048_576;
const SENT_BYTES = 4 * 1_048_576;
const GRPC_TIMEOUT = '500m';
const REOPEN_EVERY_MS = FULL_PACE ? 500 : 5000;
/** The maximum number of streams, including the replacements of those that the server ended. */
const MAX_STREAMS = 900;
const PATH = '/envoy.service.auth.v3.Authorization/Check';

export const unfinishedMessages: Attack = {
  number: 9,
  title: '4 MB of a 16 MB message on 150 gRPC streams',
  async run({ mesh }, _ammunition, untilMs) {
    const tally: Tally = {};
    let session = dial(mesh);
    let open = 0;
    const begin = (): void => {
      open += 1;
      count(tally, 'streams');
      const stream = session.request({
        ':method': 'POST',
        ':path': PATH,
        'content-type': 'application/grpc',
        te: 'trailers',
        'grpc-timeout': GRPC_TIMEOUT,
      });
      let end = 'reset';
      stream.once('response', (headers) => {
        if (headers['grpc-status'] !== undefined) end = `grpc-status ${headers['grpc-status']}`;
      });
      stream.once('trailers', (headers) => {
        if (headers['grpc-status'] !== undefined) end = `grpc-status ${headers['grpc-status']}`;
      });
      stream.resume();
      stream.once('error', () => undefined);
      stream.once('close', () => {
        open -= 1;
        count(tally, `ended: ${end}`);
      });
      stream.write(MESSAGE);
    };
    while (Date.now() < untilMs) {
      if (session.closed || session.destroyed) session = dial(mesh);
      while (open < STREAMS && (tally['streams'] ?? 0) < MAX_STREAMS) begin();
      await sleep(Math.max(0, Math.min(REOPEN_EVERY_MS, untilMs - Date.now())));
    }
    count(tally, 'open at the end', open);
    session.destroy();
    return tally;
  },
};

const MESSAGE = Buffer.alloc(5 + SENT_BYTES);
MESSAGE.writeUInt32BE(ANNOUNCED_BYTES, 1);

function dial({ address, ca, cert, key }: Mesh): ClientHttp2Session {
  const session = connect(`https://${address}`, { ca, cert, key, servername: 'postern' });
  session.on('error', () => undefined);
  return session;
}
