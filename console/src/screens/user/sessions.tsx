/** Ends all sessions of a user. The API lists the sessions of the caller only. */

import { useState } from 'react';
import type { User } from '../../../../client/index.ts';
import { useDenied } from '../../api/session.ts';
import { users as text } from '../../text/en/users.ts';
import { Button } from '../../ui/button.tsx';
import { Note } from '../../ui/mark.tsx';
import { EndSessions } from './confirm.tsx';
import styles from './user.module.css';

export function Sessions({ user }: { readonly user: User }) {
  const denied = useDenied('admin:users');
  const [state, setState] = useState<'idle' | 'asking' | 'ended'>('idle');
  return (
    <div className={styles.part}>
      <p>{text.sessionsSay}</p>
      {state === 'ended' ? (
        <Note tone="good" isLive>
          {text.ended}
        </Note>
      ) : null}
      <Button tone="danger" disabledReason={denied} onPress={() => setState('asking')}>
        {text.endSessions}
      </Button>
      {state === 'asking' ? <EndSessions user={user} onClose={() => setState('idle')} onDone={() => setState('ended')} /> : null}
    </div>
  );
}
