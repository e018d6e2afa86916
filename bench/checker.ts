/** Asks one server's Check over HTTP/2 with gRPC framing. */

import { connect } from 'node:http2';

export interface Checker {
  /** Reports whether the answer's status code is 0. Rejects without an answer. */
  allowed(frame: Buffer): Promise<boolean>;
  /** Returns the CheckResponse. Rejects without an answer. */
  answer(frame: Buffer): Promise<Buffer>;
  close(): void;
}

/** @param address `host:port` of a gRPC listener without TLS */
export function checker(address: string): Checker {
  const session = connect(`http://${address}`);
  const answer = (frame: Buffer): Promise<Buffer> =>
    new Promise((done, fail) => {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/envoy.service.auth.v3.Authorization/Check',
        'content-type': 'application/grpc',
        te: 'trailers',
      });
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.once('error', fail);
      stream.once('end', () => done(Buffer.concat(chunks).subarray(5)));
      const prefix = Buffer.alloc(5);
      prefix.writeUInt32BE(frame.length, 1);
      stream.end(Buffer.concat([prefix, frame]));
    });
  return { close: () => session.close(), answer, allowed: async (frame) => codeIsZero(await answer(frame)) };
}

/** CheckResponse.status is field 1, its code field 1 in turn; proto3 leaves a zero out. */
function codeIsZero(response: Buffer): boolean {
  return !(response[0] === 0x0a && (response[1] ?? 0) > 0 && response[2] === 0x08 && response[3] !== 0);
}
