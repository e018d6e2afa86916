/** The report-only policy that would have changed the outcome. */

import { Link } from '@tanstack/react-router';
import type { Explanation } from '../../../../client/index.ts';
import { explain as text } from '../../text/en/explain.ts';
import { Note } from '../../ui/mark.tsx';

/** The policies that decide. Report-only policies have no part in the decision. */
export function policiesInForce({ policies }: Pick<Explanation, 'policies'>): Explanation['policies'] {
  return policies.filter(({ mode }) => mode === 'enforce');
}

/** Says nothing if no report-only policy would have changed the outcome. */
export function WouldHave({ would_deny: deny, would_allow: allow }: Pick<Explanation, 'would_deny' | 'would_allow'>) {
  const name = deny ?? allow;
  if (name === null) return null;
  return (
    <Note>
      {text.reportOnly}{' '}
      <Link to="/policies/$name" params={{ name }}>
        {name}
      </Link>{' '}
      {deny === null ? text.wouldAllow : text.wouldDeny}
    </Note>
  );
}
