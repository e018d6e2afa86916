/** Active sessions: from where each was begun, its times, and a button that ends it. */

import type { ReactNode } from 'react';
import type { Session } from '../../../client/index.ts';
import type { List } from '../api/list.ts';
import { account as text } from '../text/en/account.ts';
import { agentName } from './agent.ts';
import { Button } from './button.tsx';
import { ListTable, TwoLines } from './list.tsx';
import { State } from './mark.tsx';
import { Ago, Until } from './time.tsx';

interface SessionListProps {
  readonly label: string;
  readonly list: List<Session>;
  readonly empty: ReactNode;
  readonly onEnd: (session: Session) => void;
  /** Why the caller may not end a session. */
  readonly denied?: string | undefined;
  /** The session that is being ended. */
  readonly ending?: string | undefined;
}

export function SessionList({ label, list, empty, onEnd, denied, ending }: SessionListProps) {
  return (
    <ListTable
      label={label}
      list={list}
      idOf={(session) => session.id}
      empty={empty}
      columns={[
        {
          id: 'agent',
          title: text.browser,
          cell: ({ user_agent: agent, address, issuer }) => (
            <TwoLines name={agentName(agent) ?? text.unknownAgent} second={text.origin(address, issuer)} />
          ),
        },
        { id: 'begun', title: text.begun, rank: 'phoneOff', cell: (session) => <Ago time={session.created_at} /> },
        { id: 'used', title: text.used, rank: 'phoneOff', cell: (session) => <Ago time={session.last_used_at} /> },
        { id: 'ends', title: text.ends, rank: 'phoneOff', cell: (session) => <Until time={session.expires_at} /> },
        {
          id: 'end',
          title: text.end,
          kind: 'end',
          isTitleHidden: true,
          cell: (session) =>
            session.current ? (
              <State>{text.here}</State>
            ) : (
              <Button
                small
                label={text.endOf(agentName(session.user_agent) ?? text.unknownAgent)}
                disabledReason={denied}
                isPending={session.id === ending}
                onPress={() => onEnd(session)}
              >
                {text.end}
              </Button>
            ),
        },
      ]}
    />
  );
}
