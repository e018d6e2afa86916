/**
 * Reads the access log that `postern envoy config --shadow` prints: the requests that another ext_authz filter denied
 * while the check was in shadow mode. Nothing of these entries is booked.
 */

import { sharedRequestId } from '../../domain/client-request-id.ts';
import { type Cursor, MALFORMED, readLength, readTag, readText, readVarint, skipField } from '../wire-read.ts';

/** The log's name in its configuration. */
export const SHADOW_LOG = 'postern-shadow';

/** Field tags: number << 3 | wire type. */
const MESSAGE_1 = 0x0a;
const MESSAGE_2 = 0x12;
const MESSAGE_3 = 0x1a;
const MESSAGE_4 = 0x22;
const VARINT_1 = 0x08;
const STRING_6 = 0x32;
const STRING_9 = 0x4a;

/** The value of `response_code_details` for a request that an ext_authz filter denied. */
const DENIED = Buffer.from('ext_authz_denied');
const UNAUTHORIZED = 401;
const FORBIDDEN = 403;

/** The content of one message. */
export interface OtherGateBatch {
  /** The number of readable entries. */
  readonly entries: number;
  /** The `x-request-id` of each request that the other gate denied. */
  readonly denied: readonly string[];
  readonly unreadable: number;
  /** False if the bytes are no such message. The entries before the error were read. */
  readonly whole: boolean;
}

interface Found {
  entries: number;
  readonly denied: string[];
  unreadable: number;
}

type Visit = (cursor: Cursor, tag: number, end: number) => boolean;

/** Calls `visit` with each field. If it returns false, it has read nothing, and the field is skipped. */
function fields(cursor: Cursor, end: number, visit: Visit): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (!visit(cursor, tag, end)) skipField(cursor, tag, end);
  }
}

/**
 * Returns the name of the log in the first message of a stream; empty if it has none. Never throws.
 * StreamAccessLogsMessage: identifier = 1; Identifier: log_name = 2.
 */
export function logNameOf(bytes: Buffer): string {
  let name = '';
  succeeds(() =>
    fields({ bytes, at: 0 }, bytes.length, (message, tag, end) => {
      if (tag !== MESSAGE_1) return false;
      fields(message, readLength(message, end), (identifier, inner, innerEnd) => {
        if (inner !== MESSAGE_2) return false;
        const nameEnd = readLength(identifier, innerEnd);
        name = nameEnd - identifier.at > SHADOW_LOG.length ? '' : readText(bytes, identifier.at, nameEnd);
        identifier.at = nameEnd;
        return true;
      });
      return true;
    }),
  );
  return name;
}

/** Reads one message. Never throws. StreamAccessLogsMessage: http_logs = 2; HTTPAccessLogEntries: log_entry = 1. */
export function readOtherGate(bytes: Buffer): OtherGateBatch {
  const found: Found = { entries: 0, denied: [], unreadable: 0 };
  const whole = succeeds(() =>
    fields({ bytes, at: 0 }, bytes.length, (message, tag, end) => {
      if (tag !== MESSAGE_2) return false;
      fields(message, readLength(message, end), (entries, inner, innerEnd) => {
        if (inner !== MESSAGE_1) return false;
        const entryEnd = readLength(entries, innerEnd);
        if (succeeds(() => readEntry(entries, entryEnd, found))) found.entries += 1;
        else found.unreadable += 1;
        // A malformed entry leaves the cursor at any offset inside it.
        entries.at = entryEnd;
        return true;
      });
      return true;
    }),
  );
  return { ...found, whole };
}

/**
 * HTTPAccessLogEntry: request = 3, response = 4. HTTPRequestProperties: request_id = 9. HTTPResponseProperties:
 * response_code = 1 (UInt32Value), response_code_details = 6.
 */
function readEntry(cursor: Cursor, end: number, found: Found): void {
  let requestId: string | undefined;
  let status = 0;
  let isDenied = false;
  fields(cursor, end, (entry, tag, entryEnd) => {
    if (tag === MESSAGE_3) {
      fields(entry, readLength(entry, entryEnd), (request, inner, innerEnd) => {
        if (inner !== STRING_9) return false;
        const textEnd = readLength(request, innerEnd);
        requestId = readText(request.bytes, request.at, textEnd);
        request.at = textEnd;
        return true;
      });
      return true;
    }
    if (tag !== MESSAGE_4) return false;
    fields(entry, readLength(entry, entryEnd), (response, inner, innerEnd) => {
      if (inner === MESSAGE_1) {
        fields(response, readLength(response, innerEnd), (wrapped, value, valueEnd) => {
          if (value !== VARINT_1) return false;
          status = readVarint(wrapped, valueEnd);
          return true;
        });
        return true;
      }
      if (inner !== STRING_6) return false;
      const textEnd = readLength(response, innerEnd);
      isDenied = response.bytes.subarray(response.at, textEnd).equals(DENIED);
      response.at = textEnd;
      return true;
    });
    return true;
  });
  const shared = sharedRequestId(requestId);
  if (isDenied && (status === UNAUTHORIZED || status === FORBIDDEN) && shared !== undefined) found.denied.push(shared);
}

/** Returns false if the bytes that `read` reads are malformed. */
function succeeds(read: () => void): boolean {
  try {
    read();
    return true;
  } catch (error) {
    if (error === MALFORMED) return false;
    throw error;
  }
}
