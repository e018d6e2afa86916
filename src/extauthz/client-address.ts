/** Reads the client's address from the entry that the trusted proxies in front of Envoy wrote. */

import { isIP } from 'node:net';

/** Longer than any textual IPv6 address with a zone. */
const MAX_ADDRESS_BYTES = 100;
const COMMA = 0x2c;

/**
 * Returns the entry of `X-Forwarded-For` that the outermost trusted proxy wrote. Envoy appends its own peer last, and
 * each proxy before it appends its own. With N trusted hops, the entry is the (N+1)-th from the right, and the client
 * controls the entries before it.
 * @param spans start and end, in `bytes`, of each occurrence of the header, in order; together they are one list
 * @returns undefined if there are too few entries, or if the entry is no address
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

/** Reads one address. IPv6 may have brackets, and a port is not allowed. */
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
