/**
 * Reads `envoy.service.accesslog.v3.StreamAccessLogsMessage` from its bytes: of each finished HTTP request that a check of Postern let
 * through, the few fields that metering needs. The same strictness and the same primitives as for a CheckRequest.
 */

import { type Cursor, MALFORMED, readLength, readTag, readVarint, requireUtf8, skipField } from '../wire-read.ts';
import type { FinishedRequest } from './entry.ts';
import { type UsageDraft, usageOf } from './usage.ts';

/** Metadata namespaces: ext_authz's own, and the one that `envoy/*.yaml` has the usage filters write to. */
const EXT_AUTHZ = 'envoy.filters.http.ext_authz';
export const USAGE_NAMESPACE = 'postern.usage';

/** Field tags: number << 3 | wire type. */
const MESSAGE_1 = 0x0a;
const MESSAGE_2 = 0x12;
const STRING_3 = 0x1a;
const MESSAGE_3 = 0x1a;
const MESSAGE_4 = 0x22;
const DOUBLE_2 = 0x11;
const VARINT_1 = 0x08;
const VARINT_3 = 0x18;
const VARINT_12 = 0x60;
/** Of fields above 15. */
const METADATA_TAG = (17 << 3) | 2;
const INTERMEDIATE_TAG = 27 << 3;
const TYPE_TAG = 33 << 3;

/** AccessLogType: NotSet and DownstreamEnd are the end of a request; the others are reports on its way. */
const NOT_SET = 0;
const DOWNSTREAM_END = 6;

interface Draft {
  final: boolean;
  reservation: string | undefined;
  tenant: string | undefined;
  user: string | undefined;
  key: string | undefined;
  model: string | undefined;
  route: string | undefined;
  usage: UsageDraft;
  status: number;
  requestBytes: number;
  responseBytes: number;
}

/** @returns the requests that are over, in order; undefined when the bytes are no such message. Never throws. */
export function readAccessLog(bytes: Buffer): readonly FinishedRequest[] | undefined {
  const cursor: Cursor = { bytes, at: 0 };
  const found: FinishedRequest[] = [];
  try {
    while (cursor.at < bytes.length) {
      const tag = readTag(cursor, bytes.length);
      // http_logs = 2
      if (tag === MESSAGE_2) readEntries(cursor, readLength(cursor, bytes.length), found);
      else skipField(cursor, tag, bytes.length);
    }
    return found;
  } catch (error) {
    if (error === MALFORMED) return undefined;
    throw error;
  }
}

/** HTTPAccessLogEntries: log_entry = 1. */
function readEntries(cursor: Cursor, end: number, found: FinishedRequest[]): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag !== MESSAGE_1) {
      skipField(cursor, tag, end);
      continue;
    }
    const entry = finished(readEntry(cursor, readLength(cursor, end)));
    if (entry !== undefined) found.push(entry);
  }
}

function finished(draft: Draft): FinishedRequest | undefined {
  const { final, reservation, usage, ...rest } = draft;
  return final && reservation !== undefined ? { ...rest, reservation, usage: usageOf(usage) } : undefined;
}

/** HTTPAccessLogEntry: common_properties = 1, request = 3, response = 4. */
function readEntry(cursor: Cursor, end: number): Draft {
  const draft: Draft = {
    final: true,
    reservation: undefined,
    tenant: undefined,
    user: undefined,
    key: undefined,
    model: undefined,
    route: undefined,
    usage: {
      prompt_tokens: undefined,
      completion_tokens: undefined,
      cached_tokens: undefined,
      total_tokens: undefined,
      model: undefined,
    },
    status: 0,
    requestBytes: 0,
    responseBytes: 0,
  };
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === MESSAGE_1) readCommon(cursor, readLength(cursor, end), draft);
    else if (tag === MESSAGE_3) readRequest(cursor, readLength(cursor, end), draft);
    else if (tag === MESSAGE_4) readResponse(cursor, readLength(cursor, end), draft);
    else skipField(cursor, tag, end);
  }
  return draft;
}

/** AccessLogCommon: metadata = 17, intermediate_log_entry = 27, access_log_type = 33. */
function readCommon(cursor: Cursor, end: number, draft: Draft): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === METADATA_TAG) {
      readMetadata(cursor, readLength(cursor, end), draft);
    } else if (tag === INTERMEDIATE_TAG) {
      if (readVarint(cursor, end) !== 0) draft.final = false;
    } else if (tag === TYPE_TAG) {
      const type = readVarint(cursor, end);
      if (type !== NOT_SET && type !== DOWNSTREAM_END) draft.final = false;
    } else {
      skipField(cursor, tag, end);
    }
  }
}

/** HTTPRequestProperties: request_body_bytes = 12. */
function readRequest(cursor: Cursor, end: number, draft: Draft): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === VARINT_12) draft.requestBytes = readVarint(cursor, end);
    else skipField(cursor, tag, end);
  }
}

/** HTTPResponseProperties: response_code = 1 (UInt32Value), response_body_bytes = 3. */
function readResponse(cursor: Cursor, end: number, draft: Draft): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === MESSAGE_1) draft.status = readWrapped(cursor, readLength(cursor, end));
    else if (tag === VARINT_3) draft.responseBytes = readVarint(cursor, end);
    else skipField(cursor, tag, end);
  }
}

/** UInt32Value: value = 1. */
function readWrapped(cursor: Cursor, end: number): number {
  let value = 0;
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === VARINT_1) value = readVarint(cursor, end);
    else skipField(cursor, tag, end);
  }
  return value;
}

/** Metadata: filter_metadata = 1, a map of namespace to Struct. */
function readMetadata(cursor: Cursor, end: number, draft: Draft): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === MESSAGE_1) readNamespace(cursor, readLength(cursor, end), draft);
    else skipField(cursor, tag, end);
  }
}

/** A map entry: key = 1, value = 2 (Struct). The value's members are read only when its namespace is known to be wanted. */
function readNamespace(cursor: Cursor, end: number, draft: Draft): void {
  const { name, start, valueEnd } = readPair(cursor, end);
  if (start < 0) return;
  const value: Cursor = { bytes: cursor.bytes, at: start };
  if (name === EXT_AUTHZ) readStruct(value, valueEnd, (member, text) => noteDecision(draft, member, text));
  else if (name === USAGE_NAMESPACE)
    readStruct(value, valueEnd, (member, text, number) => noteUsage(draft.usage, member, text, number));
}

/** A map entry's key and where its value lies; key and value may come in either order. */
function readPair(cursor: Cursor, end: number): { name: string; start: number; valueEnd: number } {
  const pair = { name: '', start: -1, valueEnd: -1 };
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === MESSAGE_1) {
      pair.name = readString(cursor, end);
    } else if (tag === MESSAGE_2) {
      pair.valueEnd = readLength(cursor, end);
      pair.start = cursor.at;
      cursor.at = pair.valueEnd;
    } else {
      skipField(cursor, tag, end);
    }
  }
  return pair;
}

type Note = (member: string, text: string | undefined, number: number | undefined) => void;

/** Struct: fields = 1, a map of name to Value. */
function readStruct(cursor: Cursor, end: number, note: Note): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag !== MESSAGE_1) {
      skipField(cursor, tag, end);
      continue;
    }
    const { name, start, valueEnd } = readPair(cursor, readLength(cursor, end));
    if (start >= 0) readValue({ bytes: cursor.bytes, at: start }, valueEnd, name, note);
  }
}

/** Value, one of: number_value = 2, string_value = 3. Other kinds are nothing to metering. */
function readValue(cursor: Cursor, end: number, name: string, note: Note): void {
  let text: string | undefined;
  let number: number | undefined;
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === DOUBLE_2) {
      if (cursor.at + 8 > end) throw MALFORMED;
      number = cursor.bytes.readDoubleLE(cursor.at);
      text = undefined;
      cursor.at += 8;
    } else if (tag === STRING_3) {
      text = readString(cursor, end);
      number = undefined;
    } else {
      text = undefined;
      number = undefined;
      skipField(cursor, tag, end);
    }
  }
  note(name, text, number);
}

function readString(cursor: Cursor, end: number): string {
  const stringEnd = readLength(cursor, end);
  requireUtf8(cursor.bytes, cursor.at, stringEnd);
  const text = cursor.bytes.toString('utf8', cursor.at, stringEnd);
  cursor.at = stringEnd;
  return text;
}

function noteDecision(draft: Draft, member: string, text: string | undefined): void {
  if (text === undefined) return;
  switch (member) {
    case 'reservation':
    case 'tenant':
    case 'user':
    case 'key':
    case 'model':
    case 'route':
      draft[member] = text;
      break;
    default:
  }
}

function noteUsage(usage: UsageDraft, member: string, text: string | undefined, number: number | undefined): void {
  switch (member) {
    case 'model':
      usage.model = text;
      break;
    case 'prompt_tokens':
    case 'completion_tokens':
    case 'cached_tokens':
    case 'total_tokens':
      usage[member] = number ?? (text === undefined ? undefined : numberIn(text));
      break;
    default:
  }
}

/** Of text that is no plain whole number: NaN, so that nothing is believed of this usage. */
function numberIn(text: string): number {
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
}
