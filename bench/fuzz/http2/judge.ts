/**
 * The rules that hold for a connection after any bytes. The judge reads the same bytes as the server with the simplest
 * of readers, and shares no code with it.
 */

import { codeOf } from '../judge.ts';

const HEAD_BYTES = 9;
const PREFIX_BYTES = 5;

export interface Seen {
  readonly frames: number;
  /** Content of each stream, one after the other. */
  readonly content: ReadonlyMap<number, Buffer>;
}

/** Cuts bytes into complete frames. */
export function readAll(bytes: Buffer): Seen {
  const content = new Map<number, Buffer[]>();
  let frames = 0;
  for (let at = 0; bytes.length - at >= HEAD_BYTES; ) {
    const end = at + HEAD_BYTES + bytes.readUIntBE(at, 3);
    if (end > bytes.length) break;
    frames += 1;
    if (bytes[at + 3] === 0) {
      const stream = bytes.readUInt32BE(at + 5) & 0x7fffffff;
      const padded = ((bytes[at + 4] ?? 0) & 8) !== 0;
      const from = at + HEAD_BYTES + (padded ? 1 : 0);
      const to = padded ? end - (bytes[at + HEAD_BYTES] ?? 0) : end;
      content.set(stream, [...(content.get(stream) ?? []), bytes.subarray(from, Math.max(from, to))]);
    }
    at = end;
  }
  return { frames, content: new Map([...content].map(([stream, parts]) => [stream, Buffer.concat(parts)])) };
}

export interface Judged {
  /** CheckResponses with code 0. */
  readonly allows: number;
  readonly complaint: string | undefined;
}

/**
 * @param sent behind the preface
 * @param credentials texts without which no check can be allowed
 */
export function judgeConnection(sent: Buffer, received: Buffer, credentials: readonly string[]): Judged {
  const asked = readAll(sent).content;
  let allows = 0;
  for (const [stream, answer] of readAll(received).content) {
    const question = asked.get(stream);
    // A request without content may be answered with a status and a text.
    if (answer.length < PREFIX_BYTES || answer[0] !== 0) continue;
    const message = answer.subarray(PREFIX_BYTES, PREFIX_BYTES + answer.readUInt32BE(1));
    // The answer of an access log is empty, and so may be its content.
    if (message.length === 0) continue;
    if (question === undefined) return { allows, complaint: `an answer on stream ${stream}, which sent nothing` };
    // An answer that does not fit the client's windows is cut. Health answers with two bytes, 08 and a status.
    if (message.length < answer.readUInt32BE(1) || message.length <= 2 || codeOf(message) !== 0) continue;
    allows += 1;
    if (!credentials.some((one) => question.includes(one)))
      return { allows, complaint: `code 0 on stream ${stream}, which sent no valid credential` };
  }
  return { allows, complaint: undefined };
}
