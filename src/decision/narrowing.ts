/**
 * Narrowed sessions: the scope of a token exchange removes permissions from a principal and never adds one. A request
 * is permitted if the principal has a permission that the scope covers as well.
 */

import { compareTexts } from '../domain/text.ts';
import type { Permission, Principal, UserPrincipal } from './model.ts';
import { covers, type PatternSet, patternIntersection } from './permissions.ts';

/** Returns the user within the scope. A platform administrator stays one only if the scope covers everything. */
export function narrowedUser(user: UserPrincipal, scope: PatternSet): UserPrincipal {
  return { ...user, platformAdmin: user.platformAdmin && scope.all, scope };
}

/** Reports whether the session's scope leaves out all of these permissions. */
export function isLeftOut({ scope }: Principal, permissions: readonly Permission[]): boolean {
  return scope !== undefined && !permissions.some((permission) => covers(scope, permission));
}

/** Returns the patterns of the permissions that the patterns and the scope both cover, each once and sorted. */
export function narrowedPatterns(patterns: readonly string[], scope: PatternSet | undefined): readonly string[] {
  const kept =
    scope === undefined
      ? patterns
      : patterns.flatMap((pattern) => [...scope.texts].flatMap((narrow) => patternIntersection(pattern, narrow) ?? []));
  return [...new Set(kept)].sort(compareTexts);
}
