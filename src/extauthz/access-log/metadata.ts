/**
 * Reads the dynamic metadata of an access-log entry: the metadata of the check's answer, and the usage that Envoy's
 * filters found in the upstream's answer.
 */

import { isAscii, isUtf8 } from 'node:buffer';
import { cutUtf8 } from '../../domain/text.ts';
import { type Cursor, MALFORMED, readLength, readTag, readText, skipField } from '../wire-read.ts';
import { readNativeUsage } from './native-usage.ts';
import { GATEWAY_COUNTS, isCount, USAGE_COUNTS, type UsageCount, type UsageDraft } from './usage.ts';

/**
 * Metadata namespaces: that of ext_authz, that of the usage filters of `envoy/*.yaml`, that of Envoy AI Gateway, and
 * the typed one of Envoy's own counter. Only filters in Envoy write metadata.
 */
const EXT_AUTHZ = 'envoy.filters.http.ext_authz';
export const USAGE_NAMESPACE = 'postern.usage';
const GATEWAY_NAMESPACE = 'io.envoy.ai_gateway';
const NATIVE_NAMESPACE = 'envoy.ai.token_usage';

/** Field tags: number << 3 | wire type. */
const MESSAGE_1 = 0x0a;
const MESSAGE_2 = 0x12;
const STRING_3 = 0x1a;
const DOUBLE_2 = 0x11;

/** The length of names and identifiers, in bytes of UTF-8. A longer name is cut. Postern has no longer identifier. */
export const MAX_TEXT_BYTES = 512;
/** The length of namespaces and members, in bytes. Every name in use is shorter. */
const MAX_MEMBER_BYTES = 64;
/** Far more than the text of a request's charges has. */
const MAX_CHARGES_BYTES = 8192;

export interface MetadataDraft {
  reservation: string | undefined;
  tenant: string | undefined;
  user: string | undefined;
  key: string | undefined;
  model: string | undefined;
  route: string | undefined;
  charges: string | undefined;
  usage: UsageDraft;
}

/**
 * Metadata: filter_metadata = 1, a map of namespace to Struct, typed_filter_metadata = 2, a map of namespace to Any.
 * Throws `MALFORMED`.
 */
export function readMetadata(cursor: Cursor, end: number, draft: MetadataDraft): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === MESSAGE_1) readNamespace(cursor, readLength(cursor, end), draft);
    else if (tag === MESSAGE_2) readTypedNamespace(cursor, readLength(cursor, end), draft.usage);
    else skipField(cursor, tag, end);
  }
}

/** A map entry: key = 1, value = 2 (Struct). Only the members of namespaces in use are read. */
function readNamespace(cursor: Cursor, end: number, draft: MetadataDraft): void {
  const { name, start, valueEnd } = readPair(cursor, end);
  if (start < 0) return;
  const value: Cursor = { bytes: cursor.bytes, at: start };
  if (name === EXT_AUTHZ) readStruct(value, valueEnd, (member, content) => noteDecision(draft, member, content));
  else if (name === USAGE_NAMESPACE)
    readStruct(value, valueEnd, (member, content) => noteUsage(draft.usage, member, content));
  else if (name === GATEWAY_NAMESPACE)
    readStruct(value, valueEnd, (member, content) => noteGateway(draft.usage, member, content));
}

/** A map entry: key = 1, value = 2 (Any). */
function readTypedNamespace(cursor: Cursor, end: number, usage: UsageDraft): void {
  const { name, start, valueEnd } = readPair(cursor, end);
  if (start < 0 || name !== NATIVE_NAMESPACE) return;
  const native = readNativeUsage({ bytes: cursor.bytes, at: start }, valueEnd);
  usage.native = native?.counts;
  usage.nativeModel = native?.model === undefined ? undefined : nameIn({ kind: 'text', ...native.model });
}

/** Reads a map entry's key, and the offsets of its value. Key and value may come in either order. */
function readPair(cursor: Cursor, end: number): { name: string; start: number; valueEnd: number } {
  const pair = { name: '', start: -1, valueEnd: -1 };
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === MESSAGE_1) {
      const nameEnd = readLength(cursor, end);
      // No name in use is longer.
      pair.name = nameEnd - cursor.at > MAX_MEMBER_BYTES ? '' : readText(cursor.bytes, cursor.at, nameEnd);
      cursor.at = nameEnd;
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

/** A Value: a number, or the offsets of its text. Metering uses no other kinds. */
type Content =
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'text'; readonly bytes: Buffer; readonly start: number; readonly end: number }
  | { readonly kind: 'other' };

const OTHER: Content = { kind: 'other' };

type Note = (member: string, content: Content) => void;

/** Struct: fields = 1, a map of name to Value. */
function readStruct(cursor: Cursor, end: number, take: Note): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag !== MESSAGE_1) {
      skipField(cursor, tag, end);
      continue;
    }
    const { name, start, valueEnd } = readPair(cursor, readLength(cursor, end));
    if (start >= 0) take(name, readValue({ bytes: cursor.bytes, at: start }, valueEnd));
  }
}

/** Value, one of: number_value = 2, string_value = 3. */
function readValue(cursor: Cursor, end: number): Content {
  let content = OTHER;
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === DOUBLE_2) {
      if (cursor.at + 8 > end) throw MALFORMED;
      content = { kind: 'number', value: cursor.bytes.readDoubleLE(cursor.at) };
      cursor.at += 8;
    } else if (tag === STRING_3) {
      const textEnd = readLength(cursor, end);
      content = { kind: 'text', bytes: cursor.bytes, start: cursor.at, end: textEnd };
      cursor.at = textEnd;
    } else {
      content = OTHER;
      skipField(cursor, tag, end);
    }
  }
  return content;
}

function noteDecision(draft: MetadataDraft, member: string, content: Content): void {
  switch (member) {
    case 'reservation':
    case 'tenant':
    case 'user':
    case 'key':
      draft[member] = identifierIn(content);
      break;
    case 'model':
    case 'route':
      draft[member] = nameIn(content);
      break;
    case 'charges':
      draft.charges = asciiIn(content);
      break;
    default:
  }
}

function noteUsage(usage: UsageDraft, member: string, content: Content): void {
  if (member === 'model') usage.model = nameIn(content);
  else if (member === 'response_id') usage.responseId = identifierIn(content);
  else if (member === 'response_status') usage.responseStatus = identifierIn(content);
  else if (content.kind !== 'number') return;
  else if (member === 'text_bytes') usage.textBytes = isBytes(content.value) ? content.value : undefined;
  else if (member === 'hidden') usage.hidden = true;
  else if (member === 'response_background') usage.responseBackground = true;
  else if (isCountName(member) && isCount(content.value)) usage.counts[member] = content.value;
}

function noteGateway(usage: UsageDraft, member: string, content: Content): void {
  const count = GATEWAY_COUNTS.get(member);
  if (member === 'response_model') usage.gatewayModel = nameIn(content);
  else if (count !== undefined && content.kind === 'number' && isCount(content.value))
    usage.gateway[count] = content.value;
}

function isCountName(member: string): member is UsageCount {
  return USAGE_COUNTS.some((name) => name === member);
}

function isBytes(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/**
 * Returns an identifier that Postern wrote; undefined if the text is no such identifier, so that no usage is booked
 * under another one.
 */
function identifierIn(content: Content): string | undefined {
  if (content.kind !== 'text' || content.end - content.start > MAX_TEXT_BYTES) return undefined;
  const { bytes, start, end } = content;
  return isUtf8(bytes.subarray(start, end)) ? bytes.toString('utf8', start, end) : undefined;
}

/** Returns a text of ASCII that Postern wrote; undefined for any other. */
function asciiIn(content: Content): string | undefined {
  if (content.kind !== 'text' || content.end - content.start > MAX_CHARGES_BYTES) return undefined;
  const { bytes, start, end } = content;
  return isAscii(bytes.subarray(start, end)) ? bytes.toString('latin1', start, end) : undefined;
}

/** Returns a name that a client or an upstream chose, cut to its bound, with U+FFFD for bytes that are not UTF-8. */
function nameIn(content: Content): string | undefined {
  if (content.kind !== 'text') return undefined;
  const { bytes, start, end } = content;
  let cut = Math.min(end, start + MAX_TEXT_BYTES);
  // A character that crosses the bound is left out. It has at most three bytes after its first.
  for (let i = 0; i < 3 && cut < end && ((bytes[cut] ?? 0) & 0xc0) === 0x80; i++) cut -= 1;
  return cutUtf8(readText(bytes, start, cut), MAX_TEXT_BYTES);
}
