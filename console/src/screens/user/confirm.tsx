/** The questions before a user's access ends: what will happen, and a refusal in its place. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import type { Client, User } from '../../../../client/index.ts';
import { useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { users as text } from '../../text/en/users.ts';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { Small } from '../../ui/mark.tsx';
import { Ask } from '../../ui/overlay.tsx';
import { Refused } from '../users/refused.tsx';
import { userChanged } from './queries.ts';

interface QuestionProps {
  readonly user: User;
  readonly onClose: () => void;
  readonly onDone?: () => void;
}

interface ConfirmProps extends QuestionProps {
  readonly title: string;
  readonly children: ReactNode;
  readonly action: string;
  readonly perform: (client: Client) => Promise<unknown>;
  /** Why it cannot be confirmed yet. */
  readonly waitsFor?: string | undefined;
}

function Confirm({ user, title, children, action, perform, waitsFor, onClose, onDone }: ConfirmProps) {
  const { id: tenant, client } = useTenant();
  const queries = useQueryClient();
  const run = useMutation({
    mutationFn: () => perform(client),
    onSuccess: async () => {
      onClose();
      onDone?.();
      await userChanged(queries, tenant, user.id);
    },
  });
  return (
    <Ask
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>{common.cancel}</Button>
          <Button tone="danger" onPress={() => run.mutate()} isPending={run.isPending} disabledReason={waitsFor}>
            {action}
          </Button>
        </>
      }
    >
      {children}
      {run.isError ? <Refused error={run.error} /> : null}
    </Ask>
  );
}

export function Deactivate(props: QuestionProps) {
  const { user } = props;
  return (
    <Confirm
      {...props}
      title={text.deactivateTitle(user.name)}
      action={text.deactivate}
      perform={(client) => client.users.deactivate(user.id)}
    >
      <p>{text.deactivateSays}</p>
    </Confirm>
  );
}

export function EndSessions(props: QuestionProps) {
  const { user } = props;
  return (
    <Confirm
      {...props}
      title={text.endTitle(user.name)}
      action={text.endSessions}
      perform={(client) => client.users.endSessions(user.id)}
    >
      <p>{text.endSays}</p>
    </Confirm>
  );
}

/** Leads back to the list after the user is gone. */
export function DeleteUser(props: QuestionProps) {
  const { user } = props;
  const navigate = useNavigate();
  const [typed, setTyped] = useState('');
  const wanted = user.email ?? user.name;
  return (
    <Confirm
      {...props}
      title={text.removeTitle(user.name)}
      action={text.remove}
      perform={(client) => client.users.delete(user.id)}
      waitsFor={typed.trim() === wanted ? undefined : common.typeToConfirm(wanted)}
      onDone={() => void navigate({ to: '/users' })}
    >
      <p>{text.removeSays}</p>
      <Small>{text.removeHint}</Small>
      <TextField label={common.typeToConfirm(wanted)} value={typed} onChange={setTyped} autoComplete="off" isMono autoFocus />
    </Confirm>
  );
}
