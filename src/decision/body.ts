/**
 * Reads a request's body: a few top-level members of one JSON object. A body that two readers might read differently is
 * malformed.
 */

import { CONTROL } from '../domain/text.ts';
import { isFileMember } from './inline-files.ts';
import {
  byteAt,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  isUtf8,
  type JsonText,
  jsonText,
  MAX_ESCAPE_BYTES,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipColon,
  skipIntegers,
  skipPlain,
  skipSpace,
  skipString,
  skipText,
  skipValue,
  textOf,
} from './json-bytes.ts';
import { nameAt } from './known-names.ts';
import {
  BYTES_PER_TOKEN,
  MAX_CHOICES,
  MAX_COLLECTIONS,
  MAX_MEMBERS,
  MAX_PROMPTS,
  MAX_RESOURCE_NAME,
} from './limits.ts';
import { fold, noNames, type ReadMember, takeName } from './members.ts';
import { type CheckInput, type HeaderValue, REPEATED } from './model.ts';

export interface BodyFacts {
  readonly kind: 'body';
  readonly model: string | undefined;
  /** `collection` and `collections` together. */
  readonly collections: readonly string[];
  /** The largest and the smallest of the token limits named. Saturated at Number.MAX_SAFE_INTEGER. */
  readonly largestLimit: number | undefined;
  readonly smallestLimit: number | undefined;
  /** The number of requested answers: the larger of `n` and `best_of`, at least 1. */
  readonly choices: number;
  /** The number of prompts of a request for completions; 1 on other routes. */
  readonly prompts: number;
  /**
   * False: the body requests a stream without requesting, in a form that every reader understands, the usage of the
   * stream.
   */
  readonly reportsUsage: boolean;
  readonly promptTokens: number;
  /** Inline files, which the estimate of the text does not contain. */
  readonly inlineFiles: number;
}

interface BodyProblem {
  readonly kind: 'problem';
  readonly code: 'malformed_body' | 'body_too_large';
  readonly detail: string;
  readonly param?: string;
}

/** The setting of Envoy's ext_authz filter, and of its routes, that sends bodies. */
export const BODY_SETTING = 'with_request_body';

interface BodyNotSent {
  readonly kind: 'not_sent';
}

export type BodyResult = BodyFacts | BodyProblem;

const JSON_TYPE = /^[ \t]*application\/json[ \t]*(?:;[ \t]*charset=(?:utf-8|"utf-8")[ \t]*)?$/i;

/** Reports whether the header names exactly one `application/json`, in UTF-8. */
export function isJsonType(header: HeaderValue): boolean {
  if (header === undefined || header === REPEATED) return false;
  return header === 'application/json' || JSON_TYPE.test(header);
}

function problem(detail: string, param?: string): BodyProblem {
  return { kind: 'problem', code: 'malformed_body', detail, ...(param === undefined ? {} : { param }) };
}

const NOT_SENT: BodyNotSent = { kind: 'not_sent' };
const TOO_LARGE: BodyProblem = {
  kind: 'problem',
  code: 'body_too_large',
  detail: 'The body is larger than the limit for inspected bodies on this route. Send a smaller body.',
};
const WRONG_TYPE = problem(
  'This route requires a JSON body. Send exactly one Content-Type header, application/json, with UTF-8 text.',
  'content-type',
);
const ENCODED = problem(
  'This route requires a body without Content-Encoding. Send the body uncompressed.',
  'content-encoding',
);
const EMPTY = problem('This route requires a JSON object as its body, but the body is empty.');
const NOT_OBJECT = problem('The body must be a single JSON object.');
const REPEATED_MEMBER = problem('A member of the body appears more than once. Send each member once.');
const TOO_MANY_MEMBERS = problem(`The body must have at most ${MAX_MEMBERS} members.`);
const LONG_MEMBER = problem(`The name of a member must have at most ${MAX_RESOURCE_NAME} bytes.`);
const NOT_UTF8 = problem('The body is not valid UTF-8.');
const AFTER_END = problem('The body has more data after the JSON object. Send only the object.');
const UNCERTAIN_MEMBER = problem(
  'The proxy sends bodies as text, in which an exclamation mark or U+FFFD can replace bytes that are not UTF-8. In the name of a member, write "!" as "\\u0021".',
);

/** @param at negative, as the reader gave it */
function notJson(at: number): BodyProblem {
  return problem(`The body is not valid JSON of at most 128 levels in UTF-8, at byte ${~at}.`);
}

/** The members that have been read. */
interface Reading {
  model: string | undefined;
  collection: string | undefined;
  collections: readonly string[];
  largestLimit: number | undefined;
  smallestLimit: number | undefined;
  choices: number;
  prompts: number;
  stream: boolean;
  /**
   * How `stream_options` requests usage; `unclear` if readers may understand it differently. Later members do not
   * change `unclear`.
   */
  usage: 'asked' | 'not asked' | 'unclear';
  /** True if a character may have replaced bytes that are not UTF-8, see `CheckInput.bodyAsText`. */
  readonly asText: boolean;
  problem: BodyProblem | undefined;
}

/** A resource's name: not empty, without lone surrogates or controls, which upstream could read as another name. */
function isName(name: string): boolean {
  return name !== '' && name.isWellFormed() && !CONTROL.test(name);
}

/** The characters that replace bytes that are not UTF-8 when a proxy sends a body as text: Envoy's, and U+FFFD. */
const REPLACEMENTS = [Buffer.from('!'), Buffer.from('\ufffd')];

/**
 * Reports whether a name contains a byte that may have replaced another one. A reader of the original may drop that
 * byte or read another character, and so read another name. The escape of the sign is certain: it consists of other
 * bytes.
 */
function isUncertain({ asText }: Reading, { bytes }: JsonText, start: number, end: number): boolean {
  if (!asText) return false;
  const name = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
  return REPLACEMENTS.some((replacement) => name.includes(replacement));
}

/** Returns the name between the quotes of a valid string, or the problem with it. */
function readText(text: JsonText, start: number, end: number, member: ReadMember, into: Reading): string | BodyProblem {
  if (isUncertain(into, text, start, end)) {
    const detail = `The proxy sends bodies as text, in which an exclamation mark or U+FFFD can replace bytes that are not UTF-8. In "${member}", write "!" as "\\u0021".`;
    return problem(detail, member);
  }
  if (start === end) return problem(`"${member}" must not contain an empty name.`, member);
  const bytes = end - start;
  const name = bytes <= MAX_ESCAPE_BYTES * MAX_RESOURCE_NAME ? nameAt(text, start, end, isName) : undefined;
  if (bytes > MAX_RESOURCE_NAME && (name === undefined || Buffer.byteLength(name) > MAX_RESOURCE_NAME))
    return problem(
      `Each name in "${member}" must be plain Unicode text of at most ${MAX_RESOURCE_NAME} bytes.`,
      member,
    );
  return name ?? problem(`Each name in "${member}" must be plain Unicode text.`, member);
}

/**
 * Reads one string that names a resource.
 * @returns the position after it; a problem is in `into`
 */
function readName(text: JsonText, at: number, member: 'model' | 'collection', into: Reading): number {
  const after = byteAt(text, at) === QUOTE ? skipText(text, at + 1) : at;
  if (after < 0) return after;
  if (after === at) {
    into.problem = problem(`"${member}" must be a string.`, member);
    return at;
  }
  const name = readText(text, at + 1, after - 1, member, into);
  if (typeof name === 'string') into[member] = name;
  else into.problem = name;
  return after;
}

const TOO_MANY_COLLECTIONS = `A request must name at most ${MAX_COLLECTIONS} collections.`;

const TOO_MANY_PROMPTS = `A request must have at most ${MAX_PROMPTS} prompts.`;
const WRONG_PROMPT = '"prompt" must be a string, a list of strings, a list of token ids, or a list of such lists.';

function readNames(text: JsonText, start: number, into: Reading): number {
  const wrong = (detail: string): number => {
    into.problem = problem(detail, 'collections');
    return start;
  };
  if (byteAt(text, start) !== OPEN_ARRAY) return wrong('"collections" must be an array of strings.');
  const names: string[] = [];
  into.collections = names;
  let at = skipSpace(text, start + 1);
  if (byteAt(text, at) === CLOSE_ARRAY) return at + 1;
  for (;;) {
    if (byteAt(text, at) !== QUOTE) return wrong('"collections" must be an array of strings.');
    const after = skipText(text, at + 1);
    if (after < 0) return after;
    const name = readText(text, at + 1, after - 1, 'collections', into);
    if (typeof name !== 'string') {
      into.problem = name;
      return start;
    }
    if (names.length >= MAX_COLLECTIONS) return wrong(TOO_MANY_COLLECTIONS);
    names.push(name);
    at = skipSpace(text, after);
    const code = byteAt(text, at);
    if (code === CLOSE_ARRAY) return at + 1;
    if (code !== COMMA) return ~at;
    at = skipSpace(text, at + 1);
  }
}

/** Returns the value of an integer literal without sign, fraction or exponent; undefined for any other number. */
function integer({ bytes }: JsonText, start: number, end: number): number | undefined {
  let value = 0;
  for (let at = start; at < end; at++) {
    const digit = (bytes[at] ?? 0) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    value = Math.min(value * 10 + digit, Number.MAX_SAFE_INTEGER);
  }
  return value;
}

function readInteger(text: JsonText, at: number, member: ReadMember, into: Reading): number {
  const after = skipValue(text, at, 1);
  const value = after < 0 ? undefined : integer(text, at, after);
  if (value === undefined) {
    into.problem =
      after < 0
        ? undefined
        : problem(`"${member}" must be a whole number of at least 0, written only in digits.`, member);
  } else if (member === 'n' || member === 'best_of') {
    if (value > MAX_CHOICES) into.problem = problem(`"${member}" must be at most ${MAX_CHOICES}.`, member);
    into.choices = Math.max(into.choices, value);
  } else {
    into.largestLimit = Math.max(into.largestLimit ?? 0, value);
    into.smallestLimit = Math.min(into.smallestLimit ?? value, value);
  }
  return after;
}

function readBoolean(text: JsonText, at: number, member: ReadMember, into: Reading): number {
  const code = byteAt(text, at);
  if (code !== 0x74 && code !== 0x66) into.problem = problem(`"${member}" must be true or false.`, member);
  into.stream = code === 0x74;
  return skipValue(text, at, 1);
}

const INCLUDE_USAGE = 'include_usage';
const FOLDED_USAGE = fold(INCLUDE_USAGE);

/**
 * Returns how one member of `stream_options` requests usage; undefined if no reader takes it for `include_usage`. The
 * arguments are between its quotes.
 */
function usageIn(
  text: JsonText,
  start: number,
  end: number,
  value: number,
  into: Reading,
): Reading['usage'] | undefined {
  if (isUncertain(into, text, start, end)) return 'unclear';
  if (end - start > MAX_ESCAPE_BYTES * INCLUDE_USAGE.length) return undefined;
  const name = textOf(text, start, end);
  if (name !== INCLUDE_USAGE) return fold(name) === FOLDED_USAGE ? 'unclear' : undefined;
  return into.usage === 'not asked' && byteAt(text, value) === 0x74 ? 'asked' : 'unclear';
}

/** Reads `stream_options`. Every value except one certain `include_usage: true` means that usage is not requested. */
function readStreamOptions(text: JsonText, start: number, into: Reading): number {
  if (byteAt(text, start) !== OPEN_OBJECT) return skipValue(text, start, 1);
  let at = skipSpace(text, start + 1);
  if (byteAt(text, at) === CLOSE_OBJECT) return at + 1;
  for (;;) {
    if (byteAt(text, at) !== QUOTE) return ~at;
    const nameEnd = skipText(text, at + 1);
    if (nameEnd < 0) return nameEnd;
    const value = skipColon(text, nameEnd);
    if (value < 0) return value;
    into.usage = usageIn(text, at + 1, nameEnd - 1, value, into) ?? into.usage;
    const after = skipValue(text, value, 2, isFileMember(text.bytes, at + 1, nameEnd - 1));
    if (after < 0) return after;
    at = skipSpace(text, after);
    const code = byteAt(text, at);
    if (code === CLOSE_OBJECT) return at + 1;
    if (code !== COMMA) return ~at;
    at = skipSpace(text, at + 1);
  }
}

/** The kind of an element of `prompt`: a token id of the one prompt, or a prompt by itself as text or as token ids. */
function elementKind(code: number): 'id' | 'text' | 'ids' | undefined {
  if (code === QUOTE) return 'text';
  if (code === OPEN_ARRAY) return 'ids';
  return code === 0x2d || (code >= 0x30 && code <= 0x39) ? 'id' : undefined;
}

/** Counts the prompts: one text, a list of texts, the token ids of one prompt, or a list of such lists. */
function readPrompts(text: JsonText, start: number, into: Reading): number {
  const wrong = (detail: string): number => {
    into.problem = problem(detail, 'prompt');
    return start;
  };
  const code = byteAt(text, start);
  if (code === QUOTE) return skipText(text, start + 1);
  if (code !== OPEN_ARRAY) return wrong(WRONG_PROMPT);
  let at = skipSpace(text, start + 1);
  if (byteAt(text, at) === CLOSE_ARRAY) return at + 1;
  const kind = elementKind(byteAt(text, at));
  if (kind === 'id') at = skipIntegers(text, at);
  for (let elements = 1; ; elements++) {
    if (kind === undefined || elementKind(byteAt(text, at)) !== kind) return wrong(WRONG_PROMPT);
    if (kind !== 'id') into.prompts = elements;
    else text.promptBytes += BYTES_PER_TOKEN;
    if (into.prompts > MAX_PROMPTS) return wrong(TOO_MANY_PROMPTS);
    at = skipValue(text, at, 2);
    if (at < 0) return at;
    at = skipSpace(text, at);
    const next = byteAt(text, at);
    if (next === CLOSE_ARRAY) return at + 1;
    if (next !== COMMA) return ~at;
    at = skipSpace(text, at + 1);
  }
}

/**
 * Reads the value of one member.
 * @returns the position after it, or negative; a value of the wrong type is in `into.problem`
 */
function readMember(text: JsonText, at: number, member: ReadMember, into: Reading): number {
  const first = byteAt(text, at);
  // The body ends before the value, so it has no type to complain about.
  if (first === 0) return ~at;
  // A null value counts as absent. The JSON reader verifies its spelling.
  if (first === 0x6e) return skipValue(text, at, 1);
  switch (member) {
    case 'model':
    case 'collection':
      return readName(text, at, member, into);
    case 'collections':
      return readNames(text, at, into);
    case 'stream':
      return readBoolean(text, at, member, into);
    case 'n':
    case 'best_of':
    case 'max_tokens':
    case 'max_completion_tokens':
    case 'max_output_tokens':
      return readInteger(text, at, member, into);
    case 'prompt':
      return readPrompts(text, at, into);
    case 'stream_options':
      return readStreamOptions(text, at, into);
    default:
      return member satisfies never;
  }
}

function isAscii({ bytes }: JsonText, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if ((bytes[at] ?? 0) >= 0x80) return false;
  return true;
}

/**
 * Reads the members of the object that begins at `start`.
 * @returns the position after it, or negative
 */
function readObject(text: JsonText, start: number, readsPrompts: boolean, into: Reading): number {
  const seen = noNames(readsPrompts);
  let at = skipSpace(text, start + 1);
  if (byteAt(text, at) === CLOSE_OBJECT) return at + 1;
  for (let members = 1; ; members++) {
    if (byteAt(text, at) !== QUOTE) return ~at;
    if (members > MAX_MEMBERS) {
      into.problem = TOO_MANY_MEMBERS;
      return at;
    }
    const nameStart = at + 1;
    const plainEnd = skipPlain(text, nameStart);
    const isWhole = byteAt(text, plainEnd) === QUOTE;
    const nameEnd = isWhole ? plainEnd + 1 : skipString(text, plainEnd);
    if (nameEnd < 0) return nameEnd;
    const plain = isWhole && isAscii(text, nameStart, plainEnd);
    at = skipColon(text, nameEnd);
    if (at < 0) return at;
    if (isUncertain(into, text, nameStart, nameEnd - 1)) {
      into.problem = UNCERTAIN_MEMBER;
      return at;
    }
    const name = takeName(seen, text, nameStart, nameEnd - 1, plain);
    if (name === 'too long') into.problem = LONG_MEMBER;
    else if (name === undefined) into.problem = REPEATED_MEMBER;
    else if (name.kind === 'variant' && name.name === 'stream_options') {
      into.usage = 'unclear';
      at = skipValue(text, at, 1);
    } else if (name.kind === 'variant')
      into.problem = problem(
        `A member of the body differs from "${name.name}" only in case. Write it exactly as "${name.name}".`,
        name.name,
      );
    else if (name.kind === 'read') at = readMember(text, at, name.name, into);
    else at = skipValue(text, at, 1, isFileMember(text.bytes, nameStart, nameEnd - 1));
    if (at < 0 || into.problem !== undefined) return at;
    at = skipSpace(text, at);
    const code = byteAt(text, at);
    if (code === CLOSE_OBJECT) return at + 1;
    if (code !== COMMA) return ~at;
    at = skipSpace(text, at + 1);
  }
}

/**
 * Reads the bytes of one body.
 * @param readsPrompts whether the route takes prompts for completions, so that `prompt` is read
 * @param asText whether an exclamation mark or U+FFFD may have replaced bytes that are not UTF-8: a name that contains
 *   one is then no name
 */
export function readJsonBody(bytes: Uint8Array, readsPrompts = false, asText = false): BodyResult {
  const text = jsonText(bytes);
  const start = skipSpace(text, 0);
  if (byteAt(text, start) !== OPEN_OBJECT) return start === bytes.length ? EMPTY : NOT_OBJECT;
  const into: Reading = {
    model: undefined,
    collection: undefined,
    collections: [],
    largestLimit: undefined,
    smallestLimit: undefined,
    choices: 1,
    prompts: 1,
    stream: false,
    usage: 'not asked',
    asText,
    problem: undefined,
  };
  const after = readObject(text, start, readsPrompts, into);
  if (into.problem !== undefined) return into.problem;
  if (after < 0) return notJson(after);
  if (skipSpace(text, after) !== bytes.length) return AFTER_END;
  if (!(text.isAscii || isUtf8(bytes))) return NOT_UTF8;
  const { model, collection, collections, largestLimit, smallestLimit, choices, prompts, stream, usage } = into;
  if (collection !== undefined && collections.length === MAX_COLLECTIONS)
    return problem(TOO_MANY_COLLECTIONS, 'collections');
  return {
    kind: 'body',
    model,
    collections: collection === undefined ? collections : [collection, ...collections],
    largestLimit,
    smallestLimit,
    choices,
    prompts,
    reportsUsage: !stream || usage === 'asked',
    promptTokens: Math.ceil(text.promptBytes / BYTES_PER_TOKEN),
    inlineFiles: text.inlineFiles,
  };
}

/** Step 11, body: reads the body of a route that takes something from it. */
export function readBody(
  input: Pick<CheckInput, 'body' | 'bodyPartial' | 'bodyMissing' | 'bodyAsText' | 'contentType' | 'contentEncoding'>,
  readsPrompts = false,
): BodyResult | BodyNotSent {
  if (input.bodyMissing) return NOT_SENT;
  if (input.bodyPartial) return TOO_LARGE;
  if (!isJsonType(input.contentType)) return WRONG_TYPE;
  if (input.contentEncoding !== undefined) return ENCODED;
  return input.body.length === 0 ? EMPTY : readJsonBody(input.body, readsPrompts, input.bodyAsText);
}
