/** Creates a user: with a password, or with a one-time link that sets it. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { type CreatedUser, ProblemError } from '../../../../client/index.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { users as text } from '../../text/en/users.ts';
import { Button } from '../../ui/button.tsx';
import { Segments, TextField } from '../../ui/field.tsx';
import { Small } from '../../ui/mark.tsx';
import { Drawer } from '../../ui/overlay.tsx';
import { fieldError } from '../../ui/problem.tsx';
import { Refused } from './refused.tsx';
import { RolePicker } from './role-picker.tsx';
import { SetupLink } from './setup-link.tsx';
import styles from './users.module.css';

const FORM = 'create-user';
const FIELDS = ['/email', '/name', '/department', '/roles', '/password'] as const;

export function CreateUser({ onClose }: { readonly onClose: () => void }) {
  const { id: tenant, client } = useTenant();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const denied = useDenied('admin:users');
  const [email, setEmail] = useState('');
  const [name, setName] = useState('');
  const [department, setDepartment] = useState('');
  const [roles, setRoles] = useState<readonly string[]>([]);
  const [how, setHow] = useState<'link' | 'password'>('link');
  const [password, setPassword] = useState('');
  const [made, setMade] = useState<CreatedUser>();
  const create = useMutation({
    mutationFn: () =>
      client.users.create({
        email: email.trim(),
        name: name.trim(),
        ...(department.trim() === '' ? {} : { department: department.trim() }),
        roles,
        ...(how === 'password' ? { password } : {}),
      }),
    onSuccess: async (user) => {
      setPassword('');
      await queries.invalidateQueries({ queryKey: [tenant, 'users'] });
      if (how === 'link') setMade(user);
      else void navigate({ to: '/users/$id', params: { id: user.id } });
    },
  });
  if (made !== undefined) return <SetupLink name={made.name} token={made.password_setup_token} onClose={onClose} />;
  const isTaken = create.error instanceof ProblemError && create.error.code === 'already_exists';
  const errorOf = (pointer: string): string | undefined => fieldError(create.error, pointer);
  const isShown = isTaken || FIELDS.some((pointer) => errorOf(pointer) !== undefined);
  return (
    <Drawer
      title={text.create}
      onClose={onClose}
      foot={
        <>
          <Button tone="quiet" onPress={onClose}>
            {common.cancel}
          </Button>
          <Button tone="primary" type="submit" form={FORM} disabledReason={denied} isPending={create.isPending}>
            {text.creating}
          </Button>
        </>
      }
    >
      <form
        id={FORM}
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate();
        }}
      >
        {create.isError && !isShown ? <Refused error={create.error} /> : null}
        <TextField
          label={text.email}
          type="email"
          value={email}
          onChange={setEmail}
          error={isTaken ? text.emailTaken : errorOf('/email')}
          autoComplete="off"
          maxLength={254}
          isRequired
          autoFocus
        />
        <div className={styles.pair}>
          <TextField
            label={text.name}
            value={name}
            onChange={setName}
            error={errorOf('/name')}
            autoComplete="off"
            maxLength={200}
            isRequired
          />
          <TextField
            label={text.department}
            value={department}
            onChange={setDepartment}
            error={errorOf('/department')}
            maxLength={200}
            isOptional
          />
        </div>
        <RolePicker label={text.roles} selected={roles} onChange={setRoles} error={errorOf('/roles')} />
        <div className={styles.how}>
          <Segments
            label={text.how}
            value={how}
            onChange={setHow}
            options={[
              { value: 'link', label: text.hows.link },
              { value: 'password', label: text.hows.password },
            ]}
          />
          {how === 'link' ? <Small>{text.linkSays}</Small> : null}
        </div>
        {how === 'password' ? (
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
      </form>
    </Drawer>
  );
}
