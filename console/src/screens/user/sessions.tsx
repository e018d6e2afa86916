/** Where a user is signed in; an administrator ends one session, or all. */

import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { User } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { useList } from '../../api/list.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { users as text } from '../../text/en/users.ts';
import { Button } from '../../ui/button.tsx';
import { Empty, Note } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Refused } from '../../ui/refused.tsx';
import { SessionList } from '../../ui/session-list.tsx';
import { EndSessions } from './confirm.tsx';
import { sessionsOf } from './queries.ts';
import styles from './user.module.css';

const PAGE = 50;

export function Sessions({ user }: { readonly user: User }) {
  const { id: tenant, client } = useTenant();
  const denied = useDenied('admin:users');
  const [state, setState] = useState<'idle' | 'asking' | 'ended'>('idle');
  const list = useList<'/v1/iam/users/{id}/sessions'>([...sessionsOf(tenant, user.id), 'list'], (cursor, signal) =>
    client.request('GET', '/v1/iam/users/{id}/sessions', {
      path: { id: user.id },
      query: { limit: PAGE, cursor },
      signal,
    }),
  );
  const end = useMutation({
    mutationFn: (session: string) => client.users.endSession(user.id, session),
    onSettled: () => changed(tenant, 'users', user.id),
  });
  const isEmpty = list.kind === 'loaded' && list.rows.length === 0;
  return (
    <div className={styles.part}>
      <div className={styles.wide}>
        <SectionHead title={text.sessions} small={text.sessionsSay} />
        {end.isError ? <Refused error={end.error} /> : null}
        {state === 'ended' ? (
          <Note tone="good" isLive>
            {text.ended}
          </Note>
        ) : null}
        <SessionList
          label={text.sessions}
          list={list}
          empty={<Empty title={text.noSessions}>{text.noSessionsSay}</Empty>}
          onEnd={({ id }) => end.mutate(id)}
          denied={denied}
          ending={end.isPending ? end.variables : undefined}
        />
      </div>
      {isEmpty ? null : (
        <Button tone="danger" disabledReason={denied} onPress={() => setState('asking')}>
          {text.endSessions}
        </Button>
      )}
      {state === 'asking' ? (
        <EndSessions user={user} onClose={() => setState('idle')} onDone={() => setState('ended')} />
      ) : null}
    </div>
  );
}
