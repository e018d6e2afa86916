/**
 * Reads Envoy's `envoy.service.auth.v3.CheckRequest` from its bytes. It reads only the fields that a decision uses, and
 * builds no message object.
 *
 * The rules of Protocol Buffers apply: the reader skips unknown fields, takes the last of a repeated scalar, and merges
 * a repeated message. It is stricter in one respect: a header that is present twice, even under one key of a map, is
 * `REPEATED`, because its sender may have meant either value.
 */

import { DEFAULT_MAX_BODY_BYTES } from './bounds.ts';
import { type CheckRequest, requestOf } from './check-input.ts';
import { type Draft, newDraft, noteHeader } from './draft.ts';
import { MALFORMED, readLength, readTag, readVarint, requireUtf8, skipField } from './wire-read.ts';

/**
 * The entry of `context_extensions` by which Envoy's configuration marks a route whose bodies are not sent. No client
 * can set it. Without it, a request without Content-Length on such a route looks like one with an empty body.
 */
const BODY_MARK = Buffer.from('postern.body');
const BODY_NOT_SENT = Buffer.from('not_sent');
/**
 * The entry by which Envoy's configuration marks that a check contains every spelling of the guarded headers that the
 * request has. Without it, an allow also removes spellings that the check did not contain.
 */
const HEADERS_MARK = Buffer.from('postern.headers');
const HEADERS_SENT = Buffer.from('sent');

/**
 * The entry of `context_extensions` by which Envoy's configuration marks checks in shadow mode, which change nothing. An
 * entry with another value makes the message malformed, so a misspelled mode allows nothing.
 */
const MODE_MARK = Buffer.from('postern.mode');
const SHADOW = Buffer.from('shadow');

/** The kind `malformed` is a message that is no CheckRequest, or one without HTTP attributes. */
export type CheckMessage = { readonly kind: 'malformed'; readonly shadow: boolean } | CheckRequest;

const MALFORMED_MESSAGE: CheckMessage = Object.freeze({ kind: 'malformed', shadow: false });
const MALFORMED_SHADOW: CheckMessage = Object.freeze({ kind: 'malformed', shadow: true });

/** Field tags: number << 3 | wire type. */
const STRING_1 = 0x0a;
const STRING_2 = 0x12;
const STRING_3 = 0x1a;
const STRING_4 = 0x22;
const VARINT_9 = 0x48;
const MESSAGE_10 = 0x52;
const STRING_11 = 0x5a;
const BYTES_12 = 0x62;
const MESSAGE_13 = 0x6a;

/**
 * Reads one CheckRequest. The input's `body` is a view of `bytes`; everything else is copied. Never throws.
 * @param trustedHops the number of proxies in front of Envoy whose entries of `X-Forwarded-For` count; 0 = the
 * connection's peer is the client
 * @param maxBodyBytes a longer body counts as partial
 */
export function readCheckRequest(
  bytes: Buffer,
  trustedHops: number,
  maxBodyBytes = DEFAULT_MAX_BODY_BYTES,
): CheckMessage {
  const draft = newDraft(bytes);
  try {
    readMessage(draft, bytes.length);
    if (!draft.hasHttp) return malformed(bytes);
    return requestOf(draft, trustedHops, maxBodyBytes);
  } catch (error) {
    if (error === MALFORMED) return malformed(bytes);
    throw error;
  }
}

/** Reads only the marks, because the error may be in a field before them. */
function malformed(bytes: Buffer): CheckMessage {
  const draft = newDraft(bytes);
  try {
    while (draft.at < bytes.length) {
      const tag = readTag(draft, bytes.length);
      if (tag === STRING_1) readMarks(draft, readLength(draft, bytes.length));
      else skipField(draft, tag, bytes.length);
    }
  } catch (error) {
    if (error === MALFORMED) return MALFORMED_MESSAGE;
    throw error;
  }
  return draft.shadow ? MALFORMED_SHADOW : MALFORMED_MESSAGE;
}

function readMarks(draft: Draft, end: number): void {
  while (draft.at < end) {
    const tag = readTag(draft, end);
    if (tag === MESSAGE_10) readContext(draft, readLength(draft, end));
    else skipField(draft, tag, end);
  }
}

/** CheckRequest: attributes = 1. */
function readMessage(draft: Draft, end: number): void {
  while (draft.at < end) {
    const tag = readTag(draft, end);
    if (tag === STRING_1) readAttributes(draft, readLength(draft, end));
    else skipField(draft, tag, end);
  }
}

/** AttributeContext: source = 1, request = 4, context_extensions = 10. */
function readAttributes(draft: Draft, end: number): void {
  while (draft.at < end) {
    const tag = readTag(draft, end);
    if (tag === STRING_1) readPeer(draft, readLength(draft, end));
    else if (tag === STRING_4) readRequest(draft, readLength(draft, end));
    else if (tag === MESSAGE_10) readContext(draft, readLength(draft, end));
    else skipField(draft, tag, end);
  }
}

/** One entry of the map: key = 1, value = 2. */
function readContext(draft: Draft, end: number): void {
  let keyStart = draft.at;
  let keyEnd = keyStart;
  let valueStart = keyStart;
  let textEnd = keyStart;
  while (draft.at < end) {
    const tag = readTag(draft, end);
    if (tag !== STRING_1 && tag !== STRING_2) {
      skipField(draft, tag, end);
      continue;
    }
    const valueEnd = readLength(draft, end);
    if (tag === STRING_1) [keyStart, keyEnd] = [draft.at, valueEnd];
    else [valueStart, textEnd] = [draft.at, valueEnd];
    draft.at = valueEnd;
  }
  const { bytes } = draft;
  const isKey = (name: Buffer): boolean => holds(bytes, keyStart, keyEnd, name);
  const isValue = (text: Buffer): boolean => holds(bytes, valueStart, textEnd, text);
  if (isKey(BODY_MARK)) draft.notInspected = isValue(BODY_NOT_SENT);
  else if (isKey(HEADERS_MARK)) draft.hasAllAliases = isValue(HEADERS_SENT);
  else if (isKey(MODE_MARK)) {
    if (!isValue(SHADOW)) throw MALFORMED;
    draft.shadow = true;
  }
}

function holds(bytes: Buffer, start: number, end: number, text: Buffer): boolean {
  return end - start === text.length && bytes.compare(text, 0, text.length, start, end) === 0;
}

/** AttributeContext.Peer: address = 1. */
function readPeer(draft: Draft, end: number): void {
  while (draft.at < end) {
    const tag = readTag(draft, end);
    if (tag === STRING_1) readAddress(draft, readLength(draft, end));
    else skipField(draft, tag, end);
  }
}

/** Address, one of: socket_address = 1, pipe = 2, envoy_internal_address = 3. The last one is the address. */
function readAddress(draft: Draft, end: number): void {
  while (draft.at < end) {
    const tag = readTag(draft, end);
    if (tag === STRING_1) {
      readSocketAddress(draft, readLength(draft, end));
      continue;
    }
    if (tag === STRING_2 || tag === STRING_3) draft.addressEnd = 0;
    skipField(draft, tag, end);
  }
}

/** SocketAddress: address = 2. */
function readSocketAddress(draft: Draft, end: number): void {
  while (draft.at < end) {
    const tag = readTag(draft, end);
    if (tag !== STRING_2) {
      skipField(draft, tag, end);
      continue;
    }
    const valueEnd = readString(draft, end);
    draft.addressStart = draft.at;
    draft.addressEnd = valueEnd;
    draft.at = valueEnd;
  }
}

/** AttributeContext.Request: http = 2. */
function readRequest(draft: Draft, end: number): void {
  while (draft.at < end) {
    const tag = readTag(draft, end);
    if (tag === STRING_2) {
      draft.hasHttp = true;
      readHttp(draft, readLength(draft, end));
    } else skipField(draft, tag, end);
  }
}

/**
 * AttributeContext.HttpRequest: method = 2, headers = 3, path = 4, size = 9, body = 11, raw_body = 12, header_map = 13.
 */
function readHttp(draft: Draft, end: number): void {
  while (draft.at < end) {
    const tag = readTag(draft, end);
    switch (tag) {
      case STRING_3:
        readHeader(draft, readLength(draft, end), false);
        continue;
      case MESSAGE_13:
        readHeaderMap(draft, readLength(draft, end));
        continue;
      case VARINT_9:
        draft.size = readVarint(draft, end);
        continue;
      case STRING_2:
      case STRING_4:
      case STRING_11:
      case BYTES_12:
        readHttpBytes(draft, tag, end);
        continue;
      default:
        skipField(draft, tag, end);
    }
  }
}

function readHttpBytes(draft: Draft, tag: number, end: number): void {
  const valueEnd = tag === BYTES_12 ? readLength(draft, end) : readString(draft, end);
  switch (tag) {
    case STRING_2:
      draft.methodStart = draft.at;
      draft.methodEnd = valueEnd;
      break;
    case STRING_4:
      draft.pathStart = draft.at;
      draft.pathEnd = valueEnd;
      break;
    case STRING_11:
      draft.bodyStart = draft.at;
      draft.bodyEnd = valueEnd;
      break;
    default:
      draft.rawBodyStart = draft.at;
      draft.rawBodyEnd = valueEnd;
  }
  draft.at = valueEnd;
}

/** HeaderMap: headers = 1. */
function readHeaderMap(draft: Draft, end: number): void {
  while (draft.at < end) {
    const tag = readTag(draft, end);
    if (tag === STRING_1) readHeader(draft, readLength(draft, end), true);
    else skipField(draft, tag, end);
  }
}

/**
 * One entry of the map (key = 1, value = 2), or a HeaderValue, which also has raw_value = 3. A raw value takes
 * precedence.
 */
function readHeader(draft: Draft, end: number, hasRawValue: boolean): void {
  if (!readPlainHeader(draft, end, hasRawValue)) readAnyHeader(draft, end, hasRawValue);
}

/**
 * Reads the form that Envoy writes, if both parts are shorter than 128 bytes: the key, then the value or the raw value.
 * @returns false, without having read anything, for another form
 */
function readPlainHeader(draft: Draft, end: number, hasRawValue: boolean): boolean {
  const { bytes } = draft;
  const keyStart = draft.at + 2;
  if (keyStart > end || bytes[draft.at] !== STRING_1) return false;
  const keyEnd = keyStart + (bytes[keyStart - 1] ?? 0);
  const valueStart = keyEnd + 2;
  if (keyEnd - keyStart >= 0x80 || valueStart > end) return false;
  const tag = bytes[keyEnd];
  const length = bytes[keyEnd + 1] ?? 0;
  const isRaw = tag === STRING_3 && hasRawValue;
  if (length >= 0x80 || valueStart + length !== end || !(isRaw || tag === STRING_2)) return false;
  requireUtf8(bytes, keyStart, keyEnd);
  if (!isRaw) requireUtf8(bytes, valueStart, end);
  noteHeader(draft, keyStart, keyEnd, valueStart, end);
  draft.at = end;
  return true;
}

function readAnyHeader(draft: Draft, end: number, hasRawValue: boolean): void {
  let keyStart = draft.at;
  let keyEnd = keyStart;
  let valueStart = keyStart;
  let valueEnd = keyStart;
  let rawStart = keyStart;
  let rawEnd = keyStart;
  while (draft.at < end) {
    const tag = readTag(draft, end);
    if (tag === STRING_1) {
      keyEnd = readString(draft, end);
      keyStart = draft.at;
      draft.at = keyEnd;
    } else if (tag === STRING_2) {
      valueEnd = readString(draft, end);
      valueStart = draft.at;
      draft.at = valueEnd;
    } else if (tag === STRING_3 && hasRawValue) {
      rawEnd = readLength(draft, end);
      rawStart = draft.at;
      draft.at = rawEnd;
    } else skipField(draft, tag, end);
  }
  const raw = rawEnd > rawStart;
  noteHeader(draft, keyStart, keyEnd, raw ? rawStart : valueStart, raw ? rawEnd : valueEnd);
}

/** Reads a length and checks that the bytes of that length are UTF-8. Returns the offset of their end. */
function readString(draft: Draft, end: number): number {
  const valueEnd = readLength(draft, end);
  requireUtf8(draft.bytes, draft.at, valueEnd);
  return valueEnd;
}
