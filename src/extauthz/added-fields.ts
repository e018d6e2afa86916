/** Adds encoded fields to an allow that a template made. */

import { Fault } from '../domain/errors.ts';
import type { Writer } from './wire-write.ts';

/** The fields that an allow gets beside those of its template, in one writer: those of the metadata are written first. */
interface AddedFields {
  readonly writer: Writer;
  /** The offset of the fields of the metadata, before which those of the `ok_response` stand. */
  metadataAt: number;
}

/** Room for the text of charges, two rates and a budget. */
const MAX_ADDED_BYTES = 16_384;
const added: AddedFields = { writer: { bytes: Buffer.allocUnsafeSlow(MAX_ADDED_BYTES), at: 0 }, metadataAt: 0 };

/** Begins the fields of one answer. Only one answer at a time has added fields. */
export function beginFields(): AddedFields {
  added.writer.at = MAX_ADDED_BYTES;
  added.metadataAt = MAX_ADDED_BYTES;
  return added;
}

/**
 * Returns the answer with the added fields before its own ones, and with the token's field after them.
 * @param answer a CheckResponse that has its metadata at `metadataAt` and ends with its `ok_response`, at `okAt`
 * @param length the length of the answer in these bytes
 * @param token default: none
 */
export function withFields(
  answer: Uint8Array,
  length: number,
  metadataAt: number,
  okAt: number,
  { writer, metadataAt: membersAt }: AddedFields,
  token: Uint8Array | undefined,
): Buffer {
  const { bytes, at: fieldsAt } = writer;
  if (fieldsAt < 0) throw new Fault('an answer exceeded its size limit');
  const tokenLength = token === undefined ? 0 : token.length;
  const metadataFrom = afterLength(answer, metadataAt + 1);
  const okFrom = afterLength(answer, okAt + 1);
  const metadataLength = bytes.length - membersAt + okAt - metadataFrom;
  const okLength = membersAt - fieldsAt + length - okFrom + tokenLength;
  const whole = metadataAt + 2 + varintSize(metadataLength) + metadataLength + varintSize(okLength) + okLength;
  const result = Buffer.allocUnsafe(whole);
  let at = put(result, 0, answer, 0, metadataAt + 1);
  at = putVarint(result, at, metadataLength);
  at = put(result, at, bytes, membersAt, bytes.length);
  at = put(result, at, answer, metadataFrom, okAt + 1);
  at = putVarint(result, at, okLength);
  at = put(result, at, bytes, fieldsAt, membersAt);
  at = put(result, at, answer, okFrom, length);
  if (token !== undefined) result.set(token, at);
  return result;
}

/** Copies bytes, and returns the offset after them. */
function put(to: Uint8Array, at: number, from: Uint8Array, start: number, end: number): number {
  to.set(from.subarray(start, end), at);
  return at + end - start;
}

function putVarint(bytes: Uint8Array, start: number, value: number): number {
  let at = start;
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) bytes[at++] = (rest & 0x7f) | 0x80;
  bytes[at++] = rest;
  return at;
}

function varintSize(value: number): number {
  let size = 1;
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) size++;
  return size;
}

function afterLength(bytes: Uint8Array, start: number): number {
  let at = start;
  while ((bytes[at] ?? 0) >= 0x80) at++;
  return at + 1;
}
