/** The money of a month or of any days: by user, key or model, by day, and what is left of the budgets. */

import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { UsageRow } from '../../../../client/index.ts';
import { useList } from '../../api/list.ts';
import { useCurrency } from '../../api/prices.ts';
import { useMe, useTenant } from '../../api/session.ts';
import { spend as text } from '../../text/en/spend.ts';
import { usage as usageText } from '../../text/en/usage.ts';
import { Bar } from '../../ui/bar.tsx';
import { Segments } from '../../ui/field.tsx';
import { type ListColumn, ListTable } from '../../ui/list.tsx';
import { Empty, State } from '../../ui/mark.tsx';
import { money } from '../../ui/money.ts';
import { count } from '../../ui/number.ts';
import { Page, Sentence, Tools } from '../../ui/page.tsx';
import { ChooseSpan, daysIn } from '../usage/choose-span.tsx';
import { DaysChart, type Measure } from '../usage/days.tsx';
import { GroupName, groupIdOf } from '../usage/group-name.tsx';
import { type Days, daysName, monthName, monthOf } from '../usage/month.ts';
import { useDailyUsage, useUsageOf, useUsageTime } from '../usage/queries.ts';
import { SaveCsv } from '../usage/save-csv.tsx';
import { BudgetsLeft } from './budgets-left.tsx';
import { forecastOf } from './forecast.ts';
import { SPEND_GROUPS, SPEND_SORTS, type SpendGroup, type SpendSearch } from './search.ts';
import styles from './spend.module.css';
import { Unpriced } from './unpriced.tsx';

const PAGE = 50;

export function Spend() {
  const tenant = useTenant();
  const search = useSearch({ from: '/inside/spend' });
  const navigate = useNavigate({ from: '/spend' });
  const me = useMe();
  const currency = useCurrency();
  const groups = SPEND_GROUPS.filter((group) => group !== 'tenant' || me.platform_admin);
  const by = groups.find((group) => group === search.by) ?? 'user';
  const isPlatform = by === 'tenant';
  const now = useUsageTime(isPlatform);
  const days = daysIn(search, now);
  const sort = search.sort ?? '-cost';
  const of = useUsageOf(isPlatform);
  const query = { ...of.tenant, ...days, group_by: by, sort, include: 'names', limit: PAGE } as const;
  const list = useList<'/v1/iam/usage'>([tenant.id, 'usage', of.id, query], (cursor, signal) =>
    of.client.request('GET', '/v1/iam/usage', { query: { ...query, cursor }, signal }),
  );
  const daily = useDailyUsage(days, isPlatform);
  const total = daily.data?.total;
  const show = (change: Partial<SpendSearch>): void =>
    void navigate({ search: (old) => ({ ...old, ...change }), resetScroll: false });
  return (
    <Page title={text.title} actions={<SaveCsv days={days} by={by} sort={sort} />}>
      <div className={styles.head}>
        {total === undefined ? (
          <div className={styles.wait} aria-busy={daily.isPending} />
        ) : (
          <Said now={now} search={search} days={days} cost={total.cost} currency={currency} />
        )}
      </div>
      {(total?.unpriced_requests ?? 0) === 0 ? null : (
        <Unpriced days={days} isPlatform={isPlatform} requests={total?.unpriced_requests ?? 0} />
      )}
      {isPlatform ? null : <BudgetsLeft />}
      <Tools end={<Link to="/usage">{text.toUsage}</Link>}>
        <ChooseSpan now={now} search={search} days={days} onChange={show} />
        <Segments
          label={text.by}
          value={by}
          onChange={(value) => show({ by: value, sort: undefined })}
          options={groups.map((value) => ({ value, label: text.groups[value] }))}
        />
      </Tools>
      <DaysChart
        days={days}
        usage={daily}
        measures={[costMeasure(currency)]}
        columns={[
          { title: usageText.requests, cell: ({ requests }) => count(requests) },
          { title: text.spent, cell: ({ cost }) => money(cost, currency) },
        ]}
      />
      <ListTable
        label={text.title}
        list={list}
        idOf={groupIdOf}
        sort={sort}
        onSort={(wanted) => show({ sort: SPEND_SORTS.find((known) => known === wanted) })}
        empty={
          <Empty title={text.empty} action={<Link to="/connect">{usageText.toConnect}</Link>}>
            {text.emptySays}
          </Empty>
        }
        columns={columnsOf(by, total?.cost ?? '0', currency)}
      />
    </Page>
  );
}

interface SaidProps {
  readonly now: number;
  readonly search: SpendSearch;
  readonly days: Days;
  readonly cost: string;
  readonly currency: string | undefined;
}

/** The spend in one sentence, with the forecast if the time is the current month. */
function Said({ now, search: { period, from, to }, days, cost, currency }: SaidProps) {
  const month = period ?? monthOf(now);
  const isMonth = from === undefined || to === undefined;
  const isCurrent = isMonth && month === monthOf(now);
  const forecast = isCurrent ? forecastOf(Number(cost), days, now) : undefined;
  return (
    <>
      <Sentence>
        <b>{money(cost, currency)}</b>{' '}
        {isCurrent ? text.soFar(monthName(month)) : text.inTime(isMonth ? monthName(month) : daysName(days))}.
        {forecast === undefined ? null : (
          <>
            {' '}
            {text.forecast} <b>{money(forecast, currency)}</b> {text.byTheEnd}
          </>
        )}
      </Sentence>
      {forecast === undefined ? null : <p className={styles.small}>{text.forecastSays}</p>}
    </>
  );
}

function costMeasure(currency: string | undefined): Measure {
  const say = (amount: number): string => money(String(amount), currency);
  return {
    id: 'cost',
    label: text.spent,
    title: text.perDay,
    says: text.chartSays,
    of: ({ cost }) => Number(cost),
    say,
    tick: say,
    isWhole: false,
  };
}

function columnsOf(by: SpendGroup, total: string, currency: string | undefined): readonly ListColumn<UsageRow>[] {
  return [
    { id: 'group', title: text.groups[by], cell: (row) => <GroupName row={row} /> },
    {
      id: 'cost',
      sort: '-cost',
      title: text.spent,
      kind: 'number',
      cell: ({ cost, unpriced_requests: unpriced }) =>
        by === 'model' && Number(cost) === 0 && (unpriced ?? 0) > 0 ? (
          <State tone="care">{text.noPrice}</State>
        ) : (
          money(cost, currency)
        ),
    },
    {
      id: 'requests',
      sort: '-requests',
      title: usageText.requests,
      kind: 'number',
      isLabeled: true,
      cell: ({ requests }) => count(requests),
    },
    {
      id: 'total_tokens',
      sort: '-total_tokens',
      title: usageText.total,
      kind: 'number',
      isLabeled: true,
      cell: ({ total_tokens: tokens }) => count(tokens),
    },
    {
      id: 'share',
      title: text.share,
      rank: 'phoneOff',
      cell: ({ cost }) => <Bar used={Number(cost)} limit={Number(total) || 1} tone="plain" />,
    },
  ];
}
