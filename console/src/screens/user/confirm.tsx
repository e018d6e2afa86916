/** The questions before a user's access ends: what will happen, and a refusal in its place. */

import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import type { User } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { useTenant } from '../../api/session.ts';
import { users as text } from '../../text/en/users.ts';
import { Confirm } from '../../ui/confirm.tsx';
import { TextField } from '../../ui/field.tsx';
import { Small } from '../../ui/mark.tsx';
import { fieldError } from '../../ui/problem.tsx';
import { Refused } from '../../ui/refused.tsx';

interface QuestionProps {
  readonly user: User;
  readonly onClose: () => void;
  readonly onDone?: () => void;
}

interface UserConfirmProps extends QuestionProps {
  readonly title: string;
  readonly children: ReactNode;
  readonly action: string;
  readonly perform: () => Promise<unknown>;
  readonly word?: string;
}

function UserConfirm({ user, onDone, ...props }: UserConfirmProps) {
  const tenant = useTenant().id;
  return (
    <Confirm
      {...props}
      onDone={async () => {
        onDone?.();
        await changed(tenant, 'users', user.id);
      }}
    />
  );
}

export function Deactivate(props: QuestionProps) {
  const { user } = props;
  const { client } = useTenant();
  return (
    <UserConfirm
      {...props}
      title={text.deactivateTitle(user.name)}
      action={text.deactivate}
      perform={() => client.users.deactivate(user.id)}
    >
      <p>{text.deactivateSays}</p>
    </UserConfirm>
  );
}

export function EndSessions(props: QuestionProps) {
  const { user } = props;
  const { client } = useTenant();
  return (
    <UserConfirm
      {...props}
      title={text.endTitle(user.name)}
      action={text.endSessions}
      perform={() => client.users.endSessions(user.id)}
    >
      <p>{text.endSays}</p>
    </UserConfirm>
  );
}

/** Leads back to the list after the user is gone. */
export function DeleteUser(props: QuestionProps) {
  const { user } = props;
  const { client } = useTenant();
  const navigate = useNavigate();
  return (
    <UserConfirm
      {...props}
      title={text.removeTitle(user.name)}
      action={text.remove}
      perform={() => client.users.delete(user.id)}
      word={user.email ?? user.name}
      onDone={() => void navigate({ to: '/users' })}
    >
      <p>{text.removeSays}</p>
      <Small>{text.removeHint}</Small>
    </UserConfirm>
  );
}

interface ResetOwnProps {
  readonly error: unknown;
  readonly onReset: (password: string) => Promise<unknown>;
  readonly onClose: () => void;
}

/** Asks for the current password before a user resets its own. */
export function ResetOwn({ error, onReset, onClose }: ResetOwnProps) {
  const [password, setPassword] = useState('');
  const wrong = fieldError(error, '/current_password');
  return (
    <Confirm
      title={text.resetPassword}
      action={text.resetPassword}
      tone="primary"
      perform={() => onReset(password)}
      onClose={onClose}
      refusal={(refusal) => (wrong === undefined ? <Refused error={refusal} /> : null)}
    >
      <TextField
        label={text.currentPassword}
        type="password"
        value={password}
        onChange={setPassword}
        error={wrong}
        hint={text.currentPasswordHint}
        autoComplete="current-password"
        autoFocus
      />
    </Confirm>
  );
}
