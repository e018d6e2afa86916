/** The audit log: a list, and one row in full. */

import { useNavigate, useSearch } from '@tanstack/react-router';
import type { AuditRow } from '../../../../client/index.ts';
import { useList } from '../../api/list.ts';
import { useTenant } from '../../api/session.ts';
import { audit as text } from '../../text/en/audit.ts';
import { SearchField } from '../../ui/field.tsx';
import { type ListColumn, ListTable } from '../../ui/list.tsx';
import { ListEmpty } from '../../ui/list-empty.tsx';
import { OneOrAll } from '../../ui/list-page.tsx';
import { Id, Note, State } from '../../ui/mark.tsx';
import { Page, Tools } from '../../ui/page.tsx';
import { Moment } from '../../ui/time.tsx';
import { useTyped } from '../../ui/use-typed.ts';
import { Actor, Target } from './actor.tsx';
import styles from './audit.module.css';
import { AuditDrawer } from './audit-drawer.tsx';
import { Chain } from './chain.tsx';
import { Export } from './export.tsx';
import { FilterButtons, FilterChips } from './filters.tsx';
import { AUDIT_RESULTS, type AuditSearch } from './search.ts';

const TONES = { success: 'good', failure: 'care', refused: 'deny' } as const;
const PAGE = 50;

const COLUMNS: readonly ListColumn<AuditRow>[] = [
  {
    id: 'time',
    title: text.time,
    cell: (row) => (
      <span className={styles.at}>
        <Moment time={row.time} />
      </span>
    ),
  },
  { id: 'actor', title: text.actor, cell: (row) => <Actor actor={row.actor} /> },
  { id: 'action', title: text.action, cell: (row) => <code>{row.action}</code> },
  { id: 'target', title: text.target, cell: (row) => <Target target={row.target} /> },
  {
    id: 'result',
    title: text.result,
    cell: (row) => <State tone={TONES[row.result]}>{text.results[row.result]}</State>,
  },
  { id: 'address', title: text.address, rank: 'second', cell: (row) => <code>{row.address}</code> },
  {
    id: 'request',
    title: text.requestId,
    rank: 'second',
    cell: (row) => (row.request_id === null ? null : <Id value={row.request_id} />),
  },
];

export function Audit() {
  const tenant = useTenant();
  const search = useSearch({ from: '/inside/audit' });
  const navigate = useNavigate({ from: '/audit' });
  const [typed, setTyped] = useTyped(search.q ?? '', (q) => {
    void navigate({ search: (before) => ({ ...before, q: q === '' ? undefined : q }), replace: true });
  });
  const query = queryOf(search);
  const list = useList<'/v1/iam/audit'>([tenant.id, 'audit', query], (cursor, signal) =>
    tenant.client.request('GET', '/v1/iam/audit', {
      query: { ...query, include: 'names', limit: PAGE, cursor },
      signal,
    }),
  );
  const opened = list.kind === 'loaded' ? list.rows.find(({ id }) => id === search.open) : undefined;
  const show = (change: Partial<AuditSearch>): void =>
    void navigate({ search: (before) => ({ ...before, open: undefined, ...change }) });
  const isFiltered = Object.values(query).some((value) => value !== undefined);
  const showAll = (): void => void navigate({ search: {} });
  return (
    <Page
      title={text.title}
      says={
        <>
          {text.says} <Chain />
        </>
      }
      actions={<Export query={query} />}
    >
      <Tools end={text.zone(Intl.DateTimeFormat().resolvedOptions().timeZone)}>
        <SearchField label={text.search} placeholder={text.searchFor} value={typed} onChange={setTyped} />
        <FilterButtons search={search} onChange={show} />
        <OneOrAll
          label={text.result}
          values={AUDIT_RESULTS}
          texts={{ ...text.results, all: text.allResults }}
          value={search.result}
          onChange={(result) => show({ result })}
        />
        <FilterChips search={search} onChange={show} />
      </Tools>
      {search.open !== undefined && opened === undefined && list.kind === 'loaded' ? (
        <div className={styles.notShown}>
          <Note tone="care" isLive>
            {text.notShown} (<code>{search.open}</code>). {text.notShownSays}
          </Note>
        </div>
      ) : null}
      <ListTable
        label={text.title}
        list={list}
        idOf={(row: AuditRow) => row.id}
        onOpen={({ id }) => show({ open: id })}
        empty={<ListEmpty texts={text} onShowAll={isFiltered ? showAll : undefined} />}
        columns={COLUMNS}
      />
      {opened === undefined ? null : <AuditDrawer row={opened} onClose={() => show({})} onFilter={show} />}
    </Page>
  );
}

export type AuditQuery = Omit<AuditSearch, 'open'>;

function queryOf({ q, actor, action, target, result, from, to, request_id }: AuditSearch): AuditQuery {
  return { q, actor, action, target, result, from, to, request_id };
}
