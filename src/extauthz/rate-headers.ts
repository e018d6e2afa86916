/**
 * Writes the headers about a client's rates of requests and of tokens: those that OpenAI's clients read, and for
 * requests those of the IETF draft (RateLimit, RateLimit-Policy).
 */

import type { RateState } from '../metering/rate-state.ts';
import { NO_HOLE } from './answer-template.ts';
import { fillAscii } from './fill.ts';
import { headerName, putHeader, putResponseHeader } from './header-options.ts';
import { beginWriting, finishWriting, putBytes, type Writer } from './wire-write.ts';

type Unit = 'requests' | 'tokens';

const namesOf = (unit: Unit) => ({
  limit: headerName(`x-ratelimit-limit-${unit}`),
  remaining: headerName(`x-ratelimit-remaining-${unit}`),
  reset: headerName(`x-ratelimit-reset-${unit}`),
});
const NAMES = { requests: namesOf('requests'), tokens: namesOf('tokens') };
const RATELIMIT = headerName('ratelimit');
const POLICY = headerName('ratelimit-policy');
/** Five headers with numbers of at most 16 digits. */
const MAX_BYTES = 1024;

/** Writes the headers of a denial. */
export function putRateHeaders(writer: Writer, rate: RateState, unit: Unit): void {
  putAll(writer, rate, unit, putHeader);
}

function putAll(
  writer: Writer,
  { limit, remaining, resetSeconds, windowSeconds }: RateState,
  unit: Unit,
  put: typeof putHeader,
): void {
  const names = NAMES[unit];
  if (unit === 'requests') {
    put(writer, POLICY, `"requests";q=${limit};w=${windowSeconds}`);
    put(writer, RATELIMIT, `"requests";r=${remaining};t=${resetSeconds}`);
  }
  put(writer, names.reset, `${resetSeconds}s`);
  put(writer, names.remaining, String(remaining));
  put(writer, names.limit, String(limit));
}

/** Writes the headers that an allow adds to the upstream's answer. */
export function putAddedRateHeaders(writer: Writer, rate: RateState, unit: Unit): void {
  const remaining = String(rate.remaining);
  const { bytes, first, second } = preparedFor(rate, unit, remaining.length);
  putBytes(writer, bytes);
  const { at } = writer;
  fillAscii(writer.bytes, remaining, at + first, second === NO_HOLE ? NO_HOLE : at + second, NO_HOLE);
}

/** The headers of answers that differ in the remaining number only, which has a fixed number of digits. */
interface Prepared {
  readonly bytes: Uint8Array;
  /** The offsets of the remaining number. The second is `NO_HOLE` if it occurs once. */
  readonly first: number;
  readonly second: number;
}

/** The prepared headers of one limit in one second, by the number of digits of the remaining number. */
interface Second {
  readonly resetSeconds: number;
  readonly windowSeconds: number;
  readonly byDigits: (Prepared | undefined)[];
}

const MAX_LIMITS = 4096;
const seconds = { requests: new Map<number, Second>(), tokens: new Map<number, Second>() };

function preparedFor(rate: RateState, unit: Unit, digits: number): Prepared {
  const { limit, resetSeconds, windowSeconds } = rate;
  const ofUnit = seconds[unit];
  let second = ofUnit.get(limit);
  if (second === undefined || second.resetSeconds !== resetSeconds || second.windowSeconds !== windowSeconds) {
    if (ofUnit.size >= MAX_LIMITS) ofUnit.clear();
    second = { resetSeconds, windowSeconds, byDigits: [] };
    ofUnit.set(limit, second);
  }
  second.byDigits[digits] ??= prepare(rate, unit, digits);
  return second.byDigits[digits];
}

/**
 * Writes the headers twice with different digits. The offsets at which they differ are those of the remaining number.
 */
function prepare(rate: RateState, unit: Unit, digits: number): Prepared {
  const bytes = written(rate, unit, Number('1'.repeat(digits)));
  const other = written(rate, unit, Number('2'.repeat(digits)));
  const first = bytes.findIndex((byte, i) => byte !== other[i]);
  const second = bytes.findIndex((byte, i) => i >= first + digits && byte !== other[i]);
  return { bytes, first, second };
}

function written(rate: RateState, unit: Unit, remaining: number): Buffer {
  const writer = beginWriting(MAX_BYTES);
  putAll(writer, { ...rate, remaining }, unit, putResponseHeader);
  return finishWriting(writer);
}
