/** The coverage of permission patterns, and resource constraints as text. */

import type { ResourceConstraints } from '../../../client/index.ts';
import { permissions as text } from '../text/en/permissions.ts';
import { covers } from './session.ts';

const PATTERN = /^(?:\*|(?:\*|[a-z][a-z0-9_-]*):(?:\*|[a-z][a-z0-9_-]*))$/;
const MAX_PATTERN_LENGTH = 128;
/** Works for platform administrators only. */
export const ADMIN_TENANTS = 'admin:tenants';

export const RESOURCE_KINDS = ['models', 'collections', 'agents'] as const;
export type ResourceKind = (typeof RESOURCE_KINDS)[number];

/** Reports whether the server takes the text as a pattern. */
export function isPattern(pattern: string): boolean {
  return pattern.length <= MAX_PATTERN_LENGTH && PATTERN.test(pattern);
}

export function hasWildcard(pattern: string): boolean {
  return pattern.includes('*');
}

/** Reports whether one of the patterns covers the permission, or the other pattern. */
export function coversAny(patterns: readonly string[], permission: string): boolean {
  return patterns.some((pattern) => covers(pattern, permission));
}

/** Those of the known permissions that the patterns cover. */
export function covered(patterns: readonly string[], known: readonly string[]): readonly string[] {
  return known.filter((permission) => coversAny(patterns, permission));
}

/** The patterns that cover no known permission. */
export function unneeded(patterns: readonly string[], known: readonly string[]): readonly string[] {
  return patterns.filter((pattern) => covered([pattern], known).length === 0);
}

export interface Granted<R> {
  /** One resource's permissions, which the same roles give in the same way. */
  readonly permissions: readonly string[];
  readonly givers: readonly R[];
}

interface RoleLike {
  readonly name: string;
  readonly permissions: readonly string[];
}

/**
 * Each permission that the roles give together with the roles that give it, and the known ones that no role gives.
 *
 * @param detailOf what else the permissions of one row have in common, such as the policies that deny them to holders
 *   of the role
 * @param isPlatformAdmin false: `admin:tenants` counts as not given
 */
export function effective<R extends RoleLike>(
  roles: readonly R[],
  detailOf: (role: R, permission: string) => string,
  isPlatformAdmin: boolean,
  known: readonly string[],
): { readonly granted: readonly Granted<R>[]; readonly missing: readonly string[] } {
  const works = (permission: string): boolean => isPlatformAdmin || permission !== ADMIN_TENANTS;
  const given = covered(
    roles.flatMap((role) => role.permissions),
    known,
  ).filter(works);
  const groups = new Map<string, { permissions: string[]; givers: readonly R[] }>();
  for (const permission of given) {
    const givers = roles.filter((role) => coversAny(role.permissions, permission));
    const key = [permission.split(':')[0], ...givers.map((role) => `${role.name} ${detailOf(role, permission)}`)].join(
      '\n',
    );
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { permissions: [permission], givers });
    else group.permissions.push(permission);
  }
  const has = new Set(given);
  return { granted: [...groups.values()], missing: known.filter((permission) => !has.has(permission)) };
}

const MAX_PHRASES = 8;

/**
 * Patterns as one phrase, to follow "may"; empty if there are none. Leaves out a pattern that another one contains.
 * Resources that are given whole stand together at the end.
 *
 * @param meaning of a pattern, to follow "may"
 */
export function rightsPhrase(patterns: readonly string[], meaning: (pattern: string) => string): string {
  const told = patterns.filter((one) => !patterns.some((other) => other !== one && coversAny([other], one)));
  const isWhole = (pattern: string): boolean => /^[^*]+:\*$/.test(pattern);
  const whole = told.filter(isWhole).map((pattern) => pattern.slice(0, -2));
  const others = told.filter((pattern) => !isWhole(pattern));
  const shown = others.slice(0, MAX_PHRASES);
  return text.list([
    ...shown.map(meaning),
    ...(whole.length === 0 ? [] : [text.everythingWith(whole)]),
    ...(shown.length < others.length ? [text.manyMore(others.length - shown.length)] : []),
  ]);
}

/** The constraints that narrow something, one phrase for each kind. */
export function constraintPhrases(constraints: ResourceConstraints): readonly string[] {
  return RESOURCE_KINDS.flatMap((kind) => {
    const names = constraints[kind];
    if (names === undefined || names === null) return [];
    return names.length === 0 ? [text.noneOf[kind]] : [text.only(kind, text.list(names))];
  });
}

const MAX_GLOB_LENGTH = 256;
const MAX_STARS = 8;
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;

export type GlobFault = 'empty' | 'long' | 'stars' | 'control';

/** Returns why a text is no name or glob of a resource constraint; undefined if it is one. */
export function globFault(glob: string): GlobFault | undefined {
  if (glob === '') return 'empty';
  if ([...glob].length > MAX_GLOB_LENGTH) return 'long';
  if (glob.split('*').length - 1 > MAX_STARS) return 'stars';
  return CONTROL.test(glob) ? 'control' : undefined;
}

/** Permissions, shortened: one wildcard where no permission of a resource is absent. */
export function shortenedList(
  permissions: readonly string[],
  known: readonly string[],
): readonly { readonly pattern: string; readonly n: number }[] {
  const resourceOf = (permission: string): string => permission.split(':')[0] ?? '';
  const sizes = Map.groupBy(known, resourceOf);
  return [...Map.groupBy(permissions, resourceOf)].flatMap(([resource, own]) =>
    own.length > 1 && own.length === sizes.get(resource)?.length
      ? [{ pattern: `${resource}:*`, n: own.length }]
      : own.map((pattern) => ({ pattern, n: 1 })),
  );
}
