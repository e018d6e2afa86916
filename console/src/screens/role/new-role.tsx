/** Creates a role, empty or as another one is. */

import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { changed } from '../../api/changed.ts';
import { useCreation } from '../../api/edit.ts';
import { isName } from '../../api/names.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { roles as text } from '../../text/en/roles.ts';
import { Form } from '../../ui/form.tsx';
import { NameField } from '../../ui/name-field.tsx';
import { Page } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
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
      {from === undefined ? <NewForm key="empty" start={EMPTY} /> : <Copy key={from} from={from} />}
    </Page>
  );
}

function Copy({ from }: { readonly from: string }) {
  const loaded = useRole(from);
  if (loaded.data !== undefined) return <NewForm start={fieldsOf(loaded.data.data)} />;
  return loaded.isError ? <Problem error={loaded.error} onRetry={() => void loaded.refetch()} /> : null;
}

function NewForm({ start }: { readonly start: RoleFields }) {
  const { id: tenant, client } = useTenant();
  const navigate = useNavigate();
  const denied = useDenied('admin:roles');
  const create = useCreation({
    form: 'new role',
    start: { ...start, name: '' },
    send: (role) => client.roles.create(role),
    onCreated: async (role) => {
      await changed(tenant, 'roles');
      void navigate({ to: '/roles/$name', params: { name: role.name } });
    },
  });
  const { draft, set, error } = create;
  const { name } = draft;
  return (
    <Form className={styles.form} fault={isName(name) ? undefined : text.nameFault} onSend={() => create.save()}>
      <NameField value={name} onChange={(value) => set({ name: value })} error={error} texts={text} autoFocus />
      <RoleForm draft={draft} set={set} error={error} />
      <SaveBar
        work={create}
        action={text.creating}
        disabledReason={denied}
        onClose={() => void navigate({ to: '/roles' })}
      />
    </Form>
  );
}
