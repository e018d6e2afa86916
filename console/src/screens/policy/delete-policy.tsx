/** Deletes a policy after its name is typed. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Policy } from '../../../../client/index.ts';
import { policiesChanged } from '../../api/policies.ts';
import { useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { policies as text } from '../../text/en/policies.ts';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { Ask } from '../../ui/overlay.tsx';
import { Refused } from '../../ui/refused.tsx';
import { DifferenceOfDelete } from '../difference/difference.tsx';
import { useDifference } from '../difference/use-difference.ts';

export function DeletePolicy({ policy, onClose }: { readonly policy: Policy; readonly onClose: () => void }) {
  const { name, effect, global: isGlobal } = policy;
  const { id: tenant, client } = useTenant();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [typed, setTyped] = useState('');
  const difference = useDifference({ remove: { policies: [name] } });
  const remove = useMutation({
    mutationFn: () => client.request('DELETE', '/v1/iam/policies/{name}', { path: { name } }),
    onSuccess: async () => {
      onClose();
      await navigate({ to: '/policies' });
      await policiesChanged(queries, tenant);
    },
  });
  return (
    <Ask
      title={text.removeTitle(name)}
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>{common.cancel}</Button>
          <Button
            tone="danger"
            isPending={remove.isPending}
            disabledReason={typed.trim() === name ? undefined : common.typeToConfirm(name)}
            onPress={() => remove.mutate()}
          >
            {text.removePolicy}
          </Button>
        </>
      }
    >
      <p>{text.removeSays[effect]}</p>
      <DifferenceOfDelete state={difference} isGlobal={isGlobal} />
      <TextField
        label={common.typeToConfirm(name)}
        value={typed}
        onChange={setTyped}
        autoComplete="off"
        isMono
        autoFocus
      />
      {remove.isError ? <Refused error={remove.error} /> : null}
    </Ask>
  );
}
