/**
 * Walks the entries of `envoy.service.accesslog.v3.StreamAccessLogsMessage`, and reads the part of an entry that the
 * readers of both logs use.
 *
 * Upstreams and clients supply parts of an entry, so an entry may contain anything. Entries are length-delimited: the
 * walk counts and skips an unreadable entry, and reads the others.
 */

import { type Cursor, isReadable, readLength, readTag, readVarint, readWrapped, skipField } from '../wire-read.ts';

/** Field tags: number << 3 | wire type. */
export const MESSAGE_1 = 0x0a;
export const MESSAGE_2 = 0x12;
export const MESSAGE_4 = 0x22;
const VARINT_3 = 0x18;
const DETAILS_TAG = 0x32;

export interface Walk {
  unreadable: number;
  /** False if the bytes are no such message. The entries before the error were read. */
  whole: boolean;
}

/** Calls `read` with each entry of a message. `read` may throw `MALFORMED`, which the walk does not throw. */
export function walkEntries(bytes: Buffer, read: (cursor: Cursor, end: number) => void): Walk {
  const walk: Walk = { unreadable: 0, whole: true };
  walk.whole = isReadable(() => {
    const cursor = { bytes, at: 0 };
    while (cursor.at < bytes.length) {
      const tag = readTag(cursor, bytes.length);
      if (tag === MESSAGE_2) walkHttpEntries(cursor, readLength(cursor, bytes.length), read, walk);
      else skipField(cursor, tag, bytes.length);
    }
  });
  return walk;
}

/** HTTPAccessLogEntries: log_entry = 1. */
function walkHttpEntries(cursor: Cursor, end: number, read: (cursor: Cursor, end: number) => void, walk: Walk): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag !== MESSAGE_1) {
      skipField(cursor, tag, end);
      continue;
    }
    const entryEnd = readLength(cursor, end);
    if (!isReadable(() => read(cursor, entryEnd))) walk.unreadable++;
    // A malformed entry leaves the cursor at any offset inside it.
    cursor.at = entryEnd;
  }
}

export interface ResponseDraft {
  status: number;
  responseBytes: number;
  /** The value of `response_code_details`, if it is one of the constants below. */
  details: Buffer | undefined;
}

/** For an answer that the upstream completed. */
export const VIA_UPSTREAM = Buffer.from('via_upstream');
/** For a request that an ext_authz filter denied. */
export const EXT_AUTHZ_DENIED = Buffer.from('ext_authz_denied');
const DETAILS = [VIA_UPSTREAM, EXT_AUTHZ_DENIED];

/** HTTPResponseProperties: response_code = 1 (UInt32Value), response_body_bytes = 3, response_code_details = 6. */
export function readResponse(cursor: Cursor, end: number, draft: ResponseDraft): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === MESSAGE_1) draft.status = readWrapped(cursor, readLength(cursor, end));
    else if (tag === VARINT_3) draft.responseBytes = readVarint(cursor, end);
    else if (tag === DETAILS_TAG) draft.details = readDetails(cursor, readLength(cursor, end));
    else skipField(cursor, tag, end);
  }
}

function readDetails(cursor: Cursor, end: number): Buffer | undefined {
  const details = cursor.bytes.subarray(cursor.at, end);
  cursor.at = end;
  return DETAILS.find((known) => known.equals(details));
}
