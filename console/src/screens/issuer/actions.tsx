/** The actions on an issuer: its test as a button, those that take something away in a menu. */

import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { type Issuer, ProblemError } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { issuers as text } from '../../text/en/issuers.ts';
import { Button } from '../../ui/button.tsx';
import { Confirm } from '../../ui/confirm.tsx';
import { Note, Small } from '../../ui/mark.tsx';
import { Menu } from '../../ui/overlay.tsx';
import { Refused } from '../../ui/refused.tsx';

type Asking = 'switch' | 'revoke' | 'delete';

interface ActionsProps {
  readonly issuer: Issuer;
  readonly onTest: () => void;
}

export function Actions({ issuer, onTest }: ActionsProps) {
  const denied = useDenied('admin:issuers');
  const [asking, setAsking] = useState<Asking>();
  const close = (): void => setAsking(undefined);
  return (
    <>
      <Menu
        label={text.moreActions}
        isFull
        choices={[
          { id: 'revoke', label: text.revoke, disabledReason: denied, onChoose: () => setAsking('revoke') },
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
        {issuer.enabled ? text.disable : text.enable}
      </Button>
      <Button tone="primary" disabledReason={denied} onPress={onTest}>
        {text.test}
      </Button>
      {asking === 'switch' ? <Switch issuer={issuer} onClose={close} /> : null}
      {asking === 'revoke' ? <Revoke issuer={issuer} onClose={close} /> : null}
      {asking === 'delete' ? <Delete issuer={issuer} onClose={close} /> : null}
    </>
  );
}

interface QuestionProps {
  readonly issuer: Issuer;
  readonly onClose: () => void;
}

function Switch({ issuer: { id, name, enabled }, onClose }: QuestionProps) {
  const { id: tenant, client } = useTenant();
  return (
    <Confirm
      title={enabled ? text.disableTitle(name) : text.enableTitle(name)}
      action={enabled ? text.disable : text.enable}
      tone={enabled ? 'danger' : 'primary'}
      perform={() => client.request('PUT', '/v1/iam/issuers/{id}', { path: { id }, body: { enabled: !enabled } })}
      onClose={onClose}
      onDone={() => changed(tenant, 'issuers')}
    >
      <p>{enabled ? text.disableSays : text.enableSays}</p>
    </Confirm>
  );
}

function Revoke({ issuer: { id, name }, onClose }: QuestionProps) {
  const { id: tenant, client } = useTenant();
  return (
    <Confirm
      title={text.revokeTitle(name)}
      action={text.revoke}
      perform={() => client.request('POST', '/v1/iam/issuers/{id}/revoke-before', { path: { id }, body: {} })}
      onClose={onClose}
      onDone={() => changed(tenant, 'issuers')}
    >
      <p>{text.revokeSays}</p>
    </Confirm>
  );
}

function Delete({ issuer: { id, name }, onClose }: QuestionProps) {
  const { id: tenant, client } = useTenant();
  const navigate = useNavigate();
  return (
    <Confirm
      title={text.removeTitle(name)}
      action={text.remove}
      word={name}
      perform={(force) =>
        client.request('DELETE', '/v1/iam/issuers/{id}', { path: { id }, ...(force ? { query: { force } } : {}) })
      }
      force={{ code: 'in_use', action: text.force }}
      onClose={onClose}
      onDone={async () => {
        await navigate({ to: '/issuers' });
        await changed(tenant, 'issuers');
      }}
      refusal={(error) =>
        error instanceof ProblemError && error.code === 'in_use' ? (
          <Note tone="care" isLive>
            <b>{text.inUse}.</b> {text.inUseSays}
            <Small>{error.detail}</Small>
          </Note>
        ) : (
          <Refused error={error} />
        )
      }
    >
      <p>{text.removeSays}</p>
    </Confirm>
  );
}
