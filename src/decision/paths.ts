/**
 * The normal form of a request's path. A path that two programs might read differently is rejected, not repaired, so
 * the upstream serves the route that was decided. This includes programs that percent-decode twice. No URL parser
 * processes the path: it would read `//host` as a host.
 */

import { CONTROL } from '../domain/text.ts';

type PathResult =
  /** Segments, percent-decoded once. One trailing slash is ignored; the root has none. */
  | { readonly kind: 'path'; readonly segments: readonly string[] }
  | { readonly kind: 'malformed'; readonly detail: string };

function malformed(detail: string): PathResult {
  return { kind: 'malformed', detail };
}

const NO_SLASH = malformed('The path must start with one slash.');
const DOUBLE_SLASH = malformed('The path must not contain an empty segment ("//").');
const DOT_SEGMENT = malformed('The path must not contain "." or ".." segments.');
const CHARACTER = malformed('The path must not contain ";", "#", a backslash, or a control or non-ASCII character.');
const PERCENT = malformed('A "%" in the path must be followed by two hexadecimal digits.');
const NEEDLESS = malformed('The path must not percent-encode letters, digits, "-", ".", "_" or "~".');
const HIDDEN = malformed('The path must not contain an encoded slash, backslash or NUL.');
const NOT_TEXT = malformed('A segment of the path does not decode to UTF-8 text without control characters.');
const TWICE = malformed(
  'A segment of the path must not become ".", "..", or text with "/", a backslash, ";" or a control character, decoded twice.',
);

// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point
const SEPARATOR_OR_CONTROL = /[/\\;\u0000-\u001f\u007f-\u009f]/;

/** Returns the value of a hexadecimal digit's code, or -1. */
function hexDigit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  const lower = code | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}

/** RFC 3986, section 2.3. */
function isUnreserved(code: number): boolean {
  const lower = code | 32;
  return (
    (code >= 48 && code <= 57) ||
    (lower >= 97 && lower <= 122) ||
    code === 45 ||
    code === 46 ||
    code === 95 ||
    code === 126
  );
}

function escapeProblem(text: string, percent: number): PathResult | undefined {
  const high = hexDigit(text.charCodeAt(percent + 1));
  const low = hexDigit(text.charCodeAt(percent + 2));
  if (high < 0 || low < 0) return PERCENT;
  const code = high * 16 + low;
  if (code === 0x2f || code === 0x5c || code === 0) return HIDDEN;
  return isUnreserved(code) ? NEEDLESS : undefined;
}

function decode(segment: string): string | undefined {
  try {
    const text = decodeURIComponent(segment);
    return CONTROL.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

/**
 * Percent-decodes text leniently, as a second decoder behind the first might: an escape that is none stays as it is,
 * and bytes that are not UTF-8 become U+FFFD.
 */
function decodeLeniently(text: string): string {
  const bytes = Buffer.from(text);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    const high = byte === 37 ? hexDigit(bytes[at + 1] ?? 0) : -1;
    const low = high < 0 ? -1 : hexDigit(bytes[at + 2] ?? 0);
    bytes[length++] = low < 0 ? byte : high * 16 + low;
    if (low >= 0) at += 2;
  }
  return bytes.toString('utf8', 0, length);
}

/** Reports whether a program that decodes the segment again would see another path. @param segment decoded once */
function changesPathDecodedTwice(segment: string): boolean {
  const twice = segment.includes('%') ? decodeLeniently(segment) : segment;
  return twice === '.' || twice === '..' || SEPARATOR_OR_CONTROL.test(twice);
}

/** Returns the path of a request target: all before the first `?`. */
export function withoutQuery(target: string): string {
  const query = target.indexOf('?');
  return query < 0 ? target : target.slice(0, query);
}

/** @param path without its query */
export function parsePath(path: string): PathResult {
  if (path.charCodeAt(0) !== 47) return NO_SLASH;
  const segments: string[] = [];
  let start = 1;
  let escaped = false;
  for (let i = 1; i <= path.length; i++) {
    const code = i < path.length ? path.charCodeAt(i) : 47;
    if (code === 47) {
      if (i === start) {
        if (i < path.length) return DOUBLE_SLASH;
        break;
      }
      const raw = path.slice(start, i);
      if (raw === '.' || raw === '..') return DOT_SEGMENT;
      const segment = escaped ? decode(raw) : raw;
      if (segment === undefined) return NOT_TEXT;
      if (escaped && changesPathDecodedTwice(segment)) return TWICE;
      segments.push(segment);
      start = i + 1;
      escaped = false;
    } else if (code === 37) {
      const problem = escapeProblem(path, i);
      if (problem !== undefined) return problem;
      escaped = true;
    } else if (code < 32 || code > 126 || code === 59 || code === 35 || code === 92) return CHARACTER;
  }
  return { kind: 'path', segments };
}
