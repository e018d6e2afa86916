import type { ResourceConstraints } from '../../../../client/index.ts';
import { constraintPhrases, coversAny } from '../../api/permissions.ts';
import { permissions as words } from '../../text/en/permissions.ts';
import { roles as text } from '../../text/en/roles.ts';

const MAX_PHRASES = 8;

/**
 * A role as one sentence. Patterns that another pattern of the role contains are left out.
 *
 * @param meaning of a pattern; default: the console's own words, otherwise the pattern itself
 */
export function summaryOf(
  patterns: readonly string[],
  constraints: ResourceConstraints,
  meaning: (pattern: string) => string = (pattern) => words.meaning(pattern) ?? pattern,
): string {
  const told = patterns.filter((one) => !patterns.some((other) => other !== one && coversAny([other], one)));
  if (told.length === 0) return text.givesNothing;
  const shown = told.slice(0, MAX_PHRASES).map(meaning);
  const left = told.length - shown.length;
  const phrases = constraintPhrases(constraints);
  const gives = text.gives(words.list(left > 0 ? [...shown, text.manyMore(left)] : shown));
  return gives + (phrases.length === 0 ? text.end : text.narrowing(words.list(phrases)));
}
