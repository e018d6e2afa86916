/** Wherever the caller is signed in. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { client } from '../../api/client.ts';
import { useList } from '../../api/list.ts';
import { account as text } from '../../text/en/account.ts';
import { Button } from '../../ui/button.tsx';
import { Empty } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { SessionList } from '../../ui/session-list.tsx';

const KEY = ['sessions'] as const;

export function Sessions() {
  const queries = useQueryClient();
  const list = useList<'/v1/auth/sessions'>(KEY, (cursor, signal) =>
    client.request('GET', '/v1/auth/sessions', { query: { limit: 50, cursor }, signal }),
  );
  const end = useMutation({
    mutationFn: async (id: string | 'others') =>
      id === 'others' ? client.sessions.endOthers() : client.sessions.end(id),
    onSettled: () => queries.invalidateQueries({ queryKey: KEY }),
  });
  return (
    <>
      <SectionHead title={text.sessions} small={text.sessionsSay} />
      {end.isError ? <Problem error={end.error} /> : null}
      <SessionList
        label={text.sessions}
        list={list}
        empty={<Empty title={text.noSessions}>{text.noSessionsSay}</Empty>}
        onEnd={({ id }) => end.mutate(id)}
        ending={end.isPending ? end.variables : undefined}
      />
      {list.kind === 'loaded' && list.rows.length > 1 ? (
        <Button small tone="danger" onPress={() => end.mutate('others')} isPending={end.isPending}>
          {text.endOthers}
        </Button>
      ) : null}
    </>
  );
}
