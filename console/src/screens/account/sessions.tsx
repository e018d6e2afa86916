/** Wherever the caller is signed in. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { Session } from '../../../../client/index.ts';
import { client } from '../../api/client.ts';
import { useList } from '../../api/list.ts';
import { account as text } from '../../text/en/account.ts';
import { Button } from '../../ui/button.tsx';
import { ListTable, TwoLines } from '../../ui/list.tsx';
import { Empty, State } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Ago, Until } from '../../ui/time.tsx';
import { agentName } from './agent.ts';

const KEY = ['sessions'] as const;

export function Sessions() {
  const queries = useQueryClient();
  const list = useList<'/v1/auth/sessions'>(KEY, (cursor, signal) =>
    client.request('GET', '/v1/auth/sessions', { query: { limit: 50, cursor }, signal }),
  );
  const end = useMutation({
    mutationFn: async (id: string | 'others') => (id === 'others' ? client.sessions.endOthers() : client.sessions.end(id)),
    onSuccess: () => queries.invalidateQueries({ queryKey: KEY }),
  });
  return (
    <>
      <SectionHead title={text.sessions} small={text.sessionsSay} />
      {end.isError ? <Problem error={end.error} /> : null}
      <ListTable
        label={text.sessions}
        list={list}
        idOf={(session: Session) => session.id}
        empty={<Empty title={text.noSessions}>{text.noSessionsSay}</Empty>}
        columns={[
          {
            id: 'agent',
            title: text.browser,
            cell: ({ user_agent: agent, address }) => <TwoLines name={agentName(agent) ?? text.unknownAgent} second={address} />,
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
                  onPress={() => end.mutate(session.id)}
                >
                  {text.end}
                </Button>
              ),
          },
        ]}
      />
      {list.kind === 'loaded' && list.rows.length > 1 ? (
        <Button small tone="danger" onPress={() => end.mutate('others')} isPending={end.isPending}>
          {text.endOthers}
        </Button>
      ) : null}
    </>
  );
}
