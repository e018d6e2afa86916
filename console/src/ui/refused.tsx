import { ProblemError } from '../../../client/index.ts';
import { common } from '../text/en/common.ts';
import { Note, Small } from './mark.tsx';
import { Problem } from './problem.tsx';

/** A refusal in place; those that need a next step say it before what the server said. */
export function Refused({ error }: { readonly error: unknown }) {
  if (error instanceof ProblemError && (error.code === 'last_admin' || error.code === 'escalation')) {
    return (
      <Note tone="deny" isLive>
        {error.code === 'last_admin' ? common.lastAdmin : common.escalation}
        <Small>{error.detail}</Small>
      </Note>
    );
  }
  return <Problem error={error} />;
}
