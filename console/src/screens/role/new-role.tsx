/** Creates a role, empty or as another one is. */

import { useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { ProblemError } from '../../../../client/index.ts';
import { useCreation } from '../../api/edit.ts';
import { isRoleName } from '../../api/roles.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { roles as text } from '../../text/en/roles.ts';
import { TextField } from '../../ui/field.tsx';
import { Page } from '../../ui/page.tsx';
import { fieldError, Problem } from '../../ui/problem.tsx';
import { SaveBar } from '../../ui/save-bar.tsx';
import { type RoleFields, RoleForm } from './fields.tsx';
import { useRole } from './queries.ts';
import styles from './role.module.css';
import { fieldsOf } from './role.tsx';

const EMPTY: RoleFields = { description: '', permissions: [], resource_constraints: {} };

export function NewRole() {
  const { from } = useSearch({ from: '/inside/new-role' });
  return (
    <Page title={text.create} crumb={<Link to="/roles">{text.crumb}</Link>}>
      {from === undefined ? <Form key="empty" start={EMPTY} /> : <Copy key={from} from={from} />}
    </Page>
  );
}

function Copy({ from }: { readonly from: string }) {
  const loaded = useRole(from);
  if (loaded.data !== undefined) return <Form start={fieldsOf(loaded.data.data)} />;
  return loaded.isError ? <Problem error={loaded.error} onRetry={() => void loaded.refetch()} /> : null;
}

function Form({ start }: { readonly start: RoleFields }) {
  const { id: tenant, client } = useTenant();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const denied = useDenied('admin:roles');
  const create = useCreation({
    form: 'new role',
    start: { ...start, name: '' },
    send: (role) => client.roles.create(role),
    onCreated: async (role) => {
      await queries.invalidateQueries({ queryKey: [tenant, 'roles'] });
      void navigate({ to: '/roles/$name', params: { name: role.name } });
    },
  });
  const { draft, set, error } = create;
  const { name } = draft;
  const isTaken = error instanceof ProblemError && error.code === 'already_exists';
  const malformed = name === '' || isRoleName(name) ? undefined : text.nameFault;
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (isRoleName(name)) create.save();
      }}
    >
      <TextField
        label={text.name}
        value={name}
        onChange={(value) => {
          set({ name: value });
          if (isTaken) create.reset();
        }}
        hint={text.nameHint}
        error={malformed ?? (isTaken ? text.nameTaken : fieldError(error, '/name'))}
        maxLength={63}
        autoComplete="off"
        isMono
        isRequired
        autoFocus
      />
      <RoleForm draft={draft} set={set} error={error} />
      <SaveBar
        work={create}
        action={text.creating}
        disabledReason={denied}
        onClose={() => void navigate({ to: '/roles' })}
      />
    </form>
  );
}
