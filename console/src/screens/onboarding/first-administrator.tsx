/** Creates the first administrator of the tenant, and shows its link once. */

import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { changed } from '../../api/changed.ts';
import { useTenant } from '../../api/session.ts';
import { onboarding as text } from '../../text/en/onboarding.ts';
import { users as userText } from '../../text/en/users.ts';
import { Button } from '../../ui/button.tsx';
import { Code } from '../../ui/code.tsx';
import { TextField } from '../../ui/field.tsx';
import { Form } from '../../ui/form.tsx';
import { Note, Skeleton } from '../../ui/mark.tsx';
import { fieldError, isTaken, Problem } from '../../ui/problem.tsx';
import { useShownOnce } from '../../ui/shown-once.ts';
import styles from './onboarding.module.css';
import { Step } from './step.tsx';

const ROLE = 'tenant-admin';

export function FirstAdministrator() {
  const { id: tenant, client } = useTenant();
  const found = useQuery({
    queryKey: [tenant, 'users', 'first administrator'],
    queryFn: async ({ signal }) => {
      const query = { role: ROLE, status: 'active', limit: 1 } as const;
      return (await client.request('GET', '/v1/iam/users', { query, signal })).data[0] ?? null;
    },
  });
  const [token, setToken] = useState<string>();
  const user = found.data ?? undefined;
  const release = useShownOnce(token !== undefined);
  return (
    <Step title={text.administrator} isDone={user !== undefined}>
      {found.isError ? <Problem error={found.error} onRetry={() => void found.refetch()} /> : null}
      {found.isPending ? <Skeleton width={3} /> : null}
      {user === undefined ? null : (
        <p>
          <Link to="/users/$id" params={{ id: user.id }}>
            {user.name}
          </Link>{' '}
          {user.email}
        </p>
      )}
      {token === undefined ? null : (
        <>
          <Note tone="care">{userText.linkOnce}</Note>
          {/* The token is in the fragment, which browsers send to no server. */}
          <Code title={text.link} code={`${location.origin}/console/set-password#token=${token}`} onCopied={release} />
        </>
      )}
      {found.isSuccess && user === undefined ? <NewAdministrator onCreated={setToken} /> : null}
    </Step>
  );
}

function NewAdministrator({ onCreated }: { readonly onCreated: (token: string | undefined) => void }) {
  const { id: tenant, client } = useTenant();
  const [email, setEmail] = useState('');
  const [name, setName] = useState('');
  const create = useMutation({
    mutationFn: () => client.users.create({ email: email.trim(), name: name.trim(), roles: [ROLE] }),
    onSuccess: async (user) => {
      onCreated(user.password_setup_token);
      await changed(tenant, 'users');
    },
  });
  const emailError = isTaken(create.error) ? userText.emailTaken : fieldError(create.error, '/email');
  const nameError = fieldError(create.error, '/name');
  return (
    <Form className={styles.form} onSend={() => create.mutate()}>
      {create.isError && emailError === undefined && nameError === undefined ? <Problem error={create.error} /> : null}
      <TextField
        label={userText.email}
        type="email"
        value={email}
        onChange={setEmail}
        error={emailError}
        autoComplete="off"
        maxLength={254}
        isRequired
      />
      <TextField label={userText.name} value={name} onChange={setName} error={nameError} maxLength={200} isRequired />
      <Button tone="primary" type="submit" isPending={create.isPending}>
        {text.createAdministrator}
      </Button>
    </Form>
  );
}
