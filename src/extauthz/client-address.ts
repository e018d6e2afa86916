/** The client's address as the trusted proxies in front of Envoy tell it. */

import { isIP } from 'node:net';

/** Longer than any textual IPv6 address with a zone. */
const MAX_ADDRESS_BYTES = 100;
const COMMA = 0x2c;

/**
 * The entry of `X-Forwarded-For` that the outermost trusted proxy wrote. Envoy appends its own peer last, each proxy behind it its
 * own, so with N trusted hops it is the (N+1)-th from the right; what stands left of it is the client's word.
 * @param spans start and end, in `bytes`, of each occurrence of the header, in order: they read as one list
 * @returns undefined when there are too few entries or that one is no address
 */
export function trustedAddress(bytes: Buffer, spans: readonly number[], trustedHops: number): string | undefined {
  let passed = 0;
  for (let span = spans.length - 2; span >= 0; span -= 2) {
    const start = spans[span] ?? 0;
    let entryEnd = spans[span + 1] ?? 0;
    for (let at = entryEnd - 1; at >= start - 1; at--) {
      if (at >= start && bytes[at] !== COMMA) continue;
      if (passed === trustedHops) return readAddress(bytes, at + 1, entryEnd);
      passed++;
      entryEnd = at;
    }
  }
  return undefined;
}

/** One address; IPv6 may stand in brackets, a port may not follow. */
function readAddress(bytes: Buffer, start: number, end: number): string | undefined {
  let from = start;
  let to = end;
  while (from < to && isBlank(bytes[from])) from++;
  while (to > from && isBlank(bytes[to - 1])) to--;
  if (to - from > MAX_ADDRESS_BYTES) return undefined;
  const text = bytes.toString('latin1', from, to);
  const bare = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text;
  const family = isIP(bare);
  return family === 6 || (family === 4 && bare === text) ? bare : undefined;
}

/** RFC 9110, section 5.6.3: optional white space. */
function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09;
}
