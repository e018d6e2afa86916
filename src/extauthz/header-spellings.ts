/**
 * Recognizes other spellings of the headers that an allow sets or removes. Some servers give a request's headers to the
 * application under folded names: CGI, WSGI and PHP read `x_tenant_id` as `x-tenant-id`, and lighttpd writes every
 * character except letters and digits as `_`. The upstream must find one value under any such name, so every spelling
 * except the true one is removed.
 */

export const TENANT_ID_HEADER = 'x-tenant-id';

/**
 * Headers by which some frameworks let a client change the method or the path after the decision was made for another.
 */
export const OVERRIDES = [
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-original-url',
  'x-rewrite-url',
];

export const CREDENTIALS = ['authorization', 'x-api-key', 'api-key'];

/** The header of the token for the upstream, unless it replaces `authorization`. */
export const UPSTREAM_TOKEN = 'x-postern-token';
export type UpstreamTokenHeader = typeof UPSTREAM_TOKEN | 'authorization';

/** A compressed answer would hide its usage and its text. */
export const ACCEPT_ENCODING = 'accept-encoding';

/** Names that have other spellings; besides these, every name that begins with `x-postern-`. */
const GUARDED = [TENANT_ID_HEADER, ACCEPT_ENCODING, ...OVERRIDES, ...CREDENTIALS].map((name) => Buffer.from(name));
const MAX_FOLDED_BYTES = Math.max(...GUARDED.map((name) => name.length));
const GUARDED_BY_LENGTH: readonly (readonly Uint8Array[])[] = Array.from(
  { length: MAX_FOLDED_BYTES + 1 },
  (_, length) => GUARDED.filter((name) => name.length === length),
);
const POSTERN = Buffer.from('x-postern');

/** The characters of a header's name (RFC 9110, section 5.6.2) that are no letter and no digit. */
const SEPARATORS = "!#$%&'*+-.^_`|~";
const IS_SEPARATOR = Uint8Array.from({ length: 256 }, (_, byte) =>
  SEPARATORS.includes(String.fromCharCode(byte)) ? 1 : 0,
);
const HYPHEN = 0x2d;
const A = 0x61;
const X = 0x78;

/** The name under examination, folded. One name is examined at a time. */
const folded = new Uint8Array(MAX_FOLDED_BYTES + 1);

/**
 * Reports whether `bytes[start, end)` is a header's name that must be removed by name. This applies to every spelling
 * of a name that begins with `x-postern-`, and to every spelling of a guarded name except the true one. Letters are
 * compared without case.
 */
export function isAlias(bytes: Uint8Array, start: number, end: number): boolean {
  const first = (bytes[start] ?? 0) | 0x20;
  // This excludes most names. A name that begins with any separator is examined.
  if (first !== X && first !== A && !isSeparator(bytes[start])) return false;
  let length = 0;
  let isTrueSpelling = true;
  for (let at = start; at < end; ) {
    const runStart = at;
    while (at < end && isSeparator(bytes[at])) at++;
    if (at === runStart) {
      folded[length++] = lower(bytes[at] ?? 0);
      at++;
    } else {
      if (length === POSTERN.length && startsWith(folded, POSTERN)) return true;
      if (length === 0 || at === end || at - runStart > 1 || bytes[runStart] !== HYPHEN) isTrueSpelling = false;
      if (length > 0 && at < end) folded[length++] = HYPHEN;
    }
    if (length > MAX_FOLDED_BYTES) return false;
  }
  return !isTrueSpelling && (GUARDED_BY_LENGTH[length] ?? []).some((name) => startsWith(folded, name));
}

const OWN = /^[^a-z0-9]*x[^a-z0-9]+postern[^a-z0-9]/;

/** Reports whether a name in lower case, which is an alias, is a spelling of an `x-postern-` name. */
export function isOwnAlias(name: string): boolean {
  return OWN.test(name);
}

/** Returns every other spelling of a name with `-`, `_` and `.` in any mixture. */
export function mixtures(name: string): string[] {
  const [first = '', ...rest] = name.split('-');
  const all = rest.reduce(
    (starts, part) => starts.flatMap((begun) => ['-', '_', '.'].map((by) => begun + by + part)),
    [first],
  );
  return all.filter((one) => one !== name);
}

/** Returns the two spellings of a name that servers fold most: with `_` throughout, and with `.`. */
export function uniformSpellings(name: string): string[] {
  return name.includes('-') ? [name.replaceAll('-', '_'), name.replaceAll('-', '.')] : [];
}

function isSeparator(byte: number | undefined): boolean {
  return IS_SEPARATOR[byte ?? 0] === 1;
}

function startsWith(bytes: Uint8Array, name: Uint8Array): boolean {
  for (let i = 0; i < name.length; i++) if (bytes[i] !== name[i]) return false;
  return true;
}

export function lower(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte;
}
