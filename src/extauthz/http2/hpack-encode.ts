/**
 * Encodes header blocks without a table and without Huffman codes (RFC 7541, section 6.2.2), so that prepared bytes are
 * valid on every connection.
 */

import { STATIC_TABLE } from './static-table.ts';

export function encodeFields(fields: readonly (readonly [name: string, value: string])[]): Buffer {
  return Buffer.concat(fields.map(([name, value]) => encodeField(name, value)));
}

function encodeField(name: string, value: string): Buffer {
  const exact = STATIC_TABLE.findIndex((entry) => entry[0] === name && entry[1] === value);
  if (exact >= 0) return encodeInteger(exact + 1, 7, 0x80);
  const named = STATIC_TABLE.findIndex((entry) => entry[0] === name);
  const start = encodeInteger(named + 1, 4, 0);
  return Buffer.concat(named < 0 ? [start, encodeText(name), encodeText(value)] : [start, encodeText(value)]);
}

function encodeText(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  return Buffer.concat([encodeInteger(bytes.length, 7, 0), bytes]);
}

/** RFC 7541, section 5.1 */
function encodeInteger(value: number, prefixBits: number, pattern: number): Buffer {
  const mask = (1 << prefixBits) - 1;
  if (value < mask) return Buffer.of(pattern | value);
  const bytes = [pattern | mask];
  let rest = value - mask;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}
