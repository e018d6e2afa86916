import type { ApiKey } from '../../../../client/index.ts';
import { constraintPhrases, coversAny } from '../../api/permissions.ts';
import { keys as text } from '../../text/en/keys.ts';
import { permissions as words } from '../../text/en/permissions.ts';

const MAX_PHRASES = 8;

/**
 * Returns a key's rights as one sentence, which does not say that a key works that does not. Leaves out scopes that another scope of the key covers.
 *
 * @param meaning of a scope, to follow "may"
 */
export function summaryOf(
  { scopes, resource_constraints: constraints, user_id: owner, status }: ApiKey,
  meaning: (pattern: string) => string,
): string {
  const told = scopes.filter((one) => !scopes.some((other) => other !== one && coversAny([other], one)));
  const shown = told.slice(0, MAX_PHRASES).map(meaning);
  const left = told.length - shown.length;
  const what = words.list(left > 0 ? [...shown, text.manyMore(left)] : shown);
  return (
    [
      status === 'active' ? text.may(what) : text.could(what),
      ...constraintPhrases(constraints),
      ...(owner === null ? [] : [text.withinOwner]),
    ].join(', ') + text.end
  );
}
