/** Access review: the roles, users and keys that can use a resource or have a permission. */

import { useInfiniteQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect } from 'react';
import type { WhoCan } from '../../../../client/index.ts';
import { useCatalog } from '../../api/catalog.ts';
import type { List } from '../../api/list.ts';
import { RESOURCE_KINDS } from '../../api/permissions.ts';
import { useMe, useTenant } from '../../api/session.ts';
import { wantedOf } from '../../api/wanted.ts';
import { access as text } from '../../text/en/access.ts';
import { permissions as words } from '../../text/en/permissions.ts';
import { ComboBox } from '../../ui/combo-box.tsx';
import { TextField } from '../../ui/field.tsx';
import { type ListColumn, ListTable, TwoLines } from '../../ui/list.tsx';
import { Empty, Note, State, shortened, Tags } from '../../ui/mark.tsx';
import { Page } from '../../ui/page.tsx';
import { Select } from '../../ui/select.tsx';
import { Moment } from '../../ui/time.tsx';
import { useTyped } from '../../ui/use-typed.ts';
import styles from './access.module.css';
import { SaveCsv } from './save-csv.tsx';
import type { AccessSearch } from './search.ts';

type AccessRow = WhoCan['users'][number] | WhoCan['keys'][number] | NonNullable<WhoCan['roles']>[number];

export interface AccessQuery {
  readonly permission?: string;
  readonly resource?: string;
}

const PAGE = 50;

const COLUMNS: readonly ListColumn<AccessRow>[] = [
  { id: 'who', title: text.who, cell: (row) => <Who row={row} /> },
  { id: 'type', title: text.type, cell: ({ type }) => text.types[type] },
  { id: 'access', title: text.access, cell: (row) => <Verdict row={row} /> },
  {
    id: 'by',
    title: text.by,
    cell: ({ by }) => <code className={styles.by}>{by === 'scopes' ? text.scopes : by}</code>,
  },
  { id: 'permissions', title: text.permissions, rank: 'second', cell: (row) => <Tags values={row.permissions} /> },
];

export function Access() {
  const search = useSearch({ from: '/inside/access' });
  const navigate = useNavigate({ from: '/access' });
  const show = (change: Partial<AccessSearch>): void =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  const query = queryOf(search);
  return (
    <Page title={text.title} says={text.says} actions={query === undefined ? undefined : <SaveCsv query={query} />}>
      <Question search={search} onChange={show} />
      {query === undefined ? <Empty title={text.before}>{text.beforeSays}</Empty> : <Results query={query} />}
    </Page>
  );
}

/** @returns undefined while the address names neither a resource nor a permission */
function queryOf({ kind = 'models', name, permission }: AccessSearch): AccessQuery | undefined {
  if (name === undefined && permission === undefined) return undefined;
  return {
    ...(permission === undefined ? {} : { permission }),
    ...(name === undefined ? {} : { resource: `${kind}/${name}` }),
  };
}

interface QuestionProps {
  readonly search: AccessSearch;
  readonly onChange: (change: Partial<AccessSearch>) => void;
}

function Question({ search, onChange }: QuestionProps) {
  const { known } = useCatalog();
  const [name, setName] = useTyped(search.name ?? '', (typed) => onChange({ name: orNone(typed) }));
  const [permission, setPermission] = useTyped(search.permission ?? '', (typed) =>
    onChange({ permission: orNone(typed) }),
  );
  const wanted = permission.trim();
  const found = known.includes(wanted) ? known : known.filter((one) => one.includes(wanted));
  return (
    <div className={styles.question}>
      <Select
        label={text.kind}
        value={search.kind ?? 'models'}
        onChange={(kind) => onChange({ kind: kind === 'models' ? undefined : kind })}
        options={RESOURCE_KINDS.map((value) => ({ value, label: text.kinds[value] }))}
      />
      <TextField label={text.name} value={name} onChange={setName} hint={text.nameHint} isMono autoComplete="off" />
      <ComboBox
        label={text.permission}
        items={found.map((one) => ({ id: one, name: one, small: words.meaning(one) }))}
        typed={permission}
        onType={setPermission}
        chosen={known.find((one) => one === wanted)}
        onChoose={(item) => (item === undefined ? undefined : setPermission(item.id))}
        says={text.noPermission}
        hint={text.permissionHint}
        placeholder={text.findPermission}
        isMono
        isFree
        isOptional
      />
    </div>
  );
}

/** The typed text for the address, where no secret may stand: a pasted key or token names no resource. */
function orNone(typed: string): string | undefined {
  const { kind } = wantedOf(typed);
  return kind === 'nothing' || kind === 'prefix' ? undefined : typed;
}

function Results({ query }: { readonly query: AccessQuery }) {
  const navigate = useNavigate();
  const { platform_admin: isPlatformAdmin } = useMe();
  const { list, administrators } = useAccess(query);
  const open = (row: AccessRow): void => {
    switch (row.type) {
      case 'role':
        void navigate({ to: '/roles/$name', params: { name: row.name } });
        break;
      case 'user':
        void navigate({ to: '/users/$id', params: { id: row.id } });
        break;
      case 'api_key':
        void navigate({ to: '/keys', search: { open: row.id } });
        break;
      default:
        row satisfies never;
    }
  };
  return (
    <>
      <ListTable
        label={text.results}
        list={list}
        idOf={(row) => `${row.type} ${row.type === 'role' ? row.name : row.id}`}
        onOpen={open}
        empty={
          <Empty title={text.none} action={<Link to="/roles">{text.toRoles}</Link>}>
            {text.noneSays}
          </Empty>
        }
        columns={COLUMNS}
      />
      {isPlatformAdmin || administrators === undefined || administrators === 'deny' ? null : (
        <div className={styles.note}>
          <Note>{text.administrators}</Note>
        </div>
      )}
    </>
  );
}

interface Found {
  readonly list: List<AccessRow>;
  readonly administrators: WhoCan['platform_administrators'] | undefined;
}

/** A page may be empty although there are more, so the next one is read at once. */
function useAccess(query: AccessQuery): Found {
  const { id: tenant, client } = useTenant();
  const pages = useInfiniteQuery({
    queryKey: [tenant, 'access', query],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: cursor, signal }) =>
      client.request('GET', '/v1/iam/explain/who-can', { query: { ...query, limit: PAGE, cursor }, signal }),
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
  const { data, hasNextPage, isFetchingNextPage, isError, fetchNextPage } = pages;
  const rows = (data?.pages ?? []).flatMap(({ roles = [], users, keys }): readonly AccessRow[] => [
    ...roles,
    ...users,
    ...keys,
  ]);
  const isSearching = data !== undefined && rows.length === 0 && hasNextPage;
  useEffect(() => {
    if (isSearching && !isFetchingNextPage && !isError) void fetchNextPage();
  }, [isSearching, isFetchingNextPage, isError, fetchNextPage]);
  const administrators = data?.pages[0]?.platform_administrators;
  if (isError && rows.length === 0) {
    return { list: { kind: 'failed', error: pages.error, retry: () => void pages.refetch() }, administrators };
  }
  if (data === undefined || isSearching) return { list: { kind: 'loading' }, administrators };
  return {
    list: {
      kind: 'loaded',
      rows,
      more: hasNextPage ? () => void fetchNextPage() : undefined,
      isLoadingMore: isFetchingNextPage,
    },
    administrators,
  };
}

function Who({ row }: { readonly row: AccessRow }) {
  switch (row.type) {
    case 'role':
      return <TwoLines name={row.name} />;
    case 'user':
      return <TwoLines name={row.name} second={row.email} />;
    case 'api_key':
      return (
        <TwoLines
          name={row.description === '' ? shortened(row.id) : row.description}
          second={
            row.expires_at === null ? undefined : (
              <>
                {text.expires} <Moment time={row.expires_at} />
              </>
            )
          }
        />
      );
    default:
      return row satisfies never;
  }
}

function Verdict({ row: { verdict, conditions } }: { readonly row: AccessRow }) {
  return (
    <div className={styles.verdict}>
      {conditions.length === 0 ? (
        <State>{text.always}</State>
      ) : (
        <State tone="care">{text[verdict === 'allow' ? 'partly' : 'conditional'](words.list(conditions))}</State>
      )}
    </div>
  );
}
