/** Reads a command's options. It rejects an unknown option. */

import { parseArgs } from 'node:util';
import type { Parser } from '../config/parsers.ts';
import { reasonOf } from '../domain/errors.ts';
import { parseTenantId, type TenantId } from '../domain/ids.ts';

export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** An option's name without its dashes, and whether it takes a value. A name of one letter has one dash. */
export type OptionNames = Readonly<Record<string, 'value' | 'flag'>>;

export interface Arguments {
  readonly value: (name: string) => string | undefined;
  readonly flag: (name: string) => boolean;
  readonly words: readonly string[];
}

/** @param readsWords whether the command accepts other words than options */
export function parseArguments(argv: readonly string[], names: OptionNames, readsWords: boolean): Arguments {
  const options = Object.fromEntries(
    Object.entries(names).map(([name, kind]) => [
      name,
      {
        type: kind === 'value' ? ('string' as const) : ('boolean' as const),
        ...(name.length === 1 ? { short: name } : {}),
      },
    ]),
  );
  let parsed: ReturnType<typeof parseArgs>;
  try {
    parsed = parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
  } catch (error) {
    throw new UsageError(`${firstSentence(reasonOf(error))}.`);
  }
  const { values, positionals } = parsed;
  // The message does not repeat them, because one of them may be a password.
  if (positionals.length > 0 && !readsWords)
    throw new UsageError('This command accepts only options. Remove the other arguments.');
  return {
    value: (name) => {
      const value = values[name];
      return typeof value === 'string' ? value : undefined;
    },
    flag: (name) => values[name] === true,
    words: positionals,
  };
}

/** Removes Node's advice, which fits none of these options. */
function firstSentence(text: string): string {
  return text.replace(/\.?(?:\s*\n|\.\s|$)[\s\S]*$/, '');
}

/** Returns the value of an option that must be given, or has a default. @throws UsageError for a text without a value */
export function parsedOption<T>(args: Arguments, name: string, parser: Parser<T>, byDefault = ''): T {
  const parsed = parser.parse({ kind: 'text', text: args.value(name) ?? byDefault });
  if (parsed.kind === 'value') return parsed.value;
  throw new UsageError(`--${name}: expected ${parsed.flaws[0]?.expected}.`);
}

/** Returns `--tenant`; undefined if it is absent. @throws UsageError for a text that is not a tenant id */
export function tenantOption(args: Arguments): TenantId | undefined {
  const text = args.value('tenant');
  if (text === undefined) return undefined;
  const tenant = parseTenantId(text);
  if (tenant === undefined)
    throw new UsageError(`--tenant ${text} is not a tenant id. A tenant id has lowercase letters, digits and hyphens.`);
  return tenant;
}

/** Dates that `Date.parse` reads in other forms have no zone, or that of this machine. */
const RFC_3339 = /^(\d{4}-\d\d-\d\d)T(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;

/** `Date.parse` reads February 30 as March 2, and 24:00 as the next day. */
function isTime(text: string): boolean {
  const [, day = ''] = RFC_3339.exec(text) ?? [];
  return !Number.isNaN(Date.parse(text)) && day !== '' && new Date(day).toISOString().startsWith(day);
}

/** Returns `--time`; undefined if it is absent. @throws UsageError for a text that is not a time */
export function timeOption(args: Arguments): string | undefined {
  const time = args.value('time');
  if (time !== undefined && !isTime(time))
    throw new UsageError(`--time ${time} is not an RFC 3339 time. Write it like 2026-11-30T12:00:00Z.`);
  return time;
}

/** Returns the words of a command. @throws UsageError with the message if there are fewer or more of them */
export function wordsOf(args: Arguments, message: string): readonly [string];
export function wordsOf(args: Arguments, message: string, count: 2): readonly [string, string];
export function wordsOf({ words }: Arguments, message: string, count = 1): readonly string[] {
  if (words.length !== count) throw new UsageError(message);
  return words;
}
