/**
 * Inline files of a body: images, sounds and documents in base64, as values of a few members. A model does not read
 * their characters, so they are not part of the text that the prompt's estimate counts. A text whose first characters
 * only look like a file is text.
 */

/** The members that hold files in the APIs of OpenAI and Anthropic. Their names are case-sensitive there. */
const MEMBERS = ['url', 'image_url', 'data', 'file_data'].map((name) => Buffer.from(name));
const SHORTEST_NAME = Math.min(...MEMBERS.map(({ length }) => length));
const LONGEST_NAME = Math.max(...MEMBERS.map(({ length }) => length));
/** Shorter values are text. */
const MIN_CHARACTERS = 256;
/** The scheme `data` (RFC 2397). The type has no space, so that a sentence is none. */
const PREFIX = /^data:[\w!#$&^.+/;=-]{0,127};base64,/;
const LONGEST_PREFIX = 'data:;base64,'.length + 127;

const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
const SLASH = 0x2f;
const PADDING = 0x3d;
/** Characters of the longest escape, `\u0061`. */
const LONGEST_ESCAPE = 6;

/** 1 for the bytes that such a name can begin with; most other names end the comparison there. */
const MAY_BEGIN = new Uint8Array(256);
for (const [first = 0] of [...MEMBERS, [BACKSLASH]]) MAY_BEGIN[first] = 1;

/** 1 for the characters of base64 and of base64url (RFC 4648, sections 4 and 5), without the padding. */
const IS_BASE64 = new Uint8Array(256);
for (const each of Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_'))
  IS_BASE64[each] = 1;

const NO_DIGIT = 0x10000;
const HEX_DIGITS = new Int32Array(256).fill(NO_DIGIT);
for (const digit of '0123456789abcdefABCDEF') HEX_DIGITS[digit.charCodeAt(0)] = Number.parseInt(digit, 16);

/** The value of a hexadecimal digit; 65536 for any other byte. */
export function hexDigit(code = 0): number {
  return HEX_DIGITS[code] ?? NO_DIGIT;
}

/**
 * The character at a position of a valid JSON string. 0 for escapes of characters that neither a name nor a file
 * contains.
 */
function characterAt(bytes: Uint8Array, at: number): number {
  const code = bytes[at] ?? 0;
  if (code !== BACKSLASH) return code;
  if (bytes[at + 1] === SLASH) return SLASH;
  if (bytes[at + 1] !== LETTER_U) return 0;
  return (
    (hexDigit(bytes[at + 2]) << 12) |
    (hexDigit(bytes[at + 3]) << 8) |
    (hexDigit(bytes[at + 4]) << 4) |
    hexDigit(bytes[at + 5])
  );
}

function lengthAt(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== BACKSLASH) return 1;
  return bytes[at + 1] === LETTER_U ? LONGEST_ESCAPE : 2;
}

function isName(bytes: Uint8Array, start: number, end: number, name: Uint8Array): boolean {
  let at = start;
  for (let i = 0; i < name.length; i++) {
    if (at >= end || characterAt(bytes, at) !== name[i]) return false;
    at += lengthAt(bytes, at);
  }
  return at === end;
}

/**
 * Reports whether a member may hold a file. `start` and `end` are the positions between the quotes of its name, a valid
 * string.
 */
export function isFileMember(bytes: Uint8Array, start: number, end: number): boolean {
  const length = end - start;
  if (length < SHORTEST_NAME || length > LONGEST_ESCAPE * LONGEST_NAME || MAY_BEGIN[bytes[start] ?? 0] === 0)
    return false;
  for (const name of MEMBERS) if (isName(bytes, start, end, name)) return true;
  return false;
}

/** The number of characters of `data:<type>;base64,`, or 0 if the value does not begin with it. */
function prefixLength(bytes: Uint8Array, start: number, end: number): number {
  let head = '';
  for (let at = start; at < end && head.length < LONGEST_PREFIX; at += lengthAt(bytes, at)) {
    head += String.fromCharCode(characterAt(bytes, at));
  }
  return PREFIX.exec(head)?.[0].length ?? 0;
}

/** Reports whether the value between two quotes, a valid string, is a file. */
export function isInlineFile(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start < MIN_CHARACTERS) return false;
  const prefix = prefixLength(bytes, start, end);
  let at = start;
  for (let left = prefix; left > 0; left--) at += lengthAt(bytes, at);
  let escaped = at - start - prefix;
  let padding = 0;
  while (at < end) {
    while (at < end && padding === 0 && IS_BASE64[bytes[at] ?? 0] === 1) at++;
    if (at === end) break;
    const character = characterAt(bytes, at);
    if (character === PADDING) padding++;
    else if (padding > 0 || IS_BASE64[character] !== 1) return false;
    const length = lengthAt(bytes, at);
    escaped += length - 1;
    at += length;
  }
  return padding <= 2 && end - start - escaped >= MIN_CHARACTERS;
}
