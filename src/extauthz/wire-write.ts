/**
 * Writes Protocol Buffers from the end to the beginning, so that the length of a nested message is known before its tag
 * is written.
 */

import { Fault } from '../domain/errors.ts';

export interface Writer {
  readonly bytes: Buffer;
  /** The offset of the first byte written so far. */
  at: number;
}

/** The buffer in which one message at a time is written. The result is a copy. */
const scratch = Buffer.allocUnsafeSlow(16_384);

/** @param maxBytes the largest possible length of the message */
export function beginWriting(maxBytes: number): Writer {
  const bytes = maxBytes <= scratch.length ? scratch : Buffer.allocUnsafeSlow(maxBytes);
  return { bytes, at: bytes.length };
}

/** Returns the message as a buffer of its own. */
export function finishWriting(writer: Writer): Buffer {
  if (writer.at < 0) throw new Fault('an answer exceeded its size limit');
  return Buffer.from(writer.bytes.subarray(writer.at));
}

export function putByte(writer: Writer, byte: number): void {
  writer.at--;
  writer.bytes[writer.at] = byte;
}

export function putBytes(writer: Writer, bytes: Uint8Array): void {
  if (bytes.length === 0) return;
  writer.at -= bytes.length;
  writer.bytes.set(bytes, writer.at);
}

/** Writes zeros that are filled later. @returns their offset in the writer's bytes */
export function putHole(writer: Writer, length: number): number {
  writer.at -= length;
  writer.bytes.fill(0, Math.max(writer.at, 0), writer.at + length);
  return writer.at;
}

/** Writes an unsigned integer below 2^31. */
export function putVarint(writer: Writer, value: number): void {
  if (value < 0x80) {
    putByte(writer, value);
    return;
  }
  let size = 1;
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) size++;
  writer.at -= size;
  let rest = value;
  for (let i = 0; i < size; i++) {
    writer.bytes[writer.at + i] = i === size - 1 ? rest : (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
}

/** Writes text as UTF-8. An unpaired surrogate becomes U+FFFD, because a proto3 `string` is always UTF-8. */
export function putText(writer: Writer, text: string): void {
  const { bytes } = writer;
  const start = writer.at - text.length;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) {
      writer.at -= Buffer.byteLength(text);
      bytes.write(text, writer.at);
      return;
    }
    bytes[start + i] = code;
  }
  writer.at = start;
}

/** Writes the length and tag before the bytes written since `end`, which makes them a length-delimited field. */
export function wrap(writer: Writer, tag: number, end: number): void {
  putVarint(writer, end - writer.at);
  putByte(writer, tag);
}

/** Returns a length-delimited field of text as bytes. */
export function textField(tag: number, text: string): Buffer {
  const bytes = Buffer.from(text);
  const writer: Writer = { bytes: Buffer.alloc(bytes.length + 6), at: bytes.length + 6 };
  putBytes(writer, bytes);
  wrap(writer, tag, writer.bytes.length);
  return Buffer.from(writer.bytes.subarray(writer.at));
}
