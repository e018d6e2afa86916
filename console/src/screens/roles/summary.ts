import type { ResourceConstraints } from '../../../../client/index.ts';
import { constraintPhrases, rightsPhrase } from '../../api/permissions.ts';
import { permissions as words } from '../../text/en/permissions.ts';
import { roles as text } from '../../text/en/roles.ts';

/**
 * A role as one sentence.
 *
 * @param meaning of a pattern; default: the console's own words, otherwise the pattern itself
 */
export function summaryOf(
  patterns: readonly string[],
  constraints: ResourceConstraints,
  meaning: (pattern: string) => string = (pattern) => words.meaning(pattern) ?? pattern,
): string {
  if (patterns.length === 0) return text.givesNothing;
  const phrases = constraintPhrases(constraints);
  const gives = text.gives(rightsPhrase(patterns, meaning));
  return gives + (phrases.length === 0 ? text.end : text.narrowing(words.list(phrases)));
}
