/** The fields of one CheckRequest that the reader has found: offsets into its bytes, and the headers in use. */

import { type HeaderValue, REPEATED } from '../decision/model.ts';
import * as Headers from './header-names.ts';
import { intern } from './intern.ts';
import { type Cursor, MALFORMED, readText } from './wire-read.ts';

/**
 * A longer header is never decoded to text, because no decision accepts one. The longest is a token of 16 KiB behind its
 * scheme and spaces (identity/credential.ts).
 */
const MAX_HEADER_BYTES = 16_640;
/** More alias headers than Envoy permits in a request. */
const MAX_ALIASES = 128;

/** The fields found, as offsets into the message. An end of 0 means absent, because no field can end there. */
export interface Draft extends Cursor {
  hasHttp: boolean;
  addressStart: number;
  addressEnd: number;
  methodStart: number;
  methodEnd: number;
  pathStart: number;
  pathEnd: number;
  bodyStart: number;
  bodyEnd: number;
  rawBodyStart: number;
  rawBodyEnd: number;
  /** The size that Envoy announces. A value above 2^63 is a negative number, which means unknown. */
  size: number;
  partial: boolean;
  /** Whether Envoy's configuration marks the route as one whose bodies are not sent. */
  notInspected: boolean;
  /** Whether Envoy's configuration marks the check as one that must change nothing. */
  shadow: boolean;
  /** Whether Envoy's configuration marks the check as one with every spelling of the guarded headers. */
  hasAllAliases: boolean;
  aliases: string[] | undefined;
  /** Start and end of each `x-forwarded-for`, in order. */
  forwardedFor: number[] | undefined;
}

/**
 * For each slot: the number of occurrences, and the start and end of the value. The reader reads one message at a time.
 */
const slots = new Int32Array(Headers.SLOT_COUNT * 3);

/** Begins a message, and discards the headers of the message before it. */
export function newDraft(bytes: Buffer): Draft {
  slots.fill(0);
  return {
    bytes,
    at: 0,
    hasHttp: false,
    addressStart: 0,
    addressEnd: 0,
    methodStart: 0,
    methodEnd: 0,
    pathStart: 0,
    pathEnd: 0,
    bodyStart: 0,
    bodyEnd: 0,
    rawBodyStart: 0,
    rawBodyEnd: 0,
    size: 0,
    partial: false,
    notInspected: false,
    shadow: false,
    hasAllAliases: false,
    aliases: undefined,
    forwardedFor: undefined,
  };
}

/** Records one header: the offsets of its name and of its value. */
export function noteHeader(draft: Draft, keyStart: number, keyEnd: number, valueStart: number, valueEnd: number): void {
  const slot = Headers.classify(draft.bytes, keyStart, keyEnd);
  if (slot === Headers.OTHER) return;
  if (slot === Headers.ALIAS) {
    draft.aliases ??= [];
    if (draft.aliases.length >= MAX_ALIASES) throw MALFORMED;
    draft.aliases.push(readText(draft.bytes, keyStart, keyEnd).toLowerCase());
    return;
  }
  const at = slot * 3;
  slots[at] = (slots[at] ?? 0) + 1;
  slots[at + 1] = valueStart;
  slots[at + 2] = valueEnd;
  if (slot === Headers.FORWARDED_FOR) {
    draft.forwardedFor ??= [];
    draft.forwardedFor.push(valueStart, valueEnd);
  } else if (slot === Headers.PARTIAL_BODY && isTrue(draft.bytes, valueStart, valueEnd)) draft.partial = true;
}

function isTrue(bytes: Buffer, start: number, end: number): boolean {
  return end - start === 4 && bytes.toString('latin1', start, end) === 'true';
}

/** More digits than any length has, and few enough for an exact number. */
const MAX_DIGITS = 15;

/**
 * Returns the number in a slot's header: 0 if it is absent, Infinity if it is repeated or has other characters than
 * digits.
 */
export function numberOf(bytes: Buffer, slot: number): number {
  const count = slots[slot * 3] ?? 0;
  if (count === 0) return 0;
  const start = slots[slot * 3 + 1] ?? 0;
  const end = slots[slot * 3 + 2] ?? 0;
  if (count > 1 || end === start || end - start > MAX_DIGITS) return Number.POSITIVE_INFINITY;
  let value = 0;
  for (let at = start; at < end; at++) {
    const digit = (bytes[at] ?? 0) - 0x30;
    if (digit < 0 || digit > 9) return Number.POSITIVE_INFINITY;
    value = value * 10 + digit;
  }
  return value;
}

export function hasHeader(slot: number): boolean {
  return (slots[slot * 3] ?? 0) > 0;
}

export function headerOf(bytes: Buffer, slot: number): HeaderValue {
  const count = slots[slot * 3] ?? 0;
  if (count === 0) return undefined;
  const start = slots[slot * 3 + 1] ?? 0;
  const end = slots[slot * 3 + 2] ?? 0;
  if (count > 1 || end - start > MAX_HEADER_BYTES) return REPEATED;
  return isInterned(slot) ? intern(bytes, start, end) : readText(bytes, start, end);
}

/** The headers whose values repeat between requests and are no credentials. */
function isInterned(slot: number): boolean {
  return (
    slot !== Headers.AUTHORIZATION &&
    slot !== Headers.REQUEST_ID &&
    slot !== Headers.X_API_KEY &&
    slot !== Headers.API_KEY
  );
}

/** Returns the `traceparent` of the message that was read last; undefined if it is absent or repeated. */
export function traceparentOf(bytes: Buffer): string | undefined {
  const header = headerOf(bytes, Headers.TRACEPARENT);
  return typeof header === 'string' ? header : undefined;
}
