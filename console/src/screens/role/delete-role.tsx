/**
 * Deletes a role after its name is typed. One that is in use is deleted only after a second confirmation, which takes
 * it from all.
 */

import { useNavigate } from '@tanstack/react-router';
import { ProblemError } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { useTenant } from '../../api/session.ts';
import { roles as text } from '../../text/en/roles.ts';
import { Confirm } from '../../ui/confirm.tsx';
import { Note } from '../../ui/mark.tsx';
import { Refused } from '../../ui/refused.tsx';
import { DifferenceOfDelete } from '../difference/difference.tsx';
import { useDifference } from '../difference/use-difference.ts';
import { useHolders } from './queries.ts';

interface DeleteRoleProps {
  readonly name: string;
  readonly onClose: () => void;
}

export function DeleteRole({ name, onClose }: DeleteRoleProps) {
  const { id: tenant, client } = useTenant();
  const navigate = useNavigate();
  const difference = useDifference({ remove: { roles: [name] } });
  return (
    <Confirm
      title={text.removeTitle(name)}
      action={text.remove}
      word={name}
      perform={(force) =>
        client.request('DELETE', '/v1/iam/roles/{name}', { path: { name }, ...(force ? { query: { force } } : {}) })
      }
      force={{ code: 'in_use', action: text.force }}
      onClose={onClose}
      onDone={async () => {
        await navigate({ to: '/roles' });
        await changed(tenant, 'roles');
      }}
      refusal={(error) =>
        error instanceof ProblemError && error.code === 'in_use' ? <InUse name={name} /> : <Refused error={error} />
      }
    >
      <p>{text.removeSays}</p>
      <DifferenceOfDelete state={difference} />
    </Confirm>
  );
}

function InUse({ name }: { readonly name: string }) {
  const count = useHolders(name);
  return (
    <Note tone="care" isLive>
      <b>{text.inUse}.</b> {text.inUseSays} {count === undefined ? null : text.users(count)}
    </Note>
  );
}
