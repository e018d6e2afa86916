/**
 * Reads Protocol Buffers: the primitives that the messages here need (tags, varints, lengths, skipping, text).
 * https://protobuf.dev/programming-guides/encoding/
 *
 * Every function moves `cursor.at`, and never beyond `end`, the offset of the end of the message. A function throws
 * `MALFORMED` for anything that the encoding does not allow.
 */

import { isUtf8 } from 'node:buffer';

export interface Cursor {
  readonly bytes: Buffer;
  /** Offset of the next byte. */
  at: number;
}

/** The only error of this file, created once, so that a flood of malformed messages creates no stack traces. */
export const MALFORMED = new Error('not a Protocol Buffers message');

/** Wire types. */
const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
export const GROUP = 3;
const END_GROUP = 4;
const FIXED32 = 5;

/** The tag of a wrapper's `value`, a varint. */
const VALUE_TAG = 0x08;

const MAX_FIELD = 0x1fffffff;
/** The depth of nested groups, as in the reference implementations. */
const MAX_GROUP_DEPTH = 100;

/**
 * Reads a varint of up to ten bytes as an unsigned number, exact up to 2^53 and rounded above. Every caller compares it
 * with a smaller number. A non-minimal form is allowed, and more than 64 bits are not.
 */
export function readVarint(cursor: Cursor, end: number): number {
  const { bytes } = cursor;
  let at = cursor.at;
  let value = 0;
  let scale = 1;
  for (let i = 0; i < 10; i++) {
    if (at >= end) throw MALFORMED;
    const byte = bytes[at++] ?? 0;
    if (i === 9 && byte > 1) throw MALFORMED;
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) {
      cursor.at = at;
      return value;
    }
    scale *= 128;
  }
  throw MALFORMED;
}

/** Reads a field's tag: `field number << 3 | wire type`, with a valid field number. */
export function readTag(cursor: Cursor, end: number): number {
  const byte = cursor.at < end ? (cursor.bytes[cursor.at] ?? 0) : 0;
  if (byte >= 8 && byte < 0x80) {
    cursor.at++;
    return byte;
  }
  const tag = readVarint(cursor, end);
  if (tag < 8 || tag > MAX_FIELD * 8 + 7) throw MALFORMED;
  return tag;
}

/** Reads a length and returns the offset of the end of its field. `cursor.at` is then the offset of the start. */
export function readLength(cursor: Cursor, end: number): number {
  const byte = cursor.at < end ? (cursor.bytes[cursor.at] ?? 0) : 0x80;
  let length = byte;
  if (byte < 0x80) cursor.at++;
  else length = readVarint(cursor, end);
  const fieldEnd = cursor.at + length;
  if (fieldEnd > end) throw MALFORMED;
  return fieldEnd;
}

/** Reads the content of a wrapper of an unsigned number, such as UInt32Value: value = 1. */
export function readWrapped(cursor: Cursor, end: number): number {
  let value = 0;
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === VALUE_TAG) value = readVarint(cursor, end);
    else skipField(cursor, tag, end);
  }
  return value;
}

/** Skips one field whose tag was read: an unknown field, or a known one of another wire type. */
export function skipField(cursor: Cursor, tag: number, end: number): void {
  let at: number;
  switch (tag % 8) {
    case VARINT:
      readVarint(cursor, end);
      return;
    case FIXED64:
      at = cursor.at + 8;
      break;
    case LENGTH_DELIMITED:
      at = readLength(cursor, end);
      break;
    case GROUP:
      skipGroup(cursor, Math.floor(tag / 8), end);
      return;
    case FIXED32:
      at = cursor.at + 4;
      break;
    default:
      throw MALFORMED;
  }
  if (at > end) throw MALFORMED;
  cursor.at = at;
}

/**
 * Skips a group, which ends with the tag of its own number. A list of the open numbers takes the place of recursion.
 */
function skipGroup(cursor: Cursor, field: number, end: number): void {
  const open = [field];
  while (open.length > 0) {
    const tag = readTag(cursor, end);
    switch (tag % 8) {
      case GROUP:
        if (open.length >= MAX_GROUP_DEPTH) throw MALFORMED;
        open.push(Math.floor(tag / 8));
        break;
      case END_GROUP:
        if (open.pop() !== Math.floor(tag / 8)) throw MALFORMED;
        break;
      default:
        skipField(cursor, tag, end);
    }
  }
}

function isAscii(bytes: Buffer, start: number, end: number): boolean {
  let bits = 0;
  for (let i = start; i < end; i++) bits |= bytes[i] ?? 0;
  return bits < 0x80;
}

/** Above this length, one call into the runtime costs less than a loop here. */
const SHORT = 128;

/** Checks that a proto3 `string` is UTF-8, without decoding it. */
export function requireUtf8(bytes: Buffer, start: number, end: number): void {
  if (end - start < SHORT && isAscii(bytes, start, end)) return;
  if (!isUtf8(bytes.subarray(start, end))) throw MALFORMED;
}

/** Returns the text of proto3 `bytes`. Bytes that are not UTF-8 become U+FFFD, which no text of Postern contains. */
export function readText(bytes: Buffer, start: number, end: number): string {
  return bytes.toString(isAscii(bytes, start, end) ? 'latin1' : 'utf8', start, end);
}

/** Returns false if the bytes that `read` reads are malformed. */
export function isReadable(read: () => void): boolean {
  try {
    read();
    return true;
  } catch (error) {
    if (error === MALFORMED) return false;
    throw error;
  }
}

export interface Field {
  readonly start: number;
  readonly end: number;
}

/** Reads a message to its end, and returns the last of its length-delimited fields with a tag. */
export function lastField(cursor: Cursor, end: number, wanted: number): Field | undefined {
  let field: Field | undefined;
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === wanted) {
      const fieldEnd = readLength(cursor, end);
      field = { start: cursor.at, end: fieldEnd };
      cursor.at = fieldEnd;
    } else skipField(cursor, tag, end);
  }
  return field;
}
