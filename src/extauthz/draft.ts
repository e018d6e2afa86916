/** What the reader has seen of one CheckRequest so far: offsets into its bytes, and the headers in use. */

import { type HeaderValue, REPEATED } from '../decision/model.ts';
import * as Headers from './header-names.ts';
import { intern } from './intern.ts';
import { type Cursor, MALFORMED, readText } from './wire-read.ts';

/** A header longer than this is never made text: nothing that a decision accepts is. */
const MAX_HEADER_BYTES = 16_384;
/** More alias headers than Envoy lets any request have. */
const MAX_ALIASES = 128;

/** What has been seen so far, as offsets into the message; 0 as an end means absent, since no field can end there. */
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
  /** Announced by Envoy; above 2^63 it is a negative number, which means unknown. */
  size: number;
  partial: boolean;
  /** True when Envoy's configuration says of this route that its bodies are not sent. */
  notInspected: boolean;
  aliases: string[] | undefined;
  /** Start and end of each `x-forwarded-for`, in order. */
  forwardedFor: number[] | undefined;
}

/** Per slot: how often the header was seen, where its value starts, where it ends. One message is read at a time. */
const slots = new Int32Array(Headers.SLOT_COUNT * 3);

/** Begins a message. The one before it is over: its headers are forgotten. */
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
    aliases: undefined,
    forwardedFor: undefined,
  };
}

/** Takes note of one header: the offsets of its name and of its value. */
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

/** More digits than the length of anything has, few enough that a number holds them exactly. */
const MAX_DIGITS = 15;

/** The number in a slot's header: 0 when it is absent, Infinity when it is no number in digits alone or came more than once. */
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

/** Reports whether the header of a slot was seen. */
export function hasHeader(slot: number): boolean {
  return (slots[slot * 3] ?? 0) > 0;
}

/** The value of the header in a slot. */
export function headerOf(bytes: Buffer, slot: number): HeaderValue {
  const count = slots[slot * 3] ?? 0;
  if (count === 0) return undefined;
  const start = slots[slot * 3 + 1] ?? 0;
  const end = slots[slot * 3 + 2] ?? 0;
  if (count > 1 || end - start > MAX_HEADER_BYTES) return REPEATED;
  return isInterned(slot) ? intern(bytes, start, end) : readText(bytes, start, end);
}

/** Not what differs from request to request, and no credential. */
function isInterned(slot: number): boolean {
  return (
    slot !== Headers.AUTHORIZATION &&
    slot !== Headers.REQUEST_ID &&
    slot !== Headers.X_API_KEY &&
    slot !== Headers.API_KEY
  );
}

/** Returns the header `traceparent` of the message that was read last; undefined if it is absent or came more than once. */
export function traceparentOf(bytes: Buffer): string | undefined {
  const header = headerOf(bytes, Headers.TRACEPARENT);
  return typeof header === 'string' ? header : undefined;
}
