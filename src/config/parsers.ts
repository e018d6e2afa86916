/**
 * How the texts and lists of a configuration become values. A parser is total: it returns a flaw for a value that it
 * does not accept, and never throws. It also names what it accepts, for error messages, the documentation and the
 * schema of the chart's values.
 */

import { parseAddress, parseNetwork } from '../decision/address.ts';
import { isObject } from '../domain/json.ts';
import type { ValuePath } from './config-error.ts';

/** A value as it was given: every scalar as its text, a list or map as data. */
export type Raw = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'data'; readonly value: unknown };

export interface Flaw {
  /** Empty if the whole value is wrong. */
  readonly at: ValuePath;
  /** A noun phrase: `host:port or unix:/path`. Without `got`, the whole sentence. */
  readonly expected: string;
  readonly got?: string;
}

export type ParseResult<T> =
  | { readonly kind: 'value'; readonly value: T }
  | { readonly kind: 'flaws'; readonly flaws: readonly Flaw[] };

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface Parser<T> {
  /** A noun phrase for the accepted values. */
  readonly expected: string;
  /** JSON Schema of the value in YAML. It may accept more than the parser does. */
  readonly schema: JsonSchema;
  parse(raw: Raw): ParseResult<T>;
}

export interface TcpAddress {
  readonly kind: 'tcp';
  /** A name or an address, IPv6 without brackets. */
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
}

export type ListenAddress = TcpAddress | { readonly kind: 'unix'; readonly path: string };

const MAX_SHOWN = 80;

export function value<T>(parsed: T): ParseResult<T> {
  return { kind: 'value', value: parsed };
}

export function flaw(expected: string, raw: Raw, at: ValuePath = []): ParseResult<never> {
  return { kind: 'flaws', flaws: [{ at, expected, got: show(raw) }] };
}

export function valueUnless<T>(flaws: readonly Flaw[], parsed: T): ParseResult<T> {
  return flaws.length > 0 ? { kind: 'flaws', flaws } : value(parsed);
}

/** The flaws of a member or an item, as flaws of the map or list that has it. */
export function flawsAt(at: string | number, parsed: ParseResult<unknown>): readonly Flaw[] {
  return parsed.kind === 'flaws' ? parsed.flaws.map((inner) => ({ ...inner, at: [at, ...inner.at] })) : [];
}

export function rawOf(data: unknown): Raw {
  return typeof data === 'object' && data !== null
    ? { kind: 'data', value: data }
    : { kind: 'text', text: String(data) };
}

function show(raw: Raw): string {
  if (raw.kind === 'data') {
    return Array.isArray(raw.value) ? 'a list' : 'a map';
  }
  const text = raw.text.length > MAX_SHOWN ? `${raw.text.slice(0, MAX_SHOWN)}…` : raw.text;
  return text === '' || /[^\x21-\x7e]/.test(text) ? JSON.stringify(text) : text;
}

/** A parser of scalars. @param read returns undefined for a text that the parser does not accept */
export function scalar<T>(
  expected: string,
  read: (text: string) => T | undefined,
  schema: JsonSchema = { type: 'string' },
): Parser<T> {
  const parse = (raw: Raw): ParseResult<T> => {
    const parsed = raw.kind === 'text' ? read(raw.text) : undefined;
    return parsed === undefined ? flaw(expected, raw) : value(parsed);
  };
  return { expected, schema, parse };
}

/** Rejects each removed value with a sentence that names the value to use instead. @param instead by removed value */
export function withoutRemoved<T>(parser: Parser<T>, instead: Readonly<Record<string, T & string>>): Parser<T> {
  const parse = (raw: Raw): ParseResult<T> => {
    const next = raw.kind === 'text' && Object.hasOwn(instead, raw.text) ? instead[raw.text] : undefined;
    if (next === undefined) return parser.parse(raw);
    return { kind: 'flaws', flaws: [{ at: [], expected: `${show(raw)} is no longer a value; use ${next} instead` }] };
  };
  return { ...parser, parse };
}

/** @param form must match the whole text */
export function textLike(expected: string, form: RegExp): Parser<string> {
  return scalar(expected, (text) => (form.test(text) ? text : undefined));
}

export const FILE_PATH = textLike('a file', /^[^\0]+$/);

export const flag: Parser<boolean> = scalar(
  'true or false',
  (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
  { type: 'boolean' },
);

export function choice<T extends string>(...words: readonly T[]): Parser<T> {
  return scalar(`one of ${words.join(', ')}`, (text) => words.find((word) => word === text), { enum: words });
}

export function integer(minimum: number, maximum: number): Parser<number> {
  const read = (text: string): number | undefined => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    return number >= minimum && number <= maximum ? number : undefined;
  };
  return scalar(`a whole number from ${minimum} to ${maximum}`, read, { type: 'integer', minimum, maximum });
}

const UNIT_BYTES: ReadonlyMap<string, number> = new Map([
  ['B', 1],
  ['KiB', 1024],
  ['MiB', 1024 * 1024],
]);

/** Bytes, from `minBytes` to `maxBytes`: a number of bytes, or one with a unit (`512 KiB`, `1MiB`). */
export function size(expected: string, minBytes: number, maxBytes: number): Parser<number> {
  const read = (text: string): number | undefined => {
    const [, digits, unit = 'B'] = /^(\d{1,9}) ?(B|KiB|MiB)?$/.exec(text) ?? [];
    const bytes = Number(digits) * (UNIT_BYTES.get(unit) ?? Number.NaN);
    return bytes >= minBytes && bytes <= maxBytes ? bytes : undefined;
  };
  return scalar(expected, read, {
    type: ['string', 'integer'],
    pattern: '^[0-9]{1,9} ?(B|KiB|MiB)?$',
    minimum: minBytes,
    maximum: maxBytes,
  });
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const DAY_MS = 24 * 60 * MINUTE_MS;
const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', SECOND_MS],
  ['m', MINUTE_MS],
  ['h', 60 * MINUTE_MS],
  ['d', DAY_MS],
]);

function durationIn(
  expected: string,
  isAllowed: (ms: number) => boolean,
  form = /^(\d{1,12})(ms|s|m|h|d)$/,
): Parser<number> {
  const read = (text: string): number | undefined => {
    const [, digits, unit = ''] = form.exec(text) ?? [];
    const ms = Number(digits) * (UNIT_MS.get(unit) ?? Number.NaN);
    return isAllowed(ms) ? ms : undefined;
  };
  return scalar(expected, read, { type: 'string', pattern: '^(0|[0-9]+(ms|s|m|h|d))$' });
}

/** Accepts 0 as well, which YAML reads as a number. */
function zeroOr<Z, T>(zero: Z, { expected, schema, parse }: Parser<T>): Parser<Z | T> {
  return {
    expected,
    schema: { ...schema, type: ['string', 'integer'], minimum: 0, maximum: 0 },
    parse: (raw) => (raw.kind === 'text' && raw.text === '0' ? value(zero) : parse(raw)),
  };
}

/** From a second to ten years. */
const isDuration = (ms: number): boolean => ms >= SECOND_MS && ms <= 3650 * DAY_MS;

export const duration = durationIn('a duration of at least 1s, such as 500s, 5m, 1h or 7d', isDuration);

/** For values that other places count in whole seconds (`expires_in`, `exp`). */
export const wholeSeconds = durationIn(
  'a duration in whole seconds, such as 3600s or 1h',
  (ms) => isDuration(ms) && ms % SECOND_MS === 0,
);

export const upstreamTokenTtl = durationIn(
  'a duration from 60s to 900s in whole seconds, such as 300s or 5m',
  (ms) => ms >= MINUTE_MS && ms <= 15 * MINUTE_MS && ms % SECOND_MS === 0,
);

/** 0 = no delay. */
export const delay = zeroOr(
  0,
  durationIn('0, or a duration of 1s to 5m', (ms) => isDuration(ms) && ms <= 5 * MINUTE_MS),
);

/** Undefined = forever. At least a day, so that a wrong unit does not empty the log. */
export const retention = zeroOr(
  undefined,
  durationIn('0, or a duration of at least 1d such as 365d', (ms) => isDuration(ms) && ms >= DAY_MS),
);

/** At least an hour, so that a short outage of an issuer does not end the use of its keys. */
export const keyStaleness = durationIn(
  'a duration of at least 1h, such as 24h',
  (ms) => isDuration(ms) && ms >= 60 * MINUTE_MS,
);

/** At most a minute, because a user waits for the login. */
export const directoryTimeout = durationIn(
  'a duration from 100ms to 60s',
  (ms) => ms >= 100 && ms <= MINUTE_MS,
  /^(\d{1,5})(ms|s)$/,
);

export const tcpAddress: Parser<TcpAddress> = scalar('host:port', readTcp);

export const listenAddress: Parser<ListenAddress> = scalar('host:port or unix:/path', (text) =>
  /^unix:\/[^\0]{1,100}$/.test(text) ? { kind: 'unix', path: text.slice('unix:'.length) } : readTcp(text),
);

function readTcp(text: string): TcpAddress | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}))):(\d{1,5})$/.exec(text);
  const [, v6, name] = match ?? [];
  const host = v6 ?? name;
  const port = Number(match?.[3]);
  const isAddress = v6 === undefined || parseAddress(v6) !== undefined;
  return host !== undefined && isAddress && port <= 65_535 ? { kind: 'tcp', host, port } : undefined;
}

/** The host of a URL in its canonical form, with a port if only that port is meant: `[fd00::1]:8443`. */
export const urlHost: Parser<string> = scalar('host or host:port, IPv6 in brackets', (text) => {
  const [, host, port] = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252}))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const base = `https://${host}`;
  if (host === undefined || !URL.canParse(base)) return undefined;
  if (port === undefined) return new URL(base).hostname;
  return Number(port) >= 1 && Number(port) <= 65_535 ? `${new URL(base).hostname}:${Number(port)}` : undefined;
});

export const network: Parser<string> = scalar('an IP address or a CIDR block without host bits', (text) =>
  parseNetwork(text) === undefined ? undefined : text,
);

/** As browsers write it in `Origin` (RFC 6454, section 6.1): in lower case, without a path and the default port. */
export const origin: Parser<string> = scalar('an origin, such as https://console.example.com', (text) => {
  const form = /^https?:\/\/(?:\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(?::\d{1,5})?$/;
  return form.test(text) && URL.canParse(text) && new URL(text).origin === text ? text : undefined;
});

/** A list; as text, which is its form in the environment, in JSON. @param item also gets the flaw's index */
export function list<T>(
  expected: string,
  schema: JsonSchema,
  parseItem: (item: unknown) => ParseResult<T>,
): Parser<readonly T[]> {
  const parse = (raw: Raw): ParseResult<readonly T[]> => {
    const items = dataOf(raw);
    if (!Array.isArray(items)) return flaw(raw.kind === 'text' ? `${expected} as JSON` : expected, raw);
    const parsed = items.map((item: unknown) => parseItem(item));
    const flaws = parsed.flatMap((one, index) => flawsAt(index, one));
    const values = parsed.flatMap((one) => (one.kind === 'value' ? [one.value] : []));
    return valueUnless(flaws, values);
  };
  return { expected, schema, parse };
}

export function scalarList<T>(expected: string, item: Parser<T>): Parser<readonly T[]> {
  return list(expected, { type: 'array', items: item.schema }, (one) => item.parse(rawOf(one)));
}

/** One value, or a list of at least one. */
export function oneOrMore<T>(expected: string, item: Parser<T>): Parser<readonly T[]> {
  const several = scalarList(expected, item);
  const parse = (raw: Raw): ParseResult<readonly T[]> => {
    if (raw.kind === 'data' || raw.text.startsWith('[')) {
      const parsed = several.parse(raw);
      return parsed.kind === 'value' && parsed.value.length === 0 ? flaw(expected, raw) : parsed;
    }
    const parsed = item.parse(raw);
    return parsed.kind === 'value' ? value([parsed.value]) : parsed;
  };
  return { expected, schema: { type: ['string', 'array'], items: { type: 'string' } }, parse };
}

/** A map; as text in JSON. @param read gets the members */
export function map<T>(
  expected: string,
  read: (members: readonly (readonly [name: string, value: unknown])[]) => ParseResult<T>,
): Parser<T> {
  const parse = (raw: Raw): ParseResult<T> => {
    const members = membersOf(dataOf(raw));
    return members === undefined ? flaw(expected, raw) : read(members);
  };
  return { expected, schema: { type: 'object' }, parse };
}

/** The members of a map; undefined for anything else. */
export function membersOf(data: unknown): readonly (readonly [name: string, value: unknown])[] | undefined {
  return isObject(data) ? Object.entries(data) : undefined;
}

/** The value as data. A text that is not JSON gives undefined. */
function dataOf(raw: Raw): unknown {
  if (raw.kind === 'data') return raw.value;
  try {
    return JSON.parse(raw.text);
  } catch {
    return undefined;
  }
}
