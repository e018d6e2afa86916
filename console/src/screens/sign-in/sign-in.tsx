/** The sign-in page: by password or through a directory. */

import { useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { type Credentials, ProblemError } from '../../../../client/index.ts';
import { signIn } from '../../api/client.ts';
import { lastTenant } from '../../api/last-tenant.ts';
import { session as text } from '../../text/en/session.ts';
import { Button } from '../../ui/button.tsx';
import { Segments, TextField } from '../../ui/field.tsx';
import { Note } from '../../ui/mark.tsx';
import { sentenceOf } from '../../ui/problem.tsx';
import { Door } from './door.tsx';
import { HOME, insidePath } from './next.ts';
import styles from './sign-in.module.css';

type By = 'password' | 'directory';

export function SignIn() {
  const { next, over } = useSearch({ from: '/sign-in' });
  const navigate = useNavigate();
  const queries = useQueryClient();
  const [by, setBy] = useState<By>('password');
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [isChecking, setChecking] = useState(false);
  const [error, setError] = useState<unknown>();

  const enter = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setChecking(true);
    setError(undefined);
    const credentials: Credentials =
      by === 'password' ? { email: name.trim(), password } : { auth_type: 'ldap', username: name.trim(), password };
    try {
      await signIn(credentials);
      queries.clear();
      const href = insidePath(next);
      if (href === HOME) await navigate({ to: '/', search: { tenant: await lastTenant() } });
      else await navigate({ href });
    } catch (reason) {
      setPassword('');
      setError(reason);
    } finally {
      setChecking(false);
    }
  };

  return (
    <Door title={text.title}>
      {error === undefined && over !== undefined ? (
        <Note tone="care">{over === 'replaced' ? text.replaced : text.ended}</Note>
      ) : null}
      {error === undefined ? null : (
        <Note tone="deny" isLive>
          {sayWhy(error)}
        </Note>
      )}
      <form className={styles.form} onSubmit={(event) => void enter(event)}>
        <Segments
          label={text.kind}
          value={by}
          onChange={setBy}
          options={[
            { value: 'password', label: text.byPassword },
            { value: 'directory', label: text.byDirectory },
          ]}
        />
        <TextField
          label={by === 'password' ? text.email : text.username}
          value={name}
          onChange={setName}
          name="username"
          autoComplete="username"
          isRequired
          autoFocus
        />
        <TextField
          label={text.password}
          value={password}
          onChange={setPassword}
          name="password"
          type="password"
          autoComplete="current-password"
          isRequired
        />
        <Button type="submit" tone="primary" isPending={isChecking}>
          {isChecking ? text.entering : text.enter}
        </Button>
      </form>
    </Door>
  );
}

function sayWhy(error: unknown): string {
  if (!(error instanceof ProblemError)) return sentenceOf(error);
  if (error.code === 'invalid_credential') return text.refused;
  if (error.code === 'too_many_attempts') return text.locked(error.retryAfter ?? 60);
  if (error.code === 'tenant_suspended') return text.suspended;
  return sentenceOf(error);
}
