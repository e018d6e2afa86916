import { ProblemError } from '../../../../client/index.ts';
import { users as text } from '../../text/en/users.ts';
import { Note, Small } from '../../ui/mark.tsx';
import { Problem } from '../../ui/problem.tsx';

/** A refusal in place; those that need a next step say it before what the server said. */
export function Refused({ error }: { readonly error: unknown }) {
  if (error instanceof ProblemError && (error.code === 'last_admin' || error.code === 'escalation')) {
    return (
      <Note tone="deny" isLive>
        {error.code === 'last_admin' ? text.lastAdmin : text.escalation}
        <Small>{error.detail}</Small>
      </Note>
    );
  }
  return <Problem error={error} />;
}
