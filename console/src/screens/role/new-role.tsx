/** Creates a role, empty or as another one is. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { ProblemError } from '../../../../client/index.ts';
import { isRoleName } from '../../api/roles.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { roles as text } from '../../text/en/roles.ts';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { Page } from '../../ui/page.tsx';
import { fieldError, Problem } from '../../ui/problem.tsx';
import { Refused } from '../users/refused.tsx';
import { type RoleFields, RoleForm, SHOWN_AT_FIELDS } from './fields.tsx';
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
  const [name, setName] = useState('');
  const [draft, setDraft] = useState(start);
  const create = useMutation({
    mutationFn: () => client.roles.create({ name, ...draft }),
    onSuccess: async (role) => {
      await queries.invalidateQueries({ queryKey: [tenant, 'roles'] });
      void navigate({ to: '/roles/$name', params: { name: role.name } });
    },
  });
  const isTaken = create.error instanceof ProblemError && create.error.code === 'already_exists';
  const malformed = name === '' || isRoleName(name) ? undefined : text.nameFault;
  const atField = ['/name', ...SHOWN_AT_FIELDS].some((pointer) => fieldError(create.error, pointer) !== undefined);
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (isRoleName(name)) create.mutate();
      }}
    >
      <TextField
        label={text.name}
        value={name}
        onChange={(value) => {
          setName(value);
          if (isTaken) create.reset();
        }}
        hint={text.nameHint}
        error={malformed ?? (isTaken ? text.nameTaken : fieldError(create.error, '/name'))}
        maxLength={63}
        autoComplete="off"
        isMono
        isRequired
        autoFocus
      />
      <RoleForm draft={draft} set={(change) => setDraft((before) => ({ ...before, ...change }))} error={create.error} />
      {create.isError && !isTaken && !atField ? <Refused error={create.error} /> : null}
      <div className={styles.foot}>
        <Button tone="primary" type="submit" disabledReason={denied} isPending={create.isPending}>
          {text.creating}
        </Button>
        <Button tone="quiet" onPress={() => void navigate({ to: '/roles' })}>
          {common.cancel}
        </Button>
      </div>
    </form>
  );
}
