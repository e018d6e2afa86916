/** The tenant's users. */

import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { User } from '../../../../client/index.ts';
import { useList } from '../../api/list.ts';
import { useDenied, useMe, useTenant } from '../../api/session.ts';
import { users as text } from '../../text/en/users.ts';
import { Button } from '../../ui/button.tsx';
import { Chosen } from '../../ui/chosen.tsx';
import { SearchField } from '../../ui/field.tsx';
import { type ListColumn, ListTable, TwoLines } from '../../ui/list.tsx';
import { ListEmpty } from '../../ui/list-empty.tsx';
import { OneOrAll } from '../../ui/list-page.tsx';
import { Page, Tools } from '../../ui/page.tsx';
import { Ago } from '../../ui/time.tsx';
import { useTyped } from '../../ui/use-typed.ts';
import { ChangeSeveral, USERS_ACTIONS, type UsersAction } from './change-several.tsx';
import { CreateUser } from './create-user.tsx';
import { DirectoryFilter } from './directory-filter.tsx';
import { RoleFilter } from './role-filter.tsx';
import { USERS_STATUSES, type UsersSearch, usersSearch } from './search.ts';
import { RoleTags, UserState } from './state.tsx';

const PAGE = 50;
const NEWEST_FIRST = '-created_at';
const NONE: ReadonlySet<string> = new Set();

const COLUMNS: readonly ListColumn<User>[] = [
  {
    id: 'name',
    title: text.name,
    sort: 'name',
    cell: (user) => <TwoLines name={user.name} second={user.email ?? text.noEmail} />,
  },
  { id: 'state', title: text.state, cell: (user) => <UserState user={user} /> },
  { id: 'roles', title: text.roles, cell: (user) => <RoleTags user={user} /> },
  { id: 'department', title: text.department, rank: 'second', cell: (user) => user.department },
  { id: 'source', title: text.source, rank: 'second', cell: (user) => text.sourceName(user.source) },
  {
    id: 'login',
    title: text.lastLogin,
    sort: '-last_login_at',
    rank: 'second',
    cell: (user) => <Ago time={user.last_login_at} />,
  },
  {
    id: 'created',
    title: text.created,
    sort: NEWEST_FIRST,
    rank: 'second',
    cell: (user) => <Ago time={user.created_at} />,
  },
];

export function Users() {
  const tenant = useTenant();
  const me = useMe();
  const denied = useDenied('admin:users');
  const search = useSearch({ from: '/inside/users' });
  const navigate = useNavigate({ from: '/users' });
  const [typed, setTyped] = useTyped(search.q ?? '', (q) => {
    void navigate({ search: (before) => ({ ...before, q: q === '' ? undefined : q }), replace: true });
  });
  const [selected, setSelected] = useState(NONE);
  const [isEveryMatch, setEveryMatch] = useState(false);
  const [action, setAction] = useState<UsersAction>();
  const select = (ids: ReadonlySet<string>): void => {
    setSelected(ids);
    setEveryMatch(false);
  };
  const show = (change: Partial<UsersSearch>): void => {
    select(NONE);
    void navigate({ search: (before) => ({ ...before, open: undefined, ...change }) });
  };
  const query = { q: search.q, role: search.role, ...narrowed(search) };
  const sort = search.sort ?? NEWEST_FIRST;
  const list = useList<'/v1/iam/users'>([tenant.id, 'users', query, sort], (cursor, signal) =>
    tenant.client.request('GET', '/v1/iam/users', {
      query: { ...query, sort, limit: PAGE, cursor, ...(cursor === undefined ? { count: true } : {}) },
      signal,
    }),
  );
  const isFiltered = Object.values(query).some((value) => value !== undefined);
  const showAll = (): void => {
    setTyped('');
    show({ q: undefined, status: undefined, role: undefined, directory: undefined });
  };
  const create = (
    <Button tone="primary" disabledReason={denied} onPress={() => show({ open: 'new' })}>
      {text.create}
    </Button>
  );
  return (
    <Page title={text.title} actions={create}>
      <Tools>
        <SearchField label={text.search} placeholder={text.searchFor} value={typed} onChange={setTyped} />
        <OneOrAll
          label={text.status}
          values={USERS_STATUSES}
          texts={text.statuses}
          value={search.status}
          onChange={(status) => show({ status })}
        />
        <RoleFilter role={search.role} onChange={(role) => show({ role })} />
        <DirectoryFilter state={search.directory} onChange={(directory) => show({ directory })} />
      </Tools>
      <Chosen
        list={list}
        count={selected.size}
        isEveryMatch={isEveryMatch}
        texts={text}
        onEveryMatch={() => setEveryMatch(true)}
        onClear={() => select(NONE)}
      >
        {() =>
          USERS_ACTIONS.map((one) => (
            <Button
              key={one}
              tone={one === 'deactivate' ? 'danger' : 'quiet'}
              small
              disabledReason={denied}
              onPress={() => setAction(one)}
            >
              {text.several[one]}
            </Button>
          ))
        }
      </Chosen>
      <ListTable
        label={text.title}
        list={list}
        idOf={(user) => user.id}
        onOpen={({ id }) => void navigate({ to: '/users/$id', params: { id } })}
        {...(denied === undefined ? { selected, onSelect: select } : {})}
        sort={sort}
        onSort={(next) => show(usersSearch({ sort: next }))}
        empty={<ListEmpty texts={text} onShowAll={isFiltered ? showAll : undefined} />}
        columns={COLUMNS}
      />
      {action === undefined ? null : (
        <ChangeSeveral
          action={action}
          users={isEveryMatch ? { filter: query } : { ids: [...selected].filter((id) => id !== me.id) }}
          onClose={() => setAction(undefined)}
          onDone={() => {
            setAction(undefined);
            select(NONE);
          }}
        />
      )}
      {search.open === 'new' ? <CreateUser onClose={() => show({})} /> : null}
    </Page>
  );
}

function narrowed({ status, directory }: UsersSearch) {
  return { ...(status === 'locked' ? { locked: true as const } : { status }), ...ofDirectory(directory) };
}

function ofDirectory(directory: UsersSearch['directory']) {
  if (directory === undefined) return {};
  return directory === 'address_in_use' ? { email_conflict: true as const } : { directory_status: directory };
}
