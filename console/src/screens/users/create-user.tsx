/** Creates a user: with a password, or with a one-time link that sets it. */

import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { CreatedUser } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { useCreation } from '../../api/edit.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { users as text } from '../../text/en/users.ts';
import { DrawerForm } from '../../ui/drawer-form.tsx';
import { Segments, TextField } from '../../ui/field.tsx';
import { Small } from '../../ui/mark.tsx';
import { fieldError, isTaken } from '../../ui/problem.tsx';
import { RolePicker } from './role-picker.tsx';
import { SetupLink } from './setup-link.tsx';
import styles from './users.module.css';

interface UserFields {
  readonly email: string;
  readonly name: string;
  readonly department: string;
  readonly roles: readonly string[];
  readonly how: 'link' | 'password';
}

const EMPTY: UserFields = { email: '', name: '', department: '', roles: [], how: 'link' };

export function CreateUser({ onClose }: { readonly onClose: () => void }) {
  const { id: tenant, client } = useTenant();
  const navigate = useNavigate();
  const denied = useDenied('admin:users');
  const [password, setPassword] = useState('');
  const [made, setMade] = useState<CreatedUser>();
  const create = useCreation({
    form: 'new user',
    start: EMPTY,
    send: ({ email, name, department, roles, how }) =>
      client.users.create({
        email: email.trim(),
        name: name.trim(),
        ...(department.trim() === '' ? {} : { department: department.trim() }),
        roles,
        ...(how === 'password' ? { password } : {}),
      }),
    onCreated: async (user) => {
      setPassword('');
      // The link first: a list that answers late must not keep it from the screen.
      if (user.password_setup_token !== undefined) setMade(user);
      await changed(tenant, 'users');
      if (user.password_setup_token === undefined) void navigate({ to: '/users/$id', params: { id: user.id } });
    },
  });
  if (made !== undefined) return <SetupLink name={made.name} token={made.password_setup_token} onClose={onClose} />;
  const { draft, set, error } = create;
  const errorOf = (pointer: string): string | undefined => fieldError(error, pointer);
  return (
    <DrawerForm title={text.create} work={create} action={text.creating} fault={denied} onClose={onClose}>
      <TextField
        label={text.email}
        type="email"
        value={draft.email}
        onChange={(email) => set({ email })}
        error={isTaken(error) ? text.emailTaken : errorOf('/email')}
        autoComplete="off"
        maxLength={254}
        isRequired
        autoFocus
      />
      <div className={styles.pair}>
        <TextField
          label={text.name}
          value={draft.name}
          onChange={(name) => set({ name })}
          error={errorOf('/name')}
          autoComplete="off"
          maxLength={200}
          isRequired
        />
        <TextField
          label={text.department}
          value={draft.department}
          onChange={(department) => set({ department })}
          error={errorOf('/department')}
          maxLength={200}
          isOptional
        />
      </div>
      <RolePicker
        label={text.roles}
        selected={draft.roles}
        onChange={(roles) => set({ roles })}
        error={errorOf('/roles')}
      />
      <div className={styles.how}>
        <div className={styles.label}>{text.how}</div>
        <Segments
          label={text.how}
          value={draft.how}
          onChange={(how) => set({ how })}
          options={[
            { value: 'link', label: text.hows.link },
            { value: 'password', label: text.hows.password },
          ]}
        />
        {draft.how === 'link' ? <Small>{text.linkSays}</Small> : null}
      </div>
      {draft.how === 'password' ? (
        <TextField
          label={text.password}
          type="password"
          value={password}
          onChange={setPassword}
          hint={text.passwordHint}
          error={errorOf('/password')}
          autoComplete="new-password"
          isRequired
        />
      ) : null}
    </DrawerForm>
  );
}
