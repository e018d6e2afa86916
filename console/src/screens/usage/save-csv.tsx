/** Saves what a list of usage shows, with all of its pages. */

import { useMutation } from '@tanstack/react-query';
import { usage as text } from '../../text/en/usage.ts';
import { Button } from '../../ui/button.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Problem } from '../../ui/problem.tsx';
import { saveAs } from '../../ui/save.ts';
import type { Days } from './month.ts';
import { useUsageOf } from './queries.ts';
import type { USAGE_SORTS, UsageGroup } from './search.ts';

interface SaveCsvProps {
  readonly days: Days;
  readonly by: UsageGroup;
  readonly sort: (typeof USAGE_SORTS)[number];
}

export function SaveCsv({ days, by, sort }: SaveCsvProps) {
  const { id, client, tenant } = useUsageOf(by === 'tenant');
  const save = useMutation({
    mutationFn: async () => {
      const answer = await client.stream('GET', '/v1/iam/usage', {
        query: { ...tenant, ...days, group_by: by, sort },
        accept: 'text/csv',
      });
      saveAs(`usage-${id === '*' ? 'platform' : id}-${days.from}-${days.to}-by-${by}.csv`, await answer.blob());
    },
  });
  return (
    <>
      {save.isError ? <Problem error={save.error} /> : null}
      <Button onPress={() => save.mutate()} isPending={save.isPending}>
        <Icon name="export" />
        {text.exportCsv}
      </Button>
    </>
  );
}
