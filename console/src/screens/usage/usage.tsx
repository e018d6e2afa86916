/** Tokens and requests of a month or of any days, by model, key, user or day, and by tenant for the platform. */

import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { UsageRow } from '../../../../client/index.ts';
import { useList } from '../../api/list.ts';
import { Principal } from '../../api/principal.tsx';
import { useMe, useTenant } from '../../api/session.ts';
import { usage as text } from '../../text/en/usage.ts';
import { Bar } from '../../ui/bar.tsx';
import { Button } from '../../ui/button.tsx';
import { Chip } from '../../ui/chip.tsx';
import { Segments } from '../../ui/field.tsx';
import { Filter } from '../../ui/filter.tsx';
import { Icon } from '../../ui/icon.tsx';
import { type ListColumn, ListTable } from '../../ui/list.tsx';
import { Empty } from '../../ui/mark.tsx';
import { compact, count } from '../../ui/number.ts';
import { Page, Tools } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { saveAs } from '../../ui/save.ts';
import { Blocked } from './blocked.tsx';
import { ChooseDays } from './choose-days.tsx';
import { DaysChart } from './days.tsx';
import { Limits } from './limits.tsx';
import { type Days, daysName, daysOfMonth, monthName, monthOf, shifted } from './month.ts';
import { useDailyUsage, useUsageOf } from './queries.ts';
import { USAGE_GROUPS, USAGE_SORTS, type UsageGroup, type UsageSearch } from './search.ts';
import { TenantLink } from './tenant-link.tsx';
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
  const days = daysIn(search);
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
      actions={<Save days={days} by={by} sort={sort} />}
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
        <ChooseSpan search={search} days={days} onChange={show} />
        <Segments
          label={text.by}
          value={by}
          onChange={(value) => show({ by: value, sort: undefined })}
          options={groups.map((value) => ({ value, label: text.groups[value] }))}
        />
      </Tools>
      <DaysChart days={days} usage={daily} />
      <p className={styles.metered}>{text.metered}</p>
      <ListTable
        label={text.title}
        list={list}
        idOf={(row) => row[by] ?? ''}
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

/** The days of the address, by default those of the current month. */
function daysIn({ period, from, to }: UsageSearch): Days {
  if (from !== undefined && to !== undefined) return { from, to };
  return daysOfMonth(period ?? monthOf(Date.now()));
}

interface ChooseSpanProps {
  readonly search: UsageSearch;
  readonly days: Days;
  readonly onChange: (change: Partial<UsageSearch>) => void;
}

/** A month to step through, or any days. */
function ChooseSpan({ search: { period: chosen, from, to }, days, onChange }: ChooseSpanProps) {
  const period = chosen ?? monthOf(Date.now());
  const isMonth = from === undefined || to === undefined;
  return (
    <>
      {isMonth ? (
        <div className={styles.month}>
          <Button tone="quiet" square label={text.before} onPress={() => onChange({ period: shifted(period, -1) })}>
            <span className={styles.back}>
              <Icon name="right" />
            </span>
          </Button>
          <strong aria-live="polite">{monthName(period)}</strong>
          <Button tone="quiet" square label={text.after} onPress={() => onChange({ period: shifted(period, 1) })}>
            <Icon name="right" />
          </Button>
        </div>
      ) : (
        <Chip label={text.clearDays} onRemove={() => onChange({ from: undefined, to: undefined })}>
          {daysName(days)}
        </Chip>
      )}
      <Filter label={text.days} title={text.chooseDays}>
        {(close) => (
          <ChooseDays
            days={days}
            onChoose={(wanted) => {
              close();
              onChange(wanted);
            }}
          />
        )}
      </Filter>
    </>
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
    { id: 'group', sort: 'id', title: text.groups[by], cell: (row) => <GroupName row={row} by={by} /> },
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

function GroupName({ row, by }: { readonly row: UsageRow; readonly by: UsageGroup }) {
  const value = row[by] ?? null;
  switch (by) {
    case 'key':
      return value === null ? text.none.key : <Principal type="api_key" id={value} name={row.name ?? null} />;
    case 'user':
      return value === null ? text.none.user : <Principal type="user" id={value} name={row.name ?? null} />;
    case 'model':
      return value === null ? text.none.model : <code>{value}</code>;
    case 'tenant':
      return value === null ? null : <TenantLink id={value} name={row.name ?? value} />;
    case 'day':
      return value;
    default:
      return by satisfies never;
  }
}

interface SaveProps {
  readonly days: Days;
  readonly by: UsageGroup;
  readonly sort: (typeof USAGE_SORTS)[number];
}

function Save({ days, by, sort }: SaveProps) {
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
