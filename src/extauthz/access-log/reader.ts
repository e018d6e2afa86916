/**
 * Reads `envoy.service.accesslog.v3.StreamAccessLogsMessage` from its bytes: the few fields that metering needs about
 * each HTTP request that Postern allowed.
 *
 * Upstreams and clients supply parts of an entry, so an entry may contain anything. Entries are length-delimited: the
 * reader counts and skips an unreadable entry, and reads the others. It does not validate strings that metering does
 * not use.
 */

import type { FinishedRequest } from '../ports.ts';
import { type Cursor, MALFORMED, readLength, readTag, readVarint, readWrapped, skipField } from '../wire-read.ts';
import { type MetadataDraft, readMetadata } from './metadata.ts';
import { measuredUsage, responseOf } from './usage.ts';

/** Field tags: number << 3 | wire type. */
const MESSAGE_1 = 0x0a;
const MESSAGE_2 = 0x12;
const MESSAGE_4 = 0x22;
const VARINT_3 = 0x18;
const DETAILS_TAG = 0x32;
const FIRST_UPSTREAM_BYTE_TAG = 0x3a;
/** Tags of fields above 15. */
const METADATA_TAG = (17 << 3) | 2;
const INTERMEDIATE_TAG = 27 << 3;
const TYPE_TAG = 33 << 3;

/** Values of AccessLogType. The other types report neither the end of a request nor that it is still running. */
const NOT_SET = 0;
const DOWNSTREAM_PERIODIC = 5;
const DOWNSTREAM_END = 6;

/** The value of `response_code_details` for an answer that the upstream completed. */
const VIA_UPSTREAM = Buffer.from('via_upstream');

/** The content of one message. */
interface AccessLogBatch {
  /** The requests that ended, in order. */
  readonly finished: readonly FinishedRequest[];
  /** Reservations of the requests that are still running, in order. */
  readonly running: readonly string[];
  /** The number of unreadable entries. */
  readonly unreadable: number;
  /** False if the bytes are no such message. The entries before the error were read. */
  readonly whole: boolean;
}

interface Draft extends MetadataDraft {
  intermediate: boolean;
  type: number;
  status: number;
  responseBytes: number;
  /** Whether the first byte of the request was sent to the upstream. */
  forwarded: boolean;
  /** Whether the upstream completed the answer. */
  answered: boolean;
}

interface Found {
  readonly finished: FinishedRequest[];
  readonly running: string[];
  unreadable: number;
}

/** Reads one message. Never throws. */
export function readAccessLog(bytes: Buffer): AccessLogBatch {
  const found: Found = { finished: [], running: [], unreadable: 0 };
  const whole = succeeds(() => readMessage({ bytes, at: 0 }, bytes.length, found));
  return { ...found, whole };
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

/** StreamAccessLogsMessage: http_logs = 2. */
function readMessage(cursor: Cursor, end: number, found: Found): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === MESSAGE_2) readEntries(cursor, readLength(cursor, end), found);
    else skipField(cursor, tag, end);
  }
}

/** HTTPAccessLogEntries: log_entry = 1. */
function readEntries(cursor: Cursor, end: number, found: Found): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag !== MESSAGE_1) {
      skipField(cursor, tag, end);
      continue;
    }
    const entryEnd = readLength(cursor, end);
    if (!succeeds(() => note(readEntry(cursor, entryEnd), found))) found.unreadable += 1;
    // A malformed entry leaves the cursor at any offset inside it.
    cursor.at = entryEnd;
  }
}

function note(
  { intermediate, type, reservation, usage, forwarded, answered, ...rest }: Draft,
  { finished, running }: Found,
): void {
  if (reservation === undefined) return;
  if (type === DOWNSTREAM_PERIODIC || (type === NOT_SET && intermediate)) running.push(reservation);
  else if ((type === NOT_SET || type === DOWNSTREAM_END) && !intermediate) {
    const upstream = answered ? 'answered' : forwarded ? 'forwarded' : 'untouched';
    const response = responseOf(usage);
    finished.push({
      ...rest,
      reservation,
      usage: measuredUsage(usage),
      textBytes: usage.hidden ? 'hidden' : usage.textBytes,
      upstream,
      ...(response === undefined ? {} : { response }),
    });
  }
}

/** HTTPAccessLogEntry: common_properties = 1, response = 4. */
function readEntry(cursor: Cursor, end: number): Draft {
  const draft: Draft = {
    intermediate: false,
    type: NOT_SET,
    reservation: undefined,
    tenant: undefined,
    user: undefined,
    key: undefined,
    model: undefined,
    route: undefined,
    charges: undefined,
    usage: {
      counts: {},
      model: undefined,
      gateway: {},
      gatewayModel: undefined,
      native: undefined,
      nativeModel: undefined,
      textBytes: undefined,
      hidden: false,
      responseId: undefined,
      responseStatus: undefined,
      responseBackground: false,
    },
    status: 0,
    responseBytes: 0,
    forwarded: false,
    answered: false,
  };
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === MESSAGE_1) readCommon(cursor, readLength(cursor, end), draft);
    else if (tag === MESSAGE_4) readResponse(cursor, readLength(cursor, end), draft);
    else skipField(cursor, tag, end);
  }
  return draft;
}

/**
 * AccessLogCommon: time_to_first_upstream_tx_byte = 7, metadata = 17, intermediate_log_entry = 27, access_log_type =
 * 33.
 */
function readCommon(cursor: Cursor, end: number, draft: Draft): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === METADATA_TAG) {
      readMetadata(cursor, readLength(cursor, end), draft);
    } else if (tag === INTERMEDIATE_TAG) {
      draft.intermediate = readVarint(cursor, end) !== 0;
    } else if (tag === TYPE_TAG) {
      draft.type = readVarint(cursor, end);
    } else if (tag === FIRST_UPSTREAM_BYTE_TAG) {
      draft.forwarded = true;
      skipField(cursor, tag, end);
    } else {
      skipField(cursor, tag, end);
    }
  }
}

/** HTTPResponseProperties: response_code = 1 (UInt32Value), response_body_bytes = 3, response_code_details = 6. */
function readResponse(cursor: Cursor, end: number, draft: Draft): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === MESSAGE_1) draft.status = readWrapped(cursor, readLength(cursor, end));
    else if (tag === VARINT_3) draft.responseBytes = readVarint(cursor, end);
    else if (tag === DETAILS_TAG) draft.answered = readIs(cursor, readLength(cursor, end), VIA_UPSTREAM);
    else skipField(cursor, tag, end);
  }
}

/** Reads a string to its end, and reports whether it has these bytes. */
function readIs(cursor: Cursor, end: number, wanted: Buffer): boolean {
  const same = cursor.bytes.subarray(cursor.at, end).equals(wanted);
  cursor.at = end;
  return same;
}
