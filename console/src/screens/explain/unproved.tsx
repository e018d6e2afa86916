/** Step 8: why a credential proves no principal, since when, and where that is managed. */

import type { Explanation } from '../../../../client/index.ts';
import { Principal } from '../../api/principal.tsx';
import { explain as text } from '../../text/en/explain.ts';
import { Looked } from '../../ui/passage.tsx';
import { Moment } from '../../ui/time.tsx';

type Step = Explanation['steps'][number];

export function Unproved({ step: { detail, reason, key_id: key, user_id: user, time } }: { readonly step: Step }) {
  if (reason === undefined) return detail;
  return (
    <>
      {text.reasons[reason]}
      {key === null || key === undefined ? null : (
        <Looked holds={reason === 'owner_deactivated' ? undefined : false} name={text.key}>
          <Principal type="api_key" id={key} />
          {reason === 'owner_deactivated' || time === null || time === undefined ? null : <Since time={time} />}
        </Looked>
      )}
      {user === null || user === undefined ? null : (
        <Looked
          holds={reason === 'owner_deactivated' || reason === 'session_ended' ? false : undefined}
          name={text.user}
        >
          <Principal type="user" id={user} />
          {(reason === 'owner_deactivated' || reason === 'session_ended') && typeof time === 'string' ? (
            <Since time={time} />
          ) : null}
        </Looked>
      )}
    </>
  );
}

function Since({ time }: { readonly time: string }) {
  return (
    <>
      , {text.since} <Moment time={time} />
    </>
  );
}
