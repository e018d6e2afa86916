/**
 * Writes the headers about a client's request rate: those that OpenAI's clients read, and those of the IETF draft
 * (RateLimit, RateLimit-Policy).
 */

import type { RateState } from '../metering/rate-state.ts';
import { fillAscii } from './fill.ts';
import { headerName, putHeader, putResponseHeader } from './header-options.ts';
import { fieldsAt, withFields } from './ok-fields.ts';
import { beginWriting, finishWriting, type Writer } from './wire-write.ts';

const NAMES = {
  limit: headerName('x-ratelimit-limit-requests'),
  remaining: headerName('x-ratelimit-remaining-requests'),
  reset: headerName('x-ratelimit-reset-requests'),
  ratelimit: headerName('ratelimit'),
  policy: headerName('ratelimit-policy'),
};
/** Five headers with numbers of at most 16 digits. */
const MAX_BYTES = 1024;

/** Writes the headers of a denial. */
export function putRateHeaders(writer: Writer, rate: RateState): void {
  putAll(writer, rate, putHeader);
}

function putAll(
  writer: Writer,
  { limit, remaining, resetSeconds, windowSeconds }: RateState,
  put: typeof putHeader,
): void {
  put(writer, NAMES.policy, `"requests";q=${limit};w=${windowSeconds}`);
  put(writer, NAMES.ratelimit, `"requests";r=${remaining};t=${resetSeconds}`);
  put(writer, NAMES.reset, `${resetSeconds}s`);
  put(writer, NAMES.remaining, String(remaining));
  put(writer, NAMES.limit, String(limit));
}

/**
 * Returns an allow that adds these headers to the upstream's answer.
 * @param answer a CheckResponse whose `ok_response` begins, with its tag, at `okAt`
 */
export function withRateHeaders(answer: Buffer, okAt: number, rate: RateState): Buffer {
  const remaining = String(rate.remaining);
  const { bytes, first, second } = preparedFor(rate, remaining.length);
  const extended = withFields(answer, okAt, bytes);
  const at = fieldsAt(extended, okAt);
  fillAscii(extended, remaining, at + first, at + second, -1);
  return extended;
}

/** The five headers of answers that differ in the remaining number only, which has a fixed number of digits. */
interface Prepared {
  readonly bytes: Uint8Array;
  /** The offsets of the remaining number. */
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
const seconds = new Map<number, Second>();

function preparedFor(rate: RateState, digits: number): Prepared {
  const { limit, resetSeconds, windowSeconds } = rate;
  let second = seconds.get(limit);
  if (second === undefined || second.resetSeconds !== resetSeconds || second.windowSeconds !== windowSeconds) {
    if (seconds.size >= MAX_LIMITS) seconds.clear();
    second = { resetSeconds, windowSeconds, byDigits: [] };
    seconds.set(limit, second);
  }
  second.byDigits[digits] ??= prepare(rate, digits);
  return second.byDigits[digits];
}

/**
 * Writes the headers twice with different digits. The offsets at which they differ are those of the remaining number.
 */
function prepare(rate: RateState, digits: number): Prepared {
  const bytes = written(rate, Number('1'.repeat(digits)));
  const other = written(rate, Number('2'.repeat(digits)));
  const first = bytes.findIndex((byte, i) => byte !== other[i]);
  const second = bytes.findIndex((byte, i) => i >= first + digits && byte !== other[i]);
  return { bytes, first, second };
}

function written(rate: RateState, remaining: number): Buffer {
  const writer = beginWriting(MAX_BYTES);
  putAll(writer, { ...rate, remaining }, putResponseHeader);
  return finishWriting(writer);
}
