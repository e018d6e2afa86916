/** Tokens and requests of a month, by model, key, user or day. */

import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { UsageRow } from '../../../../client/index.ts';
import { useList } from '../../api/list.ts';
import { Principal } from '../../api/principal.tsx';
import { useTenant } from '../../api/session.ts';
import { usage as text } from '../../text/en/usage.ts';
import { Bar } from '../../ui/bar.tsx';
import { Button } from '../../ui/button.tsx';
import { Segments } from '../../ui/field.tsx';
import { Icon } from '../../ui/icon.tsx';
import { ListTable } from '../../ui/list.tsx';
import { Empty } from '../../ui/mark.tsx';
import { compact, count } from '../../ui/number.ts';
import { Page, Tools } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { saveAs } from '../../ui/save.ts';
import { Blocked } from './blocked.tsx';
import { Days } from './days.tsx';
import { Limits } from './limits.tsx';
import { monthName, monthOf, shifted } from './month.ts';
import { USAGE_GROUPS } from './search.ts';
import styles from './usage.module.css';

type Group = (typeof USAGE_GROUPS)[number];

export function Usage() {
  const tenant = useTenant();
  const search = useSearch({ from: '/inside/usage' });
  const navigate = useNavigate({ from: '/usage' });
  const by = search.by ?? 'model';
  const period = search.period ?? monthOf(Date.now());
  const query = { period, group_by: by, limit: 50 } as const;
  const list = useList<'/v1/iam/usage'>([tenant.id, 'usage', query], (cursor, signal) =>
    tenant.client.request('GET', '/v1/iam/usage', { query: { ...query, cursor }, signal }),
  );
  const sums = useQuery({
    queryKey: [tenant.id, 'usage', period],
    queryFn: ({ signal }) => tenant.client.usage.get({ period }, { signal }),
  });
  const total = sums.data?.total;
  return (
    <Page
      title={text.title}
      says={total === undefined ? undefined : text.says(count(total.requests), count(total.total_tokens))}
      actions={<Save period={period} by={by} />}
    >
      <Limits />
      <Blocked />
      <Tools
        end={
          total === undefined || total.estimated_tokens === 0
            ? null
            : text.estimatedSays(compact(total.estimated_tokens))
        }
      >
        <div className={styles.month}>
          <Button
            tone="quiet"
            square
            label={text.before}
            onPress={() => void navigate({ search: (old) => ({ ...old, period: shifted(period, -1) }) })}
          >
            <span className={styles.back}>
              <Icon name="right" />
            </span>
          </Button>
          <strong aria-live="polite">{monthName(period)}</strong>
          <Button
            tone="quiet"
            square
            label={text.after}
            onPress={() => void navigate({ search: (old) => ({ ...old, period: shifted(period, 1) }) })}
          >
            <Icon name="right" />
          </Button>
        </div>
        <Segments
          label={text.by}
          value={by}
          onChange={(value) => void navigate({ search: (old) => ({ ...old, by: value }) })}
          options={USAGE_GROUPS.map((value) => ({ value, label: text.groups[value] }))}
        />
      </Tools>
      <Days period={period} />
      <p className={styles.metered}>{text.metered}</p>
      <ListTable
        label={text.title}
        list={list}
        idOf={(row) => groupOf(row, by) ?? ''}
        empty={
          <Empty title={text.empty} action={<Link to="/connect">{text.toConnect}</Link>}>
            {text.emptySays}
          </Empty>
        }
        columns={[
          { id: 'group', title: text.groups[by], cell: (row) => <GroupName row={row} by={by} /> },
          { id: 'requests', title: text.requests, kind: 'number', cell: (row) => count(row.requests) },
          { id: 'prompt', title: text.prompt, kind: 'number', rank: 'second', cell: (row) => count(row.prompt_tokens) },
          {
            id: 'completion',
            title: text.completion,
            kind: 'number',
            rank: 'second',
            cell: (row) => count(row.completion_tokens),
          },
          { id: 'cached', title: text.cached, kind: 'number', rank: 'second', cell: (row) => count(row.cached_tokens) },
          {
            id: 'estimated',
            title: text.estimated,
            kind: 'number',
            rank: 'phoneOff',
            cell: (row) => count(row.estimated_tokens),
          },
          { id: 'total', title: text.total, kind: 'number', cell: (row) => count(row.total_tokens) },
          {
            id: 'share',
            title: text.share,
            rank: 'phoneOff',
            cell: (row) => <Bar used={row.total_tokens} limit={Math.max(1, total?.total_tokens ?? 1)} tone="plain" />,
          },
        ]}
      />
    </Page>
  );
}

function groupOf(row: UsageRow, by: Group): string | null | undefined {
  return row[by];
}

function GroupName({ row, by }: { readonly row: UsageRow; readonly by: Group }) {
  const value = groupOf(row, by) ?? null;
  switch (by) {
    case 'key':
      return value === null ? text.none.key : <Principal type="api_key" id={value} />;
    case 'user':
      return value === null ? text.none.user : <Principal type="user" id={value} />;
    case 'model':
      return value === null ? text.none.model : <code>{value}</code>;
    case 'day':
      return value;
    default:
      return by satisfies never;
  }
}

function Save({ period, by }: { readonly period: string; readonly by: Group }) {
  const { id, client } = useTenant();
  const [error, setError] = useState<unknown>();
  const save = async (): Promise<void> => {
    setError(undefined);
    try {
      const answer = await client.stream('GET', '/v1/iam/usage', {
        query: { period, group_by: by },
        accept: 'text/csv',
      });
      saveAs(`usage-${id}-${period}-by-${by}.csv`, await answer.blob());
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
