/** How the texts and lists of a configuration become values. A parser is total: what it does not understand is a flaw, not a throw. */

import { parseAddress, parseNetwork } from '../decision/address.ts';
import type { ListenAddress, TcpAddress } from './config.ts';
import type { Steps } from './problems.ts';

/** A value as it was given: every scalar as its text, a list or map as data. */
export type Raw = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'data'; readonly value: unknown };

export interface Flaw {
  /** Empty when the whole value is meant. */
  readonly at: Steps;
  /** A noun phrase: `host:port or unix:/path`. Or, with `got` absent, the whole sentence. */
  readonly expected: string;
  readonly got?: string;
}

export type Parsed<T> =
  | { readonly kind: 'value'; readonly value: T }
  | { readonly kind: 'flaws'; readonly flaws: readonly Flaw[] };

export type Parser<T> = (raw: Raw) => Parsed<T>;

const MAX_SHOWN = 80;

export function value<T>(parsed: T): Parsed<T> {
  return { kind: 'value', value: parsed };
}

export function flaw<T>(expected: string, raw: Raw, at: Steps = []): Parsed<T> {
  return { kind: 'flaws', flaws: [{ at, expected, got: show(raw) }] };
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

/** A parser of scalars. @param read gives undefined for what it does not understand */
export function scalar<T>(expected: string, read: (text: string) => T | undefined): Parser<T> {
  return (raw) => {
    const parsed = raw.kind === 'text' ? read(raw.text) : undefined;
    return parsed === undefined ? flaw(expected, raw) : value(parsed);
  };
}

const UNIT_BYTES = { B: 1, KiB: 1024, MiB: 1024 * 1024 } as const;

/** Bytes, from `minBytes` to `maxBytes`: a number of bytes, or one with a unit (`512 KiB`, `1MiB`). */
export function size(expected: string, minBytes: number, maxBytes: number): Parser<number> {
  return scalar(expected, (text) => {
    const match = /^(\d{1,9}) ?(B|KiB|MiB)?$/.exec(text);
    const unit = match?.[2] ?? 'B';
    const bytes = unit === 'B' || unit === 'KiB' || unit === 'MiB' ? Number(match?.[1]) * UNIT_BYTES[unit] : Number.NaN;
    return bytes >= minBytes && bytes <= maxBytes ? bytes : undefined;
  });
}

/** A list of scalars; as text, which is how the environment gives it, in JSON. */
export function listOf<T>(expected: string, item: Parser<T>): Parser<readonly T[]> {
  return (raw) => {
    const list = raw.kind === 'data' ? raw.value : parseJson(raw.text);
    if (!Array.isArray(list)) {
      return flaw(raw.kind === 'text' ? `${expected} as JSON` : expected, raw);
    }
    const parsed = list.map((one: unknown) => item(rawOf(one)));
    const flaws = parsed.flatMap((one, index) =>
      one.kind === 'flaws' ? one.flaws.map((inner) => ({ ...inner, at: [index, ...inner.at] })) : [],
    );
    const values = parsed.flatMap((one) => (one.kind === 'value' ? [one.value] : []));
    return flaws.length > 0 ? { kind: 'flaws', flaws } : value(values);
  };
}

/** Undefined when the text is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function integer(min: number, max: number): Parser<number> {
  return scalar(`a whole number from ${min} to ${max}`, (text) => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    return number >= min && number <= max ? number : undefined;
  });
}

export const flag: Parser<boolean> = scalar('true or false', (text) =>
  text === 'true' ? true : text === 'false' ? false : undefined,
);

export function oneOf<T extends string>(...words: readonly T[]): Parser<T> {
  return scalar(`one of ${words.join(', ')}`, (text) => words.find((word) => word === text));
}

/** @param form must match the whole text */
export function textLike(expected: string, form: RegExp): Parser<string> {
  return scalar(expected, (text) => (form.test(text) ? text : undefined));
}

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const TEN_YEARS_MS = 3650 * UNIT_MS.d;

/** Milliseconds, from a second to ten years. */
export const duration: Parser<number> = scalar('a duration of at least 1s, such as 500s, 5m, 1h or 7d', (text) => {
  const match = /^(\d{1,12})(ms|s|m|h|d)$/.exec(text);
  const unit = match?.[2];
  const ms =
    unit === 'ms' || unit === 's' || unit === 'm' || unit === 'h' || unit === 'd'
      ? Number(match?.[1]) * UNIT_MS[unit]
      : 0;
  return ms >= 1000 && ms <= TEN_YEARS_MS ? ms : undefined;
});

/** Milliseconds; undefined = for ever. Nothing shorter than a day: a slip of the pen must not empty the log. */
/** How long something is put off: 0 = not at all. */
export const delay: Parser<number> = (raw) => {
  if (raw.kind === 'text' && raw.text === '0') return value(0);
  const parsed = duration(raw);
  return parsed.kind === 'value' && parsed.value <= 5 * UNIT_MS.m ? parsed : flaw('0, or a duration of 1s to 5m', raw);
};

export const retention: Parser<number | undefined> = (raw) => {
  if (raw.kind === 'text' && raw.text === '0') return value(undefined);
  const parsed = duration(raw);
  return parsed.kind === 'value' && parsed.value >= UNIT_MS.d
    ? parsed
    : flaw('0, or a duration of at least 1d such as 365d', raw);
};

/** The same in whole seconds: what is counted in them elsewhere (`expires_in`, `exp`). */
export const wholeSeconds: Parser<number> = scalar('a duration in whole seconds, such as 3600s or 1h', (text) => {
  const parsed = duration({ kind: 'text', text });
  return parsed.kind === 'value' && parsed.value % 1000 === 0 ? parsed.value : undefined;
});

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

/** An address or a CIDR block. */
export const network: Parser<string> = scalar('an IP address or a CIDR block without host bits', (text) =>
  parseNetwork(text) === undefined ? undefined : text,
);

/** As browsers write it in `Origin` (RFC 6454, section 6.1): in lower case, without a path, and without the default port. */
export const origin: Parser<string> = scalar('an origin, such as https://console.example.com', (text) => {
  const form = /^https?:\/\/(?:\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(?::\d{1,5})?$/;
  return form.test(text) && URL.canParse(text) && new URL(text).origin === text ? text : undefined;
});
