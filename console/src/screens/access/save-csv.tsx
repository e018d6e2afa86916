/** Saves the whole list as the server streams it. */

import { useMutation } from '@tanstack/react-query';
import { useTenant } from '../../api/session.ts';
import { access as text } from '../../text/en/access.ts';
import { Button } from '../../ui/button.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Note } from '../../ui/mark.tsx';
import { Problem } from '../../ui/problem.tsx';
import { saveAs } from '../../ui/save.ts';
import type { AccessQuery } from './access.tsx';

/** The last line of a file that the server could not complete. */
const STOPPED = /^export_stopped,/m;

export function SaveCsv({ query }: { readonly query: AccessQuery }) {
  const { id, client } = useTenant();
  const save = useMutation({
    mutationFn: async () => {
      const answer = await client.stream('GET', '/v1/iam/explain/who-can', { query, accept: 'text/csv' });
      const lines = await answer.text();
      saveAs(`access-${id}.csv`, new Blob([lines], { type: 'text/csv' }));
      return { isStopped: STOPPED.test(lines) };
    },
  });
  return (
    <>
      {save.isError ? <Problem error={save.error} /> : null}
      {save.data?.isStopped === true ? (
        <Note tone="care" isLive>
          {text.stopped}
        </Note>
      ) : null}
      <Button onPress={() => save.mutate()} isPending={save.isPending}>
        <Icon name="export" />
        {save.isPending ? text.saving : text.save}
      </Button>
    </>
  );
}
