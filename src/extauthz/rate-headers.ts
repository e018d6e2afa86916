/** What a client is told of its request rate: the headers that OpenAI's clients read, and those of the IETF draft (RateLimit, RateLimit-Policy). */

import { headerName, putHeader, putResponseHeader } from './header-options.ts';
import type { RateState } from './ports.ts';
import { beginWriting, finishWriting, putBytes, putVarint, type Writer } from './wire-write.ts';

const NAMES = {
  limit: headerName('x-ratelimit-limit-requests'),
  remaining: headerName('x-ratelimit-remaining-requests'),
  reset: headerName('x-ratelimit-reset-requests'),
  ratelimit: headerName('ratelimit'),
  policy: headerName('ratelimit-policy'),
};
/** Five headers with numbers of at most 16 digits. */
const MAX_BYTES = 1024;

/** On a denial: its headers are the answer's. */
export function putRateHeaders(writer: Writer, rate: RateState): void {
  putAll(writer, rate, putHeader);
}

function putAll(writer: Writer, { limit, remaining, resetSeconds, windowSeconds }: RateState, put: typeof putHeader): void {
  put(writer, NAMES.policy, `"requests";q=${limit};w=${windowSeconds}`);
  put(writer, NAMES.ratelimit, `"requests";r=${remaining};t=${resetSeconds}`);
  put(writer, NAMES.reset, `${resetSeconds}s`);
  put(writer, NAMES.remaining, String(remaining));
  put(writer, NAMES.limit, String(limit));
}

/**
 * An allow with the same headers on the upstream's answer: the fields are put in front of those of its `ok_response`.
 * @param answer a CheckResponse whose `ok_response` begins, tag first, at `okAt`
 */
export function withRateHeaders(answer: Buffer, okAt: number, rate: RateState): Buffer {
  const { length, at } = readLength(answer, okAt + 1);
  const writer = beginWriting(MAX_BYTES + answer.length);
  putBytes(writer, answer.subarray(at));
  const before = writer.at;
  putAll(writer, rate, putResponseHeader);
  putVarint(writer, length + before - writer.at);
  putBytes(writer, answer.subarray(0, okAt + 1));
  return finishWriting(writer);
}

/** A varint that this server wrote, and where it ends. */
function readLength(bytes: Buffer, start: number): { readonly length: number; readonly at: number } {
  let length = 0;
  let at = start;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++] ?? 0;
    length |= (byte & 0x7f) << shift;
    if (byte < 0x80) return { length, at };
  }
}
