/** The permissions that routes and endpoints need, and the patterns that cover one of them. */

import { compareTexts, editDistance } from '../domain/text.ts';
import type { Permission } from './model.ts';
import { coveringPatterns, permissionOf } from './permissions.ts';

export interface PermissionCatalog {
  /** Without repeats, by text. */
  readonly permissions: readonly Permission[];
  /** Every pattern that covers at least one of the permissions. */
  readonly patterns: ReadonlySet<string>;
  /** Returns the pattern of the same form that covers a permission and differs from `pattern` in the fewest letters. */
  nearest(pattern: string): string | undefined;
}

/** Compared letters of a pattern. A longer pattern is not a misspelling. */
const MAX_COMPARED = 64;
/** Kept answers: the same pattern is in many lists. */
const MAX_KEPT = 4096;

export function permissionCatalog(texts: Iterable<string>): PermissionCatalog {
  const permissions = [...new Set(texts)].toSorted(compareTexts).map(permissionOf);
  const patterns = new Set(permissions.flatMap(coveringPatterns));
  const byForm = new Map<string, string[]>();
  for (const pattern of [...patterns].toSorted(compareTexts)) {
    byForm.getOrInsert(formOf(pattern), []).push(pattern);
  }
  const kept = new Map<string, string | undefined>();
  return {
    permissions,
    patterns,
    nearest(pattern) {
      if (kept.has(pattern)) return kept.get(pattern);
      const found = nearestOf(pattern, byForm.get(formOf(pattern)) ?? []);
      if (kept.size >= MAX_KEPT) kept.clear();
      kept.set(pattern, found);
      return found;
    },
  };
}

/** Reports whether the pattern covers a permission that a route or an endpoint needs. */
export function isNeeded({ patterns }: PermissionCatalog, pattern: string): boolean {
  return patterns.has(pattern);
}

/** Returns which parts of the pattern are wildcards. A suggestion has the same form. */
function formOf(pattern: string): string {
  return pattern
    .split(':')
    .map((part) => (part === '*' ? '*' : 'word'))
    .join(':');
}

function nearestOf(pattern: string, candidates: readonly string[]): string | undefined {
  const compared = pattern.slice(0, MAX_COMPARED);
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const distance = editDistance(compared, candidate.slice(0, MAX_COMPARED), bestDistance);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}
