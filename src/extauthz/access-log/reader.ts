/**
 * Reads the few fields of an access log that metering needs about each HTTP request that Postern allowed. Does not
 * validate strings that metering does not use.
 */

import type { FinishedRequest } from '../ports.ts';
import { type Cursor, readLength, readTag, readVarint, skipField } from '../wire-read.ts';
import {
  MESSAGE_1,
  MESSAGE_4,
  type ResponseDraft,
  readResponse,
  VIA_UPSTREAM,
  type Walk,
  walkEntries,
} from './entries.ts';
import { type MetadataDraft, readMetadata } from './metadata.ts';
import { measuredUsage, responseOf } from './usage.ts';

/** Field tags: number << 3 | wire type. */
const FIRST_UPSTREAM_BYTE_TAG = 0x3a;
/** Tags of fields above 15. */
const METADATA_TAG = (17 << 3) | 2;
const INTERMEDIATE_TAG = 27 << 3;
const TYPE_TAG = 33 << 3;

/** Values of AccessLogType. The other types report neither the end of a request nor that it is still running. */
const NOT_SET = 0;
const DOWNSTREAM_PERIODIC = 5;
const DOWNSTREAM_END = 6;

/** The requests of one message, in order. */
interface Found {
  /** The requests that ended. */
  readonly finished: FinishedRequest[];
  /** Reservations of the requests that are still running. */
  readonly running: string[];
}

interface Draft extends MetadataDraft, ResponseDraft {
  intermediate: boolean;
  type: number;
  /** Whether the first byte of the request was sent to the upstream. */
  forwarded: boolean;
}

/** Reads one message. Never throws. */
export function readAccessLog(bytes: Buffer): Found & Walk {
  const found: Found = { finished: [], running: [] };
  const walk = walkEntries(bytes, (cursor, end) => note(readEntry(cursor, end), found));
  return { ...found, ...walk };
}

function note(
  { intermediate, type, reservation, usage, forwarded, details, ...rest }: Draft,
  { finished, running }: Found,
): void {
  if (reservation === undefined) return;
  if (type === DOWNSTREAM_PERIODIC || (type === NOT_SET && intermediate)) running.push(reservation);
  else if ((type === NOT_SET || type === DOWNSTREAM_END) && !intermediate) {
    const upstream = details === VIA_UPSTREAM ? 'answered' : forwarded ? 'forwarded' : 'untouched';
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
    details: undefined,
    forwarded: false,
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
