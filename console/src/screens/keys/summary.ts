import type { ApiKey } from '../../../../client/index.ts';
import { constraintPhrases, rightsPhrase } from '../../api/permissions.ts';
import { keys as text } from '../../text/en/keys.ts';

/**
 * Returns a key's rights as one sentence, which does not say that a key works that does not.
 *
 * @param meaning of a scope, to follow "may"
 */
export function summaryOf(
  { scopes, resource_constraints: constraints, user_id: owner, status }: ApiKey,
  meaning: (pattern: string) => string,
): string {
  const what = rightsPhrase(scopes, meaning);
  return (
    [
      status === 'active' ? text.may(what) : text.could(what),
      ...constraintPhrases(constraints),
      ...(owner === null ? [] : [text.withinOwner]),
    ].join(', ') + text.end
  );
}
