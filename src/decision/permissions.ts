/**
 * Permission patterns: `*`, or `<resource>:<action>` in which either part is `*` or a word. A `*` replaces a whole
 * part, so exactly four texts cover a permission, and a lookup in a set decides.
 */

import { interned } from './interned.ts';
import type { Permission } from './model.ts';

const PATTERN = /^(?:\*|(?:\*|[a-z][a-z0-9_-]*):(?:\*|[a-z][a-z0-9_-]*))$/;
const PERMISSION = /^[a-z][a-z0-9_-]*:[a-z][a-z0-9_-]*$/;

/** Longest pattern that is accepted from outside, in characters. */
export const MAX_PATTERN_LENGTH = 128;

/** Only platform administrators can use this permission, even if other principals hold patterns that cover it. */
export const ADMIN_TENANTS = 'admin:tenants';

export function isPermissionPattern(text: string): boolean {
  return text.length <= MAX_PATTERN_LENGTH && PATTERN.test(text);
}

/** Reports whether the text is a concrete `<resource>:<action>`, without wildcards. */
export function isPermission(text: string): boolean {
  return text.length <= MAX_PATTERN_LENGTH && PERMISSION.test(text);
}

/** Returns the permission of the text. Only `*` covers a text without a colon (`self`). */
export function permissionOf(text: string): Permission {
  const colon = text.indexOf(':');
  if (colon < 0) return { text, anyAction: text, anyResource: text };
  return { text, anyAction: `${text.slice(0, colon)}:*`, anyResource: `*${text.slice(colon)}` };
}

export interface PatternSet {
  /** True if `*` or `*:*` is among them. */
  readonly all: boolean;
  readonly texts: ReadonlySet<string>;
}

const MAX_INTERNED = 4096;

/** Returns the same object for equal lists. */
export const compilePatterns: (patterns: readonly string[]) => PatternSet = interned(
  MAX_INTERNED,
  // A stored pattern may contain any character, so no separator would distinguish all lists.
  (patterns: readonly string[]) => JSON.stringify(patterns),
  (patterns) => Object.freeze({ all: patterns.includes('*') || patterns.includes('*:*'), texts: new Set(patterns) }),
);

export function covers(set: PatternSet, permission: Permission): boolean {
  if (set.all) return true;
  const { texts } = set;
  return texts.has(permission.text) || texts.has(permission.anyAction) || texts.has(permission.anyResource);
}

/** Returns the texts of all patterns that cover a permission. */
export function coveringPatterns({ text, anyAction, anyResource }: Permission): readonly string[] {
  return ['*', '*:*', text, anyAction, anyResource];
}

/** Reports whether one of the permissions is covered; false for an empty list. */
export function coversAny(set: PatternSet, permissions: readonly Permission[]): boolean {
  if (set.all) return permissions.length > 0;
  for (const permission of permissions) if (covers(set, permission)) return true;
  return false;
}

/** `*` equals `*:*`, because every permission has both parts. */
function parts(pattern: string): readonly [resource: string, action: string] {
  const colon = pattern.indexOf(':');
  return colon < 0 ? [pattern, pattern] : [pattern.slice(0, colon), pattern.slice(colon + 1)];
}

/** Reports whether `outer` covers every permission that `inner` covers. */
export function patternContains(outer: string, inner: string): boolean {
  const [outerResource, outerAction] = parts(outer);
  const [innerResource, innerAction] = parts(inner);
  return (
    (outerResource === '*' || outerResource === innerResource) && (outerAction === '*' || outerAction === innerAction)
  );
}

/** Returns every pattern that covers the permissions that the given one covers. */
export function containingPatterns(pattern: string): readonly string[] {
  const [resource, action] = parts(pattern);
  const named = [`${resource}:${action}`, `${resource}:*`, `*:${action}`, '*:*', '*'];
  return resource === action ? [...named, resource] : named;
}

/** Returns the pattern of the permissions that both cover; undefined = none. */
export function patternIntersection(left: string, right: string): string | undefined {
  if (patternContains(left, right)) return right;
  if (patternContains(right, left)) return left;
  const [leftResource, leftAction] = parts(left);
  const [rightResource, rightAction] = parts(right);
  if (leftResource !== rightResource && leftResource !== '*' && rightResource !== '*') return undefined;
  if (leftAction !== rightAction && leftAction !== '*' && rightAction !== '*') return undefined;
  return `${leftResource === '*' ? rightResource : leftResource}:${leftAction === '*' ? rightAction : leftAction}`;
}
