/** Deletes a policy after its name is typed. */

import { useNavigate } from '@tanstack/react-router';
import type { Policy } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { useTenant } from '../../api/session.ts';
import { policies as text } from '../../text/en/policies.ts';
import { Confirm } from '../../ui/confirm.tsx';
import { DifferenceOfDelete } from '../difference/difference.tsx';
import { useDifference } from '../difference/use-difference.ts';

export function DeletePolicy({ policy, onClose }: { readonly policy: Policy; readonly onClose: () => void }) {
  const { name, effect, global: isGlobal } = policy;
  const { id: tenant, client } = useTenant();
  const navigate = useNavigate();
  const difference = useDifference({ remove: { policies: [name] } });
  return (
    <Confirm
      title={text.removeTitle(name)}
      action={text.removePolicy}
      word={name}
      perform={() => client.request('DELETE', '/v1/iam/policies/{name}', { path: { name } })}
      onClose={onClose}
      onDone={async () => {
        await navigate({ to: '/policies' });
        await changed(tenant, 'policies');
      }}
    >
      <p>{text.removeSays[effect]}</p>
      <DifferenceOfDelete state={difference} isGlobal={isGlobal} />
    </Confirm>
  );
}
