/** The name that somebody typed: whether it can be one, which domain it names, and what is bound as. */

import { escapeDnValue, fold } from './dn.ts';
import type { DirectorySettings } from './settings.ts';

export interface TypedName {
  /** As it was typed. */
  readonly typed: string;
  /** Without the domain, where that is one of the directory's. */
  readonly name: string;
}

const MAX_LENGTH = 256;
/** What no pattern but that of a DN can hold as part of one name. */
const UNFIT = /[\p{Cc}@\\]/u;

/**
 * Directories overlook blanks around a name when they compare, and 389 Directory Server what comes after a NUL. Such a name finds the entry
 * of another one, and is nobody's here.
 */
export function isExact(name: string): boolean {
  return !/\p{Cc}/u.test(name) && name.trim() === name;
}

/** Empty, immoderate or broken text names nobody, and no server is asked. */
export function isName(text: string): boolean {
  return text !== '' && text.length <= MAX_LENGTH && text.isWellFormed();
}

/** `CORP\alice` and `alice@corp.example`: the domain in lower case, and the rest. */
export function splitDomain(typed: string): { readonly domain: string; readonly name: string } | undefined {
  const slash = typed.indexOf('\\');
  if (slash > 0 && slash < typed.length - 1)
    return { domain: fold(typed.slice(0, slash)), name: typed.slice(slash + 1) };
  const at = typed.lastIndexOf('@');
  return at > 0 && at < typed.length - 1 ? { domain: fold(typed.slice(at + 1)), name: typed.slice(0, at) } : undefined;
}

export function typedName(typed: string, domains: readonly string[]): TypedName {
  const split = splitDomain(typed);
  return { typed, name: split !== undefined && domains.includes(split.domain) ? split.name : typed };
}

/**
 * Returns the directories that may be asked for a name, in their order: those with the name's domain. A name without one of the configured
 * domains belongs to the only directory, or to those that are configured to take such names.
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

/** DN patterns hold an unescaped `=` before the placeholder; the others are a UPN or a down-level logon name. */
export function isDnPattern(pattern: string): boolean {
  return pattern.slice(0, pattern.indexOf('{0}')).includes('=');
}

/**
 * Returns the domains whose accounts may log in by a pattern that is no DN, in lower case: those of the directory, and the pattern's own.
 */
export function domainsOfPattern(pattern: string, domains: readonly string[]): readonly string[] {
  const own = splitDomain(pattern)?.domain;
  return own === undefined || domains.includes(own) ? domains : [...domains, own];
}

/** What to bind as; undefined when the name cannot stand in the pattern as one name. */
export function fillPattern(pattern: string, name: string): string | undefined {
  if (isDnPattern(pattern)) return pattern.replace('{0}', () => escapeDnValue(name));
  return UNFIT.test(name) || name.trim() !== name ? undefined : pattern.replace('{0}', () => name);
}
