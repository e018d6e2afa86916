/**
 * StartTLS (RFC 4511, section 4.14) on a bare socket. The client library gets the connection only after TLS has begun.
 * Otherwise, unencrypted data that an attacker injected before TLS would stay in the library's buffer, and the library
 * would treat it as the server's.
 */

import type { Socket } from 'node:net';
import { Fault } from '../domain/errors.ts';
import { readElement, SEQUENCE } from './ber.ts';

/** ExtendedRequest 1 with the name 1.3.6.1.4.1.1466.20037. */
const REQUEST = Buffer.concat([Buffer.from('301d02010177188016', 'hex'), Buffer.from('1.3.6.1.4.1.1466.20037')]);
const EXTENDED_RESPONSE = 0x78;
const ENUMERATED = 0x0a;
const MAX_ANSWER_BYTES = 4096;

/**
 * Resolves when the server has agreed, unless it has sent anything else. The caller's deadline destroys the socket,
 * which ends the wait.
 */
export function askForTls(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    let held = Buffer.alloc(0);
    const done = (fault?: Fault): void => {
      socket.off('data', read).off('error', failed).off('close', closed);
      socket.pause();
      fault === undefined ? resolve() : reject(fault);
    };
    const failed = (error: Error): void => done(new Fault(`StartTLS: ${error.message}`));
    const closed = (): void => done(new Fault('StartTLS: the server closed the connection'));
    const read = (data: Buffer): void => {
      held = Buffer.concat([held, data]);
      const verdict = readAnswer(held);
      if (verdict !== 'incomplete') done(verdict === 'agreed' ? undefined : new Fault(`StartTLS: ${verdict}`));
    };
    socket.on('data', read).on('error', failed).on('close', closed);
    socket.write(REQUEST);
  });
}

/** Returns `agreed`, `incomplete`, or the sentence of an error. */
function readAnswer(bytes: Buffer): string {
  if (bytes.length > 0 && bytes[0] !== SEQUENCE) return 'the server sent something else';
  const message = readElement(bytes);
  if (message === undefined) return bytes.length > MAX_ANSWER_BYTES ? 'the server sent something else' : 'incomplete';
  if (message.rest.length > 0) return 'the server sent more than its answer before TLS began';
  const id = readElement(message.content);
  const response = id && readElement(id.rest);
  const code = response && readElement(response.content);
  if (response?.tag !== EXTENDED_RESPONSE || code?.tag !== ENUMERATED || code.content.length !== 1) {
    return 'the server sent something else';
  }
  const [result] = code.content;
  return result === 0 ? 'agreed' : `the server refused it with code ${result}`;
}
