/** The roles of the tenant and the built-in ones. */

import { useNavigate, useSearch } from '@tanstack/react-router';
import type { Role } from '../../../../client/index.ts';
import { constraintPhrases } from '../../api/permissions.ts';
import { useRoles } from '../../api/roles.ts';
import { useDenied } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { permissions as words } from '../../text/en/permissions.ts';
import { roles as text } from '../../text/en/roles.ts';
import { Button } from '../../ui/button.tsx';
import { Checkbox, SearchField, Segments } from '../../ui/field.tsx';
import { type ListColumn, ListTable, TwoLines } from '../../ui/list.tsx';
import { ListEmpty } from '../../ui/list-empty.tsx';
import { State, Tags } from '../../ui/mark.tsx';
import { NoticeMark } from '../../ui/notices.tsx';
import { Page, Tools } from '../../ui/page.tsx';
import { Ago } from '../../ui/time.tsx';
import { useTyped } from '../../ui/use-typed.ts';
import styles from './roles.module.css';
import { ROLES_KINDS } from './search.ts';

const TAGS = 3;

const COLUMNS: readonly ListColumn<Role>[] = [
  { id: 'name', title: text.name, cell: (role) => <Name role={role} /> },
  { id: 'kind', title: text.kind, cell: (role) => <Kind role={role} /> },
  { id: 'permissions', title: text.permissions, cell: (role) => <Tags values={role.permissions} atMost={TAGS} /> },
  { id: 'narrowed', title: text.narrowed, rank: 'second', cell: (role) => narrowing(role) },
  { id: 'changed', title: text.changed, rank: 'second', cell: (role) => <Changed role={role} /> },
];

export function Roles() {
  const denied = useDenied('admin:roles');
  const search = useSearch({ from: '/inside/roles' });
  const navigate = useNavigate({ from: '/roles' });
  const [typed, setTyped] = useTyped(search.q ?? '', (q) => {
    void navigate({ search: (before) => ({ ...before, q: q === '' ? undefined : q }), replace: true });
  });
  const list = useRoles(search.q ?? '', search.kind, search.notices);
  const isFiltered = search.q !== undefined || search.kind !== undefined || search.notices === true;
  const showAll = (): void => {
    setTyped('');
    void navigate({ search: (before) => ({ ...before, q: undefined, kind: undefined, notices: undefined }) });
  };
  return (
    <Page
      title={text.title}
      actions={
        <Button tone="primary" disabledReason={denied} onPress={() => void navigate({ to: '/new-role', search: {} })}>
          {text.create}
        </Button>
      }
    >
      <Tools>
        <SearchField label={text.search} placeholder={text.searchFor} value={typed} onChange={setTyped} />
        <Segments
          label={text.kind}
          value={search.kind ?? 'all'}
          onChange={(kind) =>
            void navigate({ search: (before) => ({ ...before, kind: kind === 'all' ? undefined : kind }) })
          }
          options={(['all', ...ROLES_KINDS] as const).map((value) => ({ value, label: text.kinds[value] }))}
        />
        <Checkbox
          isSelected={search.notices === true}
          onChange={(isOn) => void navigate({ search: (before) => ({ ...before, notices: isOn ? true : undefined }) })}
        >
          {common.onlyCare}
        </Checkbox>
      </Tools>
      <ListTable
        label={text.title}
        list={list}
        idOf={(role) => role.name}
        onOpen={({ name }) => void navigate({ to: '/roles/$name', params: { name } })}
        empty={<ListEmpty texts={text} onShowAll={isFiltered ? showAll : undefined} />}
        columns={COLUMNS}
      />
    </Page>
  );
}

function Name({ role: { name, description, notices } }: { readonly role: Role }) {
  return (
    <TwoLines
      name={
        <>
          {name}
          <NoticeMark notices={notices} />
        </>
      }
      second={description}
    />
  );
}

function Kind({ role: { builtin } }: { readonly role: Role }) {
  return <State tone={builtin ? 'off' : 'good'}>{builtin ? text.kinds.builtin : text.kinds.own}</State>;
}

function Changed({ role: { updated_at: time } }: { readonly role: Role }) {
  if (time === null) return null;
  return (
    <span className={styles.when}>
      <Ago time={time} />
    </span>
  );
}

function narrowing({ resource_constraints: constraints }: Role): string {
  const phrases = constraintPhrases(constraints);
  return phrases.length === 0 ? text.nothingNarrows : words.list(phrases);
}
