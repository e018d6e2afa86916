/**
 * Sets a password with a one-time token. The token stands in the address's fragment, which browsers send to no server,
 * and leaves the address as soon as the page has read it.
 */

import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { ProblemError } from '../../../../client/index.ts';
import { client } from '../../api/client.ts';
import { account as text } from '../../text/en/account.ts';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { Note } from '../../ui/mark.tsx';
import { fieldError, Problem } from '../../ui/problem.tsx';
import { Door } from '../sign-in/door.tsx';
import styles from '../sign-in/sign-in.module.css';

export function SetPassword() {
  const navigate = useNavigate();
  const [token] = useState(() => new URLSearchParams(location.hash.slice(1)).get('token') ?? '');
  const [password, setPassword] = useState('');
  const [again, setAgain] = useState('');
  useEffect(() => {
    history.replaceState(history.state, '', location.pathname);
  }, []);
  const set = useMutation({
    mutationFn: () => client.request('POST', '/v1/auth/password/reset', { body: { token, new_password: password } }),
  });
  if (set.isSuccess) {
    return (
      <Door title={text.setUp}>
        <Note tone="good" isLive>
          {text.isSet}
        </Note>
        <Button tone="primary" onPress={() => void navigate({ to: '/sign-in', search: {} })}>
          {text.toDoor}
        </Button>
      </Door>
    );
  }
  if (token === '') {
    return (
      <Door title={text.setUp}>
        <Note tone="care">{text.noToken}</Note>
      </Door>
    );
  }
  const newError = fieldError(set.error, '/new_password');
  return (
    <Door title={text.setUp}>
      {set.isError && newError === undefined ? <Refused error={set.error} /> : null}
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (again === password) set.mutate();
        }}
      >
        <TextField
          label={text.newPassword}
          value={password}
          onChange={setPassword}
          type="password"
          autoComplete="new-password"
          hint={text.newPasswordHint}
          error={newError}
          isRequired
          autoFocus
        />
        <TextField
          label={text.repeat}
          value={again}
          onChange={setAgain}
          type="password"
          autoComplete="new-password"
          error={again !== '' && again !== password ? text.differ : undefined}
          isRequired
        />
        <Button type="submit" tone="primary" isPending={set.isPending}>
          {text.set}
        </Button>
      </form>
    </Door>
  );
}

function Refused({ error }: { readonly error: unknown }) {
  if (!(error instanceof ProblemError) || error.code !== 'invalid_credential') return <Problem error={error} />;
  return (
    <Note tone="deny" isLive>
      {text.usedUp}
    </Note>
  );
}
