/** The sign-in page: by an issuer, by password or through a directory. */

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { type Credentials, ProblemError } from '../../../../client/index.ts';
import { signIn, visitor } from '../../api/client.ts';
import { lastTenant } from '../../api/last-tenant.ts';
import { session as text } from '../../text/en/session.ts';
import { Button, LinkButton } from '../../ui/button.tsx';
import { Segments, TextField } from '../../ui/field.tsx';
import { Note } from '../../ui/mark.tsx';
import { sentenceOf } from '../../ui/problem.tsx';
import { Door } from './door.tsx';
import { HOME, insidePath } from './next.ts';
import styles from './sign-in.module.css';

type By = 'password' | 'directory';

export function SignIn() {
  const { next, over, sso_error: failed, tenant, by: wanted } = useSearch({ from: '/sign-in' });
  const navigate = useNavigate();
  const queries = useQueryClient();
  const [by, setBy] = useState<By>('password');
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [isChecking, setChecking] = useState(false);
  const [error, setError] = useState<unknown>();

  const issuers = useQuery({
    queryKey: ['sso', tenant],
    queryFn: ({ signal }) => visitor.request('GET', '/v1/auth/sso', { query: { tenant }, signal }),
  });
  const ways = issuers.data?.data ?? [];
  // Without the list, a password works all the same.
  const hasForm = !issuers.isPending && !(issuers.data?.only === true && ways.length > 0 && wanted === undefined);

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
      {error === undefined && failed === undefined && over !== undefined ? (
        <Note tone="care">{text.over[over]}</Note>
      ) : null}
      {error === undefined && failed !== undefined ? (
        <Note tone="deny" isLive>
          {text.sso[failed]}
        </Note>
      ) : null}
      {error === undefined ? null : (
        <Note tone="deny" isLive>
          {sayWhy(error)}
        </Note>
      )}
      {ways.length === 0 ? null : (
        <nav className={styles.ways} aria-label={text.issuers}>
          {ways.map(({ id, label }) => (
            <LinkButton key={id} tone={hasForm ? 'plain' : 'primary'} href={startOf(id, next)}>
              {text.withIssuer(label)}
            </LinkButton>
          ))}
        </nav>
      )}
      {ways.length > 0 && hasForm ? <p className={styles.or}>{text.or}</p> : null}
      {hasForm ? (
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
      ) : null}
    </Door>
  );
}

/** An address of the server, which leads to the page of the provider. */
function startOf(id: string, next: string | undefined): string {
  const query = next === undefined ? '' : `?${new URLSearchParams({ next })}`;
  return `/v1/auth/sso/${encodeURIComponent(id)}/start${query}`;
}

function sayWhy(error: unknown): string {
  if (!(error instanceof ProblemError)) return sentenceOf(error);
  if (error.code === 'invalid_credential') return text.refused;
  if (error.code === 'too_many_attempts') return text.locked(error.retryAfter ?? 60);
  if (error.code === 'tenant_suspended') return text.suspended;
  return sentenceOf(error);
}
