/**
 * A strict JSON reader over bytes (RFC 8259), which reads four at once where it can. It validates and skips, and
 * allocates nothing. Every function takes the position where its part begins and returns the position after it, or
 * `~position` (negative) of the byte where the text stops being JSON. The reader takes any byte above 0x7f in a string:
 * `isUtf8` checks the encoding of the whole text.
 */

import { hexDigit, isFileMember, isInlineFile } from './inline-files.ts';
import { BYTES_PER_TOKEN } from './limits.ts';

/** Deepest nesting of objects and arrays, the outermost included. */
export const MAX_DEPTH = 128;

export const QUOTE = 0x22;
export const COMMA = 0x2c;
const COLON = 0x3a;
export const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
const LETTER_E = 0x65;
const PLUS = 0x2b;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
export const OPEN_OBJECT = 0x7b;
export const CLOSE_OBJECT = 0x7d;
export const OPEN_ARRAY = 0x5b;
export const CLOSE_ARRAY = 0x5d;

export interface JsonText {
  readonly bytes: Uint8Array;
  /** The same bytes, for reading four at once. */
  readonly words: DataView;
  readonly end: number;
  /** Bytes that the escapes read so far take beyond the bytes of their characters in UTF-8. */
  escapeBytes: number;
  /** Bytes of the text read so far; see `skipText` and `skipValue`. */
  promptBytes: number;
  /**
   * False if a string read so far has a byte that is not ASCII. Only then the encoding of the whole text must be
   * checked.
   */
  isAscii: boolean;
  /** Inline files read so far. They are not part of the text. */
  inlineFiles: number;
}

export function jsonText(bytes: Uint8Array): JsonText {
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { bytes, words, end: bytes.length, escapeBytes: 0, promptBytes: 0, isAscii: true, inlineFiles: 0 };
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

/** For each byte of a string in valid UTF-8, what it may be there. */
const STRING_BYTES = new Uint8Array(256);
const BEGINS_ESCAPE = 1;
/** Makes an escape of two bytes with a backslash before it. */
const ENDS_ESCAPE = 2;
/** A quote or a control, which is no character of the string. */
const ENDS_STRING = 4;
STRING_BYTES.fill(ENDS_STRING, 0, 0x20);
for (const letter of '"\\/bfnrt') STRING_BYTES[letter.charCodeAt(0)] = ENDS_ESCAPE;
STRING_BYTES[QUOTE] = ENDS_ESCAPE | ENDS_STRING;
STRING_BYTES[BACKSLASH] = ENDS_ESCAPE | BEGINS_ESCAPE;
/** Bytes that are read one by one after each escape. */
const NEAR_BYTES = 8;

/**
 * Bytes of the longest escape of one byte, `\u0061`: a string between quotes takes at most this number of times the
 * bytes of its text.
 */
export const MAX_ESCAPE_BYTES = 6;

const HIGH_BITS = 0x80808080;

/**
 * If one of the four bytes is not plain, its highest bit is set in the result, and no bit before the first such byte.
 * Among the bytes below 0x80, `x - 0x20` has the highest bit if the byte is below 0x20, and `(x ^ c) - 0x01` if it
 * equals `c`. A borrow comes only from a byte that is not plain itself, so it can only add bits behind the first one.
 * @param x four bytes, the first one lowest
 */
function notPlain(x: number): number {
  const controls = x - 0x20202020;
  const quotes = (x ^ 0x22222222) - 0x01010101;
  const backslashes = (x ^ 0x5c5c5c5c) - 0x01010101;
  return (controls | quotes | backslashes) & ~x & HIGH_BITS;
}

/**
 * Plain characters, four bytes at a time: most of a body is the text of messages. Ends at the first byte that is not
 * plain.
 */
export function skipPlain(text: JsonText, start: number): number {
  const { bytes, words, end } = text;
  const last = end - 4;
  let at = start;
  let seen = 0;
  while (at <= last - 4) {
    const first = words.getInt32(at, true);
    const second = words.getInt32(at + 4, true);
    if ((notPlain(first) | notPlain(second)) !== 0) break;
    seen |= first | second;
    at += 8;
  }
  while (at <= last) {
    const word = words.getInt32(at, true);
    const found = notPlain(word);
    // The bytes behind the first one that is not plain count as well: at worst the encoding is checked without need.
    seen |= word;
    if (found !== 0) {
      if ((seen & HIGH_BITS) !== 0) text.isAscii = false;
      return at + ((31 - Math.clz32(found & -found)) >> 3);
    }
    at += 4;
  }
  for (; at < end; at++) {
    const code = bytes[at] ?? 0;
    if (((STRING_BYTES[code] ?? 0) & (BEGINS_ESCAPE | ENDS_STRING)) !== 0) break;
    seen |= code;
  }
  if ((seen & HIGH_BITS) !== 0) text.isAscii = false;
  return at;
}

/**
 * Returns the bytes in UTF-8 of the character of `\uXXXX`, 0 if a digit is not hexadecimal. Each half of a surrogate
 * pair has half of the pair's four bytes.
 */
function escapedBytes({ bytes, end }: JsonText, at: number): number {
  if (at + MAX_ESCAPE_BYTES > end) return 0;
  const code =
    (hexDigit(bytes[at + 2]) << 12) |
    (hexDigit(bytes[at + 3]) << 8) |
    (hexDigit(bytes[at + 4]) << 4) |
    hexDigit(bytes[at + 5]);
  if (code > 0xffff) return 0;
  return code < 0x80 ? 1 : code < 0x800 || (code & 0xf800) === 0xd800 ? 2 : 3;
}

/** Reports whether four bytes, the first one lowest, are two escapes of two bytes each. */
function areTwoEscapes(x: number): boolean {
  if ((x & 0x00ff00ff) !== 0x005c005c) return false;
  return ((STRING_BYTES[(x >> 8) & 0xff] ?? 0) & (STRING_BYTES[x >>> 24] ?? 0) & ENDS_ESCAPE) !== 0;
}

/** The rest of a string. @param start any position between its quotes where a character begins */
export function skipString(text: JsonText, start: number): number {
  const { bytes, words, end } = text;
  const last = end - 4;
  let at = start;
  let escapeBytes = 0;
  let seen = 0;
  for (;;) {
    at = skipPlain(text, at);
    while (byteAt(text, at) === BACKSLASH && byteAt(text, at + 1) === LETTER_U) {
      const length = escapedBytes(text, at);
      if (length === 0) return ~at;
      escapeBytes += MAX_ESCAPE_BYTES - length;
      at += MAX_ESCAPE_BYTES;
    }
    // Line breaks and quotes come in rows.
    while (at <= last && areTwoEscapes(words.getInt32(at, true))) {
      escapeBytes += 2;
      at += 4;
    }
    // Where one escape is, others are near. Few branches depend on the bytes, because no processor could predict them.
    let near = Math.min(end, at + NEAR_BYTES);
    let isEscaped = 0;
    for (; at < near; at++) {
      const code = bytes[at] ?? 0;
      const kind = STRING_BYTES[code] ?? 0;
      if ((((kind >> 2) & ~isEscaped) | (isEscaped & ~(kind >> 1))) !== 0) break;
      escapeBytes += isEscaped;
      near += (Math.min(end, at + NEAR_BYTES) - near) & -isEscaped;
      isEscaped = ~isEscaped & (kind & BEGINS_ESCAPE);
      seen |= code;
    }
    if (at < near || near === end) {
      if (isEscaped === 0) {
        if (byteAt(text, at) !== QUOTE) return ~at;
        text.escapeBytes += escapeBytes;
        if (seen >= 0x80) text.isAscii = false;
        return at + 1;
      }
      if (byteAt(text, at) !== LETTER_U) return ~at;
    }
    at -= isEscaped;
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

/**
 * The kinds of bytes in a list of whole numbers that only commas, and perhaps a space behind each, separate. Only a
 * comma is odd.
 */
const LISTED: ReadonlyMap<number, string> = new Map([
  [0, '0'],
  [1, ','],
  [2, '123456789'],
  [4, ' '],
]);
const NOT_LISTED = 6;
const LIST_BYTES = new Uint8Array(256).fill(NOT_LISTED);
for (const [kind, characters] of LISTED) for (const byte of Buffer.from(characters)) LIST_BYTES[byte] = kind;
/** For the kinds of three bytes, three bits each: 1 if those bytes are not part of such a list. */
const IS_WRONG = Uint8Array.from({ length: 512 }, (_, three) => {
  const characters = [three >> 6, (three >> 3) & 7, three & 7].map((kind) => LISTED.get(kind)?.[0] ?? 'x').join('');
  return /x|,,|, ,|[01 ] |[, ]0[01]/.test(characters) ? 1 : 0;
});
/** As if a number and a comma came before. */
const LIST_BEGIN = (2 << 3) | 1;

/** The fraction and the exponent of a number, behind its digits. */
function skipFraction(text: JsonText, start: number): number {
  let at = start;
  if (byteAt(text, at) === POINT) {
    at = skipDigits(text, start + 1);
    if (at === start + 1) return ~at;
  }
  if ((byteAt(text, at) | 0x20) === LETTER_E) {
    const sign = byteAt(text, at + 1);
    const exponent = sign === PLUS || sign === MINUS ? at + 2 : at + 1;
    at = skipDigits(text, exponent);
    if (at === exponent) return ~at;
  }
  return at;
}

function skipNumber(text: JsonText, start: number): number {
  let at = byteAt(text, start) === MINUS ? start + 1 : start;
  const whole = at;
  at = byteAt(text, at) === ZERO ? at + 1 : skipDigits(text, at);
  if (at === whole) return ~at;
  // Most numbers end here: a comma, a bracket and white space are all below.
  return byteAt(text, at) < POINT ? at : skipFraction(text, at);
}

/**
 * Skips whole numbers of an array, each with the comma behind it, and counts each as one token: prompts may be lists of
 * token ids. Few branches depend on the bytes, because no processor could predict them.
 * @returns the position of the next value
 */
export function skipIntegers(text: JsonText, start: number): number {
  const { bytes, end } = text;
  let numbers = 0;
  let recent = LIST_BEGIN;
  let at = start;
  for (; at < end; at++) {
    const kind = LIST_BYTES[bytes[at] ?? 0] ?? NOT_LISTED;
    recent = ((recent << 3) | kind) & 0x1ff;
    if (IS_WRONG[recent] !== 0) break;
    numbers += kind & 1;
  }
  text.promptBytes += numbers * BYTES_PER_TOKEN;
  // Back to the value that ends the list, or is not a whole number.
  if (numbers === 0) return start;
  while (bytes[at - 1] !== COMMA) at--;
  return skipSpace(text, at);
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

/**
 * Skips the name of a member below the top level, which counts as text. @returns the position of its colon, or of white
 * space before it
 */
function skipName(text: JsonText, at: number): number {
  return byteAt(text, at) === QUOTE ? skipText(text, at + 1) : ~at;
}

/** The closing bytes of the open objects and arrays. Shared between calls, which never overlap. */
const open = new Uint8Array(MAX_DEPTH + 1);

/**
 * Any value, without recursion. Counts the text of its strings and of the names in it, its inline files, and each
 * number in an array as one token: prompts may be lists of token ids.
 * @param outer how many objects and arrays are open around it
 * @param holdsFile true if the value belongs to a member that may hold an inline file
 */
export function skipValue(text: JsonText, start: number, outer: number, holdsFile = false): number {
  let at = start;
  let depth = 0;
  let mayBeFile = holdsFile;
  for (;;) {
    let code = byteAt(text, at);
    if ((code ^ ZERO) < 10 && depth > 0 && open[depth] === CLOSE_ARRAY) {
      at = skipIntegers(text, at);
      code = byteAt(text, at);
    }
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
      if (code === QUOTE) at = mayBeFile ? skipFile(text, at + 1) : skipText(text, at + 1);
      else at = skipScalar(text, at);
      if (at < 0) return at;
      // Among the first bytes of scalars, a quote, a minus and digits are below `:`.
      if (code < COLON && code !== QUOTE && depth > 0 && open[depth] === CLOSE_ARRAY)
        text.promptBytes += BYTES_PER_TOKEN;
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
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reports whether bytes are UTF-8 (RFC 3629: no overlong form, no surrogate). */
export function isUtf8(bytes: Uint8Array): boolean {
  try {
    strictUtf8.decode(bytes);
    return true;
  } catch {
    return false;
  }
}

/** Characters that are joined one by one before a decoder is cheaper. */
const SHORT = 64;

/** The text between the quotes of a string that has been validated, unescaped. */
export function textOf({ bytes }: JsonText, start: number, end: number): string {
  let made = '';
  if (end - start <= SHORT) {
    let at = start;
    for (; at < end; at++) {
      const code = bytes[at] ?? 0;
      if (code >= 0x80 || code === BACKSLASH) break;
      made += String.fromCharCode(code);
    }
    if (at === end) return made;
  }
  const raw = utf8.decode(bytes.subarray(start, end));
  if (!raw.includes('\\')) return raw;
  const unescaped: unknown = JSON.parse(`"${raw}"`);
  return String(unescaped);
}
