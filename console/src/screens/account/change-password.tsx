import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { client } from '../../api/client.ts';
import { account as text } from '../../text/en/account.ts';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { Note } from '../../ui/mark.tsx';
import { fieldError, Problem } from '../../ui/problem.tsx';
import styles from './account.module.css';

export function ChangePassword() {
  const queries = useQueryClient();
  const [old, setOld] = useState('');
  const [next, setNext] = useState('');
  const [again, setAgain] = useState('');
  const change = useMutation({
    mutationFn: () => client.request('POST', '/v1/auth/password', { body: { old_password: old, new_password: next } }),
    onSuccess: async () => {
      setOld('');
      setNext('');
      setAgain('');
      await queries.invalidateQueries({ queryKey: ['sessions'] });
    },
  });
  const differ = again !== '' && again !== next;
  const newError = fieldError(change.error, '/new_password');
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (again === next) change.mutate();
      }}
    >
      {change.isSuccess ? (
        <Note tone="good" isLive>
          {text.changed}
        </Note>
      ) : null}
      {change.isError && newError === undefined ? <Problem error={change.error} /> : null}
      <TextField
        label={text.oldPassword}
        value={old}
        onChange={setOld}
        type="password"
        autoComplete="current-password"
        isRequired
      />
      <TextField
        label={text.newPassword}
        value={next}
        onChange={setNext}
        type="password"
        autoComplete="new-password"
        hint={text.newPasswordHint}
        error={newError}
        isRequired
      />
      <TextField
        label={text.repeat}
        value={again}
        onChange={setAgain}
        type="password"
        autoComplete="new-password"
        error={differ ? text.differ : undefined}
        isRequired
      />
      <Button type="submit" isPending={change.isPending}>
        {text.change}
      </Button>
    </form>
  );
}
