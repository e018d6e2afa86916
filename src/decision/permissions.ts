/**
 * Permission patterns: `*`, or `<resource>:<action>` where either part is `*` or a word. A `*` stands for a whole part, so a
 * permission is covered by exactly four texts and a set look-up decides; nothing is ever searched.
 */

import { interned } from './interned.ts';
import type { Permission } from './model.ts';

const PATTERN = /^(?:\*|(?:\*|[a-z][a-z0-9_-]*):(?:\*|[a-z][a-z0-9_-]*))$/;
const PERMISSION = /^[a-z][a-z0-9_-]*:[a-z][a-z0-9_-]*$/;

/** Longest pattern that is accepted from outside, in characters. */
export const MAX_PATTERN_LENGTH = 128;

/** Works for platform administrators alone, whatever patterns anybody else holds. */
export const ADMIN_TENANTS = 'admin:tenants';

export function isPermissionPattern(text: string): boolean {
  return text.length <= MAX_PATTERN_LENGTH && PATTERN.test(text);
}

/** A concrete `<resource>:<action>`, without wildcards. */
export function isPermission(text: string): boolean {
  return text.length <= MAX_PATTERN_LENGTH && PERMISSION.test(text);
}

/**
 * The permission of that text. A text without a colon (`self`) is a permission that `*` alone covers.
 */
export function permissionOf(text: string): Permission {
  const colon = text.indexOf(':');
  if (colon < 0) return { text, anyAction: text, anyResource: text };
  return { text, anyAction: `${text.slice(0, colon)}:*`, anyResource: `*${text.slice(colon)}` };
}

/** Patterns compiled for look-up. */
export interface PatternSet {
  /** True when `*` or `*:*` is among them. */
  readonly all: boolean;
  readonly texts: ReadonlySet<string>;
}

const MAX_INTERNED = 4096;

/** Equal lists give one object. */
export const compilePatterns: (patterns: readonly string[]) => PatternSet = interned(
  MAX_INTERNED,
  // A stored pattern may hold any character, so no separator would keep two lists apart.
  (patterns: readonly string[]) => JSON.stringify(patterns),
  (patterns) => Object.freeze({ all: patterns.includes('*') || patterns.includes('*:*'), texts: new Set(patterns) }),
);

export function covers(set: PatternSet, permission: Permission): boolean {
  if (set.all) return true;
  const { texts } = set;
  return texts.has(permission.text) || texts.has(permission.anyAction) || texts.has(permission.anyResource);
}

/** The texts of all patterns that cover a permission: for looking up what `covers` would say yes to. */
export function coveringPatterns({ text, anyAction, anyResource }: Permission): readonly string[] {
  return ['*', '*:*', text, anyAction, anyResource];
}

/** Whether one of the permissions is covered; of none, none is. */
export function coversAny(set: PatternSet, permissions: readonly Permission[]): boolean {
  if (set.all) return permissions.length > 0;
  for (const permission of permissions) if (covers(set, permission)) return true;
  return false;
}

/** `*` is `*:*`: every permission has both parts. */
function parts(pattern: string): readonly [resource: string, action: string] {
  const colon = pattern.indexOf(':');
  return colon < 0 ? [pattern, pattern] : [pattern.slice(0, colon), pattern.slice(colon + 1)];
}

/** Whether every permission that `inner` covers is covered by `outer`. */
export function patternContains(outer: string, inner: string): boolean {
  const [outerResource, outerAction] = parts(outer);
  const [innerResource, innerAction] = parts(inner);
  return (
    (outerResource === '*' || outerResource === innerResource) && (outerAction === '*' || outerAction === innerAction)
  );
}

/** The pattern of what both cover; undefined when that is nothing. */
export function patternIntersection(left: string, right: string): string | undefined {
  if (patternContains(left, right)) return right;
  if (patternContains(right, left)) return left;
  const [leftResource, leftAction] = parts(left);
  const [rightResource, rightAction] = parts(right);
  if (leftResource !== rightResource && leftResource !== '*' && rightResource !== '*') return undefined;
  if (leftAction !== rightAction && leftAction !== '*' && rightAction !== '*') return undefined;
  return `${leftResource === '*' ? rightResource : leftResource}:${leftAction === '*' ? rightAction : leftAction}`;
}
