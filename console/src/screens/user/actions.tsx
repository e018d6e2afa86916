/** The actions on a user: edit and activation as buttons, the others in a menu. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { User } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { useDenied, useMe, useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { users as text } from '../../text/en/users.ts';
import { Button } from '../../ui/button.tsx';
import { Ask, Menu } from '../../ui/overlay.tsx';
import { Refused } from '../../ui/refused.tsx';
import { SetupLink } from '../users/setup-link.tsx';
import { Deactivate, DeleteUser, EndSessions, ResetOwn } from './confirm.tsx';

type Asking = 'deactivate' | 'end' | 'delete' | 'reset';

export function Actions({ user, onEdit }: { readonly user: User; readonly onEdit: () => void }) {
  const { id: tenant, client } = useTenant();
  const queries = useQueryClient();
  const denied = useDenied('admin:users');
  const isOwn = useMe().id === user.id;
  const [asking, setAsking] = useState<Asking>();
  const close = (): void => setAsking(undefined);
  const reset = useMutation({
    mutationFn: (password?: string) =>
      client.users.resetPassword(user.id, password === undefined ? {} : { current_password: password }),
    onSuccess: () => queries.invalidateQueries({ queryKey: [tenant, 'audit'] }),
  });
  const activate = useMutation({
    mutationFn: () => client.users.activate(user.id),
    onSuccess: () => changed(tenant, 'users', user.id),
  });
  const failed = reset.isError && asking !== 'reset' ? reset : activate.isError ? activate : undefined;
  return (
    <>
      <Menu
        label={text.moreActions}
        isFull
        choices={[
          {
            id: 'reset',
            label: text.resetPassword,
            disabledReason: denied ?? (user.source === 'local' ? undefined : text.resetNotLocal),
            onChoose: () => {
              if (isOwn) setAsking('reset');
              else if (!reset.isPending) reset.mutate(undefined);
            },
          },
          { id: 'end', label: text.endSessions, disabledReason: denied, onChoose: () => setAsking('end') },
          {
            id: 'delete',
            label: text.remove,
            isDanger: true,
            disabledReason: denied,
            onChoose: () => setAsking('delete'),
          },
        ]}
      />
      {user.status === 'active' ? (
        <Button disabledReason={denied} onPress={() => setAsking('deactivate')}>
          {text.deactivate}
        </Button>
      ) : (
        <Button disabledReason={denied} onPress={() => activate.mutate()} isPending={activate.isPending}>
          {text.activate}
        </Button>
      )}
      <Button tone="primary" disabledReason={denied} onPress={onEdit}>
        {text.edit}
      </Button>
      {failed === undefined ? null : (
        <Ask
          title={failed === reset ? text.resetPassword : text.activate}
          onClose={failed.reset}
          actions={<Button onPress={failed.reset}>{common.close}</Button>}
        >
          <Refused error={failed.error} />
        </Ask>
      )}
      {reset.isSuccess ? (
        <SetupLink name={user.name} token={reset.data.password_setup_token} onClose={reset.reset} />
      ) : null}
      {asking === 'reset' ? (
        <ResetOwn
          error={reset.error}
          onReset={reset.mutateAsync}
          onClose={() => {
            close();
            if (reset.isError) reset.reset();
          }}
        />
      ) : null}
      {asking === 'deactivate' ? <Deactivate user={user} onClose={close} /> : null}
      {asking === 'end' ? <EndSessions user={user} onClose={close} /> : null}
      {asking === 'delete' ? <DeleteUser user={user} onClose={close} /> : null}
    </>
  );
}
