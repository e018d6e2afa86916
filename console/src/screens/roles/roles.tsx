/** The roles of the tenant and the built-in ones. */

import { useNavigate, useSearch } from '@tanstack/react-router';
import type { Role } from '../../../../client/index.ts';
import { constraintPhrases } from '../../api/permissions.ts';
import { useRoles } from '../../api/roles.ts';
import { useDenied } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { permissions as words } from '../../text/en/permissions.ts';
import { roles as text } from '../../text/en/roles.ts';
import { Checkbox } from '../../ui/field.tsx';
import { type ListColumn, TwoLines } from '../../ui/list.tsx';
import { ListPage, OneOrAll } from '../../ui/list-page.tsx';
import { State, Tags } from '../../ui/mark.tsx';
import { NoticeMark } from '../../ui/notices.tsx';
import { Ago } from '../../ui/time.tsx';
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
  const search = useSearch({ from: '/inside/roles' });
  const { q = '', kind, notices } = search;
  const navigate = useNavigate();
  return (
    <ListPage
      texts={text}
      search={search}
      create="/new-role"
      denied={useDenied('admin:roles')}
      filters={(set) => (
        <>
          <OneOrAll
            label={text.kind}
            values={ROLES_KINDS}
            texts={text.kinds}
            value={kind}
            onChange={(value) => set({ kind: value })}
          />
          <Checkbox isSelected={notices === true} onChange={(isOn) => set({ notices: isOn ? true : undefined })}>
            {common.onlyCare}
          </Checkbox>
        </>
      )}
      list={useRoles(q, kind, notices)}
      idOf={({ name }) => name}
      onOpen={({ name }) => void navigate({ to: '/roles/$name', params: { name } })}
      columns={COLUMNS}
    />
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
