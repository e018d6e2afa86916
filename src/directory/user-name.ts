/** Typed usernames: validation, the domain, and the name of the bind. */

import { escapeDnValue, foldName } from './dn.ts';
import type { DirectorySettings } from './settings.ts';

export interface TypedName {
  readonly typed: string;
  /** The name without the domain, if that is one of the directory's. */
  readonly name: string;
}

const MAX_LENGTH = 256;
/** Characters that a name cannot have in a pattern other than a DN. */
const UNFIT = /[\p{Cc}@\\]/u;

/**
 * Reports whether the name has no blanks around it and no control characters. Directories ignore such blanks, and 389
 * Directory Server ignores the text after a NUL, so that such a name would find the entry of another name.
 */
export function isExact(name: string): boolean {
  return !/\p{Cc}/u.test(name) && name.trim() === name;
}

/**
 * Reports whether the text can be a name: not empty, not too long, and well formed. No server receives any other text.
 */
export function isName(text: string): boolean {
  return text !== '' && text.length <= MAX_LENGTH && text.isWellFormed();
}

/** Splits `CORP\alice` and `alice@corp.example` into the domain in lower case and the name. */
export function splitDomain(typed: string): { readonly domain: string; readonly name: string } | undefined {
  const slash = typed.indexOf('\\');
  if (slash > 0 && slash < typed.length - 1)
    return { domain: foldName(typed.slice(0, slash)), name: typed.slice(slash + 1) };
  const at = typed.lastIndexOf('@');
  return at > 0 && at < typed.length - 1
    ? { domain: foldName(typed.slice(at + 1)), name: typed.slice(0, at) }
    : undefined;
}

export function typedName(typed: string, domains: readonly string[]): TypedName {
  const split = splitDomain(typed);
  return { typed, name: split !== undefined && domains.includes(split.domain) ? split.name : typed };
}

/**
 * Returns the directories for a name, in their order: those with the name's domain. A name without a configured domain
 * belongs to the only directory, or to those that are configured to accept such names.
 */
export function directoriesFor<T extends Pick<DirectorySettings, 'domains' | 'namesWithoutDomain'>>(
  typed: string,
  directories: readonly T[],
): readonly T[] {
  const domain = splitDomain(typed)?.domain;
  const own = domain === undefined ? [] : directories.filter(({ domains }) => domains.includes(domain));
  if (own.length > 0 || directories.length === 1) return own.length > 0 ? own : directories;
  return directories.filter(({ namesWithoutDomain }) => namesWithoutDomain);
}

/**
 * A DN pattern has an unescaped `=` before the placeholder. The other patterns are a UPN or a down-level logon name.
 */
export function isDnPattern(pattern: string): boolean {
  return pattern.slice(0, pattern.indexOf('{0}')).includes('=');
}

/**
 * Returns the domains, in lower case, whose accounts may log in by a pattern that is not a DN: the directory's and the
 * pattern's own.
 */
export function domainsOfPattern(pattern: string, domains: readonly string[]): readonly string[] {
  const own = splitDomain(pattern)?.domain;
  return own === undefined || domains.includes(own) ? domains : [...domains, own];
}

/** Returns the name of the bind; undefined if the pattern cannot contain the name as one name. */
export function fillPattern(pattern: string, name: string): string | undefined {
  if (isDnPattern(pattern)) return pattern.replace('{0}', () => escapeDnValue(name));
  return UNFIT.test(name) || name.trim() !== name ? undefined : pattern.replace('{0}', () => name);
}
