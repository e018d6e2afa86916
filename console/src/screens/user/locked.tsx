/** Says that failed logins lock the account, and opens it again. */

import { useMutation } from '@tanstack/react-query';
import type { User } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { useDenied, useMe, useTenant } from '../../api/session.ts';
import { users as text } from '../../text/en/users.ts';
import { Button } from '../../ui/button.tsx';
import { Note, Small } from '../../ui/mark.tsx';
import { Refused } from '../../ui/refused.tsx';
import { Moment } from '../../ui/time.tsx';

export function Locked({ user, until }: { readonly user: User; readonly until: string }) {
  const { id: tenant, client } = useTenant();
  const deniedByRights = useDenied('admin:users');
  const denied = useMe().id === user.id ? text.notOwnUnlock : deniedByRights;
  const unlock = useMutation({
    mutationFn: () => client.users.unlock(user.id),
    onSuccess: () => changed(tenant, 'users', user.id),
  });
  return (
    <>
      <Note
        tone="care"
        icon="lock"
        action={
          <Button small disabledReason={denied} isPending={unlock.isPending} onPress={() => unlock.mutate()}>
            {text.unlock}
          </Button>
        }
      >
        {text.lockedSays} <Moment time={until} />.<Small>{text.lockedKeys}</Small>
      </Note>
      {unlock.isError ? <Refused error={unlock.error} /> : null}
    </>
  );
}
