/** Tokens and requests of a month or of any days, by model, key, user or day, and by tenant for the platform. */

import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { UsageRow } from '../../../../client/index.ts';
import { useList } from '../../api/list.ts';
import { useMe, useTenant } from '../../api/session.ts';
import { usage as text } from '../../text/en/usage.ts';
import { Bar } from '../../ui/bar.tsx';
import { Segments } from '../../ui/field.tsx';
import { type ListColumn, ListTable } from '../../ui/list.tsx';
import { Empty } from '../../ui/mark.tsx';
import { compact, count } from '../../ui/number.ts';
import { Page, Tools } from '../../ui/page.tsx';
import { Blocked } from './blocked.tsx';
import { ChooseSpan, daysIn } from './choose-span.tsx';
import { COUNTED, DaysChart } from './days.tsx';
import { GroupName, groupIdOf } from './group-name.tsx';
import { Limits } from './limits.tsx';
import { useDailyUsage, useUsageOf, useUsageTime } from './queries.ts';
import { SaveCsv } from './save-csv.tsx';
import { USAGE_GROUPS, USAGE_SORTS, type UsageGroup, type UsageSearch } from './search.ts';
import styles from './usage.module.css';

const PAGE = 50;

export function Usage() {
  const tenant = useTenant();
  const search = useSearch({ from: '/inside/usage' });
  const navigate = useNavigate({ from: '/usage' });
  const me = useMe();
  const groups = USAGE_GROUPS.filter((group) => group !== 'tenant' || me.platform_admin);
  const by = groups.find((group) => group === search.by) ?? 'model';
  const isPlatform = by === 'tenant';
  const now = useUsageTime(isPlatform);
  const days = daysIn(search, now);
  const sort = search.sort ?? (by === 'day' ? 'id' : '-total_tokens');
  const of = useUsageOf(isPlatform);
  const query = { ...of.tenant, ...days, group_by: by, sort, include: 'names', limit: PAGE } as const;
  const list = useList<'/v1/iam/usage'>([tenant.id, 'usage', of.id, query], (cursor, signal) =>
    of.client.request('GET', '/v1/iam/usage', { query: { ...query, cursor }, signal }),
  );
  const daily = useDailyUsage(days, isPlatform);
  const total = daily.data?.total;
  const show = (change: Partial<UsageSearch>): void =>
    void navigate({ search: (old) => ({ ...old, ...change }), resetScroll: false });
  return (
    <Page
      title={text.title}
      says={total === undefined ? undefined : text.says(count(total.requests), count(total.total_tokens))}
      actions={<SaveCsv days={days} by={by} sort={sort} />}
    >
      {isPlatform ? null : (
        <>
          <Limits />
          <Blocked />
        </>
      )}
      <Tools
        end={
          total === undefined || total.estimated_tokens === 0
            ? null
            : text.estimatedSays(compact(total.estimated_tokens))
        }
      >
        <ChooseSpan now={now} search={search} days={days} onChange={show} />
        <Segments
          label={text.by}
          value={by}
          onChange={(value) => show({ by: value, sort: undefined })}
          options={groups.map((value) => ({ value, label: text.groups[value] }))}
        />
      </Tools>
      <DaysChart days={days} usage={daily} {...COUNTED} />
      <p className={styles.metered}>{text.metered}</p>
      <ListTable
        label={text.title}
        list={list}
        idOf={groupIdOf}
        sort={sort}
        onSort={(wanted) => show({ sort: USAGE_SORTS.find((known) => known === wanted) })}
        empty={
          <Empty title={text.empty} action={<Link to="/connect">{text.toConnect}</Link>}>
            {text.emptySays}
          </Empty>
        }
        columns={columnsOf(by, total?.total_tokens ?? 1)}
      />
    </Page>
  );
}

function columnsOf(by: UsageGroup, total: number): readonly ListColumn<UsageRow>[] {
  const number = (
    member: 'requests' | 'prompt_tokens' | 'completion_tokens' | 'cached_tokens' | 'estimated_tokens' | 'total_tokens',
    title: string,
  ) =>
    ({
      id: member,
      sort: `-${member}`,
      title,
      kind: 'number',
      isLabeled: true,
      cell: (row: UsageRow) => count(row[member]),
    }) as const;
  return [
    { id: 'group', sort: 'id', title: text.groups[by], cell: (row) => <GroupName row={row} /> },
    number('requests', text.requests),
    { ...number('prompt_tokens', text.prompt), rank: 'second' },
    { ...number('completion_tokens', text.completion), rank: 'second' },
    { ...number('cached_tokens', text.cached), rank: 'second' },
    { ...number('estimated_tokens', text.estimated), rank: 'phoneOff' },
    number('total_tokens', text.total),
    {
      id: 'share',
      title: text.share,
      rank: 'phoneOff',
      cell: (row) => <Bar used={row.total_tokens} limit={Math.max(1, total)} tone="plain" />,
    },
  ];
}
