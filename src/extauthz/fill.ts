/** Fills the holes of a template. */

import { Fault } from '../domain/errors.ts';

/** Writes ASCII text at up to three offsets. A negative offset is skipped. */
export function fillAscii(bytes: Buffer, text: string, first: number, second: number, third: number): void {
  const { length } = text;
  let bits = 0;
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i);
    bits |= code;
    bytes[first + i] = code;
  }
  if (bits > 0x7f) throw new Fault('an id that is not ASCII');
  if (second >= 0) repeat(bytes, first, second, length);
  if (third >= 0) repeat(bytes, first, third, length);
}

/** A loop, because a call into the runtime costs more for few bytes. */
function repeat(bytes: Buffer, from: number, to: number, length: number): void {
  for (let i = 0; i < length; i++) bytes[to + i] = bytes[from + i] ?? 0;
}

export function utf8Length(text: string): number {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return Buffer.byteLength(text);
  return text.length;
}

/** Writes text as UTF-8. An unpaired surrogate becomes U+FFFD, because a proto3 `string` is always UTF-8. */
export function fillUtf8(bytes: Buffer, text: string, at: number): void {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) {
      bytes.write(text, at);
      return;
    }
    bytes[at + i] = code;
  }
}

const HEX = Buffer.from('0123456789abcdef');

export function fillHex(bytes: Buffer, value: Uint8Array, at: number): void {
  for (let i = 0; i < value.length; i++) {
    const byte = value[i] ?? 0;
    bytes[at + 2 * i] = HEX[byte >> 4] ?? 0;
    bytes[at + 2 * i + 1] = HEX[byte & 15] ?? 0;
  }
}
