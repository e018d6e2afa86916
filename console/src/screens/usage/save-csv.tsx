/** Saves what a list of usage shows, with all of its pages. */

import { useState } from 'react';
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
  const [error, setError] = useState<unknown>();
  const save = async (): Promise<void> => {
    setError(undefined);
    try {
      const answer = await client.stream('GET', '/v1/iam/usage', {
        query: { ...tenant, ...days, group_by: by, sort },
        accept: 'text/csv',
      });
      saveAs(`usage-${id === '*' ? 'platform' : id}-${days.from}-${days.to}-by-${by}.csv`, await answer.blob());
    } catch (reason) {
      setError(reason);
    }
  };
  return (
    <>
      {error === undefined ? null : <Problem error={error} />}
      <Button onPress={() => void save()}>
        <Icon name="export" />
        {text.exportCsv}
      </Button>
    </>
  );
}
