/**
 * A strict JSON reader over bytes (RFC 8259), with four at once where it is quick: it validates and skips, and allocates nothing. Every function takes the position where
 * its part begins and returns the position after it, or `~position` (negative) of the byte where the text stops being JSON.
 */

import { hexDigit, isFileMember, isInlineFile } from './inline-files.ts';
import { BYTES_PER_TOKEN } from './limits.ts';

/** Objects and arrays within one another, the outermost included. */
export const MAX_DEPTH = 128;

export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
export const OPEN_OBJECT = 0x7b;
export const CLOSE_OBJECT = 0x7d;
export const OPEN_ARRAY = 0x5b;
export const CLOSE_ARRAY = 0x5d;

/** A text to read. */
export interface JsonText {
  readonly bytes: Uint8Array;
  /** The same bytes, for reading four at once. */
  readonly words: DataView;
  readonly end: number;
  /** Bytes that the escapes read so far take beyond the bytes of their characters in UTF-8. */
  escapeBytes: number;
  /** Bytes of the text read so far; see `skipText` and `skipValue`. */
  promptBytes: number;
  /** Inline files read so far. They are not part of the text. */
  inlineFiles: number;
}

export function jsonText(bytes: Uint8Array): JsonText {
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { bytes, words, end: bytes.length, escapeBytes: 0, promptBytes: 0, inlineFiles: 0 };
}

/** The byte at a position; 0, which is valid nowhere, after the end. */
export function byteAt({ bytes, end }: JsonText, at: number): number {
  return at < end ? (bytes[at] ?? 0) : 0;
}

export function skipSpace({ bytes, end }: JsonText, start: number): number {
  let at = start;
  while (at < end) {
    const code = bytes[at] ?? 0;
    if (code > 0x20 || (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09)) return at;
    at++;
  }
  return at;
}

function isContinuation(code: number): boolean {
  return (code & 0xc0) === 0x80;
}

/** The length of the multi-byte character at a position, 0 where it is not UTF-8 (RFC 3629: no overlong form, no surrogate). */
function characterLength(text: JsonText, at: number): number {
  const lead = byteAt(text, at);
  const second = byteAt(text, at + 1);
  if (lead < 0xc2 || lead > 0xf4 || !isContinuation(second)) return 0;
  if (lead < 0xe0) return 2;
  if (!isContinuation(byteAt(text, at + 2))) return 0;
  if (lead < 0xf0) return (lead === 0xe0 && second < 0xa0) || (lead === 0xed && second > 0x9f) ? 0 : 3;
  if (!isContinuation(byteAt(text, at + 3))) return 0;
  return (lead === 0xf0 && second < 0x90) || (lead === 0xf4 && second > 0x8f) ? 0 : 4;
}

function isHexDigit(code: number): boolean {
  const lower = code | 0x20;
  return (code >= 0x30 && code <= 0x39) || (lower >= 0x61 && lower <= 0x66);
}

/** The length of an escape by the byte after its backslash, 0 where there is no such escape. */
const ESCAPE_LENGTH = new Uint8Array(256);
for (const letter of '"\\/bfnrt') ESCAPE_LENGTH[letter.charCodeAt(0)] = 2;
ESCAPE_LENGTH[LETTER_U] = 6;

/** Bytes of the longest escape of one byte, `\u0061`: a string between quotes takes at most so many times the bytes of its text. */
export const MAX_ESCAPE_BYTES = 6;

/** The length of the escape at a backslash, 0 where there is none. */
function escapeLength(text: JsonText, at: number): number {
  const length = ESCAPE_LENGTH[byteAt(text, at + 1)] ?? 0;
  for (let i = 2; i < length; i++) if (!isHexDigit(byteAt(text, at + i))) return 0;
  return length;
}

/** Whether an ASCII character may stand in a string as it is. */
function isPlain(code: number): boolean {
  return code >= 0x20 && code < 0x80 && code !== QUOTE && code !== BACKSLASH;
}

/**
 * Where four bytes hold one that is not plain its highest bit is set in what this returns, and no bit before the first such byte. In
 * `x - 0x20` per byte the highest bit is set where a byte below 0x80 is below 0x20, in `(x ^ c) - 0x01` where it equals `c`, in `x` where
 * it is not ASCII. A borrow comes only out of a byte that is not plain itself, so it can add bits behind the first alone.
 * @param x four bytes, the first one lowest
 */
function notPlain(x: number): number {
  const controls = x - 0x20202020;
  const quotes = (x ^ 0x22222222) - 0x01010101;
  const backslashes = (x ^ 0x5c5c5c5c) - 0x01010101;
  return (controls | quotes | backslashes | x) & 0x80808080;
}

/** Plain characters, four at a time: most of a body is the text of messages. Ends at the first that is not plain. */
export function skipPlain({ bytes, words, end }: JsonText, start: number): number {
  const last = end - 4;
  let at = start;
  while (at <= last - 4 && (notPlain(words.getInt32(at, true)) | notPlain(words.getInt32(at + 4, true))) === 0) at += 8;
  while (at <= last && notPlain(words.getInt32(at, true)) === 0) at += 4;
  if (at <= last) {
    const found = notPlain(words.getInt32(at, true));
    return at + ((31 - Math.clz32(found & -found)) >> 3);
  }
  while (at < end && isPlain(bytes[at] ?? 0)) at++;
  return at;
}

/** Returns the bytes in UTF-8 of the character that a valid escape stands for; each half of a surrogate pair has half of the pair's four. */
function escapedBytes({ bytes }: JsonText, at: number): number {
  if (bytes[at + 1] !== LETTER_U) return 1;
  const high = (hexDigit(bytes[at + 2]) << 4) | hexDigit(bytes[at + 3]);
  if (high === 0) return hexDigit(bytes[at + 4]) < 8 ? 1 : 2;
  return high < 0x08 || (high >= 0xd8 && high <= 0xdf) ? 2 : 3;
}

/** The rest of a string. @param start any position between its quotes where a character begins */
export function skipString(text: JsonText, start: number): number {
  let at = start;
  for (;;) {
    at = skipPlain(text, at);
    const code = byteAt(text, at);
    if (code === QUOTE) return at + 1;
    const length = code === BACKSLASH ? escapeLength(text, at) : characterLength(text, at);
    if (length === 0) return ~at;
    if (code === BACKSLASH) text.escapeBytes += length - escapedBytes(text, at);
    at += length;
  }
}

/**
 * Skips the rest of a string, and counts the bytes of its text in UTF-8.
 * @param start the position after its opening quote
 */
export function skipText(text: JsonText, start: number): number {
  const plainEnd = skipPlain(text, start);
  if (byteAt(text, plainEnd) === QUOTE) {
    text.promptBytes += plainEnd - start;
    return plainEnd + 1;
  }
  const { escapeBytes } = text;
  const after = skipString(text, plainEnd);
  if (after >= 0) text.promptBytes += after - 1 - start - (text.escapeBytes - escapeBytes);
  return after;
}

/** Skips the rest of a string that may be an inline file. One that is none counts as text. */
function skipFile(text: JsonText, start: number): number {
  const { promptBytes } = text;
  const after = skipText(text, start);
  if (after < 0 || !isInlineFile(text.bytes, start, after - 1)) return after;
  text.promptBytes = promptBytes;
  text.inlineFiles++;
  return after;
}

function skipDigits({ bytes, end }: JsonText, start: number): number {
  let at = start;
  while (at < end && ((bytes[at] ?? 0) ^ 0x30) < 10) at++;
  return at;
}

function skipNumber(text: JsonText, start: number): number {
  let at = byteAt(text, start) === 0x2d ? start + 1 : start;
  const whole = at;
  at = byteAt(text, at) === 0x30 ? at + 1 : skipDigits(text, at);
  if (at === whole) return ~at;
  const after = byteAt(text, at);
  // Most numbers end here: a comma, a bracket and white space are all below.
  if (after < 0x2e) return at;
  if (after === 0x2e) {
    const fraction = at + 1;
    at = skipDigits(text, fraction);
    if (at === fraction) return ~at;
  }
  if ((byteAt(text, at) | 0x20) === 0x65) {
    const sign = byteAt(text, at + 1);
    const exponent = sign === 0x2b || sign === 0x2d ? at + 2 : at + 1;
    at = skipDigits(text, exponent);
    if (at === exponent) return ~at;
  }
  return at;
}

function skipWord(text: JsonText, start: number, word: string): number {
  for (let i = 0; i < word.length; i++) if (byteAt(text, start + i) !== word.charCodeAt(i)) return ~(start + i);
  return start + word.length;
}

function skipScalar(text: JsonText, at: number): number {
  switch (byteAt(text, at)) {
    case QUOTE:
      return skipText(text, at + 1);
    case 0x74:
      return skipWord(text, at, 'true');
    case 0x66:
      return skipWord(text, at, 'false');
    case 0x6e:
      return skipWord(text, at, 'null');
    default:
      return skipNumber(text, at);
  }
}

/** The colon after a member's name. @returns the position of the value */
export function skipColon(text: JsonText, start: number): number {
  const colon = skipSpace(text, start);
  return byteAt(text, colon) === COLON ? skipSpace(text, colon + 1) : ~colon;
}

/** Skips the name of a member below the top level, which counts as text. @returns the position of its colon, or of white space before it */
function skipName(text: JsonText, at: number): number {
  return byteAt(text, at) === QUOTE ? skipText(text, at + 1) : ~at;
}

/** What is open: the closing byte of each. Shared between calls, which never overlap. */
const open = new Uint8Array(MAX_DEPTH + 1);

/**
 * Any value, without recursion. Counts the text of its strings and of the names in it, its inline files, and each number in an array as
 * one token: prompts may be lists of token ids.
 * @param outer how many objects and arrays are open around it
 * @param holdsFile true if the value belongs to a member that may hold an inline file
 */
export function skipValue(text: JsonText, start: number, outer: number, holdsFile = false): number {
  let at = start;
  let depth = 0;
  let mayBeFile = holdsFile;
  for (;;) {
    const code = byteAt(text, at);
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      depth++;
      if (outer + depth > MAX_DEPTH) return ~at;
      const closing = code + 2;
      open[depth] = closing;
      mayBeFile = false;
      at = skipSpace(text, at + 1);
      if (byteAt(text, at) !== closing) {
        if (code === OPEN_ARRAY) continue;
        const nameEnd = skipName(text, at);
        if (nameEnd < 0) return nameEnd;
        mayBeFile = isFileMember(text.bytes, at + 1, nameEnd - 1);
        at = skipColon(text, nameEnd);
        if (at < 0) return at;
        continue;
      }
      depth--;
      at++;
    } else {
      at = mayBeFile && code === QUOTE ? skipFile(text, at + 1) : skipScalar(text, at);
      if (at < 0) return at;
      // Of the bytes that a scalar begins with, a quote, a minus and digits are below `:`.
      if (code < 0x3a && code !== QUOTE && depth > 0 && open[depth] === CLOSE_ARRAY) text.promptBytes += BYTES_PER_TOKEN;
    }
    // Closes all that ends here. A comma leads to the next value.
    for (;;) {
      if (depth === 0) return at;
      let next = byteAt(text, at);
      if (next <= 0x20) {
        at = skipSpace(text, at);
        next = byteAt(text, at);
      }
      const closing = open[depth];
      if (next === COMMA) {
        at++;
        if (byteAt(text, at) <= 0x20) at = skipSpace(text, at);
        mayBeFile = false;
        if (closing === CLOSE_OBJECT) {
          const nameEnd = skipName(text, at);
          if (nameEnd < 0) return nameEnd;
          mayBeFile = isFileMember(text.bytes, at + 1, nameEnd - 1);
          at = skipColon(text, nameEnd);
          if (at < 0) return at;
        }
        break;
      }
      if (next !== closing) return ~at;
      depth--;
      at++;
    }
  }
}

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** How many characters are put together one by one before a decoder is cheaper. */
const SHORT = 64;

/** The text between the quotes of a string that has been validated, unescaped. */
export function textOf({ bytes }: JsonText, start: number, end: number): string {
  let made = '';
  if (end - start <= SHORT) {
    let at = start;
    for (; at < end; at++) {
      const code = bytes[at] ?? 0;
      if (!isPlain(code)) break;
      made += String.fromCharCode(code);
    }
    if (at === end) return made;
  }
  const raw = utf8.decode(bytes.subarray(start, end));
  if (!raw.includes('\\')) return raw;
  const unescaped: unknown = JSON.parse(`"${raw}"`);
  return String(unescaped);
}
