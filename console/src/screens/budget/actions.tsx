/** The actions on a budget. */

import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Budget } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { budgets as text } from '../../text/en/budgets.ts';
import { Button } from '../../ui/button.tsx';
import { Confirm } from '../../ui/confirm.tsx';
import { TextField } from '../../ui/field.tsx';
import { Menu } from '../../ui/overlay.tsx';

type Asking = 'switch' | 'reset' | 'delete';
const MAX_REASON = 500;

export function Actions({ budget }: { readonly budget: Budget }) {
  const denied = useDenied('admin:budgets');
  const [asking, setAsking] = useState<Asking>();
  const close = (): void => setAsking(undefined);
  return (
    <>
      <Menu
        label={text.moreActions}
        isFull
        choices={[
          {
            id: 'delete',
            label: text.remove,
            isDanger: true,
            disabledReason: denied,
            onChoose: () => setAsking('delete'),
          },
        ]}
      />
      <Button disabledReason={denied} onPress={() => setAsking('switch')}>
        {budget.enabled ? text.disable : text.enable}
      </Button>
      <Button disabledReason={denied} onPress={() => setAsking('reset')}>
        {text.reset}
      </Button>
      {asking === 'switch' ? <Switch budget={budget} onClose={close} /> : null}
      {asking === 'reset' ? <Reset budget={budget} onClose={close} /> : null}
      {asking === 'delete' ? <Delete budget={budget} onClose={close} /> : null}
    </>
  );
}

interface QuestionProps {
  readonly budget: Budget;
  readonly onClose: () => void;
}

function Switch({ budget: { id, name, enabled }, onClose }: QuestionProps) {
  const { id: tenant, client } = useTenant();
  return (
    <Confirm
      title={enabled ? text.disableTitle(name) : text.enableTitle(name)}
      action={enabled ? text.disable : text.enable}
      tone={enabled ? 'danger' : 'primary'}
      perform={() => client.request('PUT', '/v1/iam/budgets/{id}', { path: { id }, body: { enabled: !enabled } })}
      onClose={onClose}
      onDone={() => changed(tenant, 'budgets')}
    >
      <p>{enabled ? text.disableSays : text.enableSays}</p>
    </Confirm>
  );
}

function Reset({ budget: { id, name }, onClose }: QuestionProps) {
  const { id: tenant, client } = useTenant();
  const [reason, setReason] = useState('');
  return (
    <Confirm
      title={text.resetTitle(name)}
      action={text.reset}
      disabledReason={reason.trim() === '' ? text.reasonNeeded : undefined}
      perform={() =>
        client.request('POST', '/v1/iam/budgets/{id}/reset', { path: { id }, body: { reason: reason.trim() } })
      }
      onClose={onClose}
      onDone={() => changed(tenant, 'budgets')}
    >
      <p>{text.resetSays}</p>
      <TextField
        label={text.reason}
        value={reason}
        onChange={setReason}
        hint={text.reasonHint}
        maxLength={MAX_REASON}
        autoComplete="off"
        isRequired
        autoFocus
      />
    </Confirm>
  );
}

function Delete({ budget: { id, name }, onClose }: QuestionProps) {
  const { id: tenant, client } = useTenant();
  const navigate = useNavigate();
  return (
    <Confirm
      title={text.removeTitle(name)}
      action={text.remove}
      word={name}
      perform={() => client.request('DELETE', '/v1/iam/budgets/{id}', { path: { id } })}
      onClose={onClose}
      onDone={async () => {
        await navigate({ to: '/budgets' });
        await changed(tenant, 'budgets');
      }}
    >
      <p>{text.removeSays}</p>
    </Confirm>
  );
}
