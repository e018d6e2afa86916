/**
 * Reads the access log that `postern envoy config --shadow` prints: the requests that another ext_authz filter denied
 * while the check was in shadow mode. Nothing of these entries is booked.
 */

import { sharedRequestId } from '../../domain/client-request-id.ts';
import {
  type Cursor,
  type Field,
  isReadable,
  lastField,
  readLength,
  readTag,
  readText,
  skipField,
} from '../wire-read.ts';
import {
  EXT_AUTHZ_DENIED,
  MESSAGE_1,
  MESSAGE_2,
  MESSAGE_4,
  type ResponseDraft,
  readResponse,
  type Walk,
  walkEntries,
} from './entries.ts';

/** The log's name in its configuration. */
export const SHADOW_LOG = 'postern-shadow';

/** Field tags: number << 3 | wire type. */
const MESSAGE_3 = 0x1a;
const STRING_9 = 0x4a;

const UNAUTHORIZED = 401;
const FORBIDDEN = 403;

/**
 * Returns the name of the log in the first message of a stream; empty if it has none. Never throws.
 * StreamAccessLogsMessage: identifier = 1; Identifier: log_name = 2.
 */
export function logNameOf(bytes: Buffer): string {
  let name = '';
  isReadable(() => {
    const identifier = lastField({ bytes, at: 0 }, bytes.length, MESSAGE_1);
    const text = identifier && lastField({ bytes, at: identifier.start }, identifier.end, MESSAGE_2);
    if (text !== undefined && text.end - text.start <= SHADOW_LOG.length) name = readText(bytes, text.start, text.end);
  });
  return name;
}

interface Found {
  /** The number of readable entries. */
  entries: number;
  /** The `x-request-id` of each request that the other gate denied. */
  readonly denied: string[];
}

/** Reads one message. Never throws. */
export function readOtherGate(bytes: Buffer): Found & Walk {
  const found: Found = { entries: 0, denied: [] };
  const walk = walkEntries(bytes, (cursor, end) => readEntry(cursor, end, found));
  return { ...found, ...walk };
}

/** HTTPAccessLogEntry: request = 3, response = 4. HTTPRequestProperties: request_id = 9. */
function readEntry(cursor: Cursor, end: number, found: Found): void {
  const response: ResponseDraft = { status: 0, responseBytes: 0, details: undefined };
  let id: Field | undefined;
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === MESSAGE_3) id = lastField(cursor, readLength(cursor, end), STRING_9);
    else if (tag === MESSAGE_4) readResponse(cursor, readLength(cursor, end), response);
    else skipField(cursor, tag, end);
  }
  found.entries++;
  const { status, details } = response;
  if (id === undefined || details !== EXT_AUTHZ_DENIED || (status !== UNAUTHORIZED && status !== FORBIDDEN)) return;
  const requestId = sharedRequestId(readText(cursor.bytes, id.start, id.end));
  if (requestId !== undefined) found.denied.push(requestId);
}
