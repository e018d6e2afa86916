/** One setting: its name, how its value is read, and what holds when it is not given. */

import { type Parser, textLike } from './parsers.ts';

export interface Key<T> {
  readonly path: string;
  readonly parse: Parser<T>;
  /** As one would write it; undefined = without a value unless given. */
  readonly defaultText: string | undefined;
  readonly fallback: T;
  /** Never shown, and may also come from the file that `POSTERN_…_FILE` names. */
  readonly secret: boolean;
  readonly help: string;
}

/** @param defaultText must parse: it goes the same way as a given value */
export function setting<T>(path: string, parse: Parser<T>, defaultText: string, help: string): Key<T> {
  const parsed = parse({ kind: 'text', text: defaultText });
  if (parsed.kind === 'flaws') {
    throw new Error(`the default of ${path} is not an allowed value`);
  }
  return { path, parse, defaultText, fallback: parsed.value, secret: false, help };
}

export function optional<T>(path: string, parse: Parser<T>, help: string): Key<T | undefined> {
  return { path, parse, defaultText: undefined, fallback: undefined, secret: false, help };
}

export function secret(path: string, parse: Parser<string>, help: string): Key<string | undefined> {
  return { ...optional(path, parse, help), secret: true };
}

export const FILE_PATH = textLike('a file', /^[^\0]+$/);
