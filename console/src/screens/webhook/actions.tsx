/** The actions on a webhook. */

import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Webhook } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { webhooks as text } from '../../text/en/webhooks.ts';
import { Button } from '../../ui/button.tsx';
import { Confirm } from '../../ui/confirm.tsx';
import { Note, Small } from '../../ui/mark.tsx';
import { Ask, Menu } from '../../ui/overlay.tsx';
import { Refused } from '../../ui/refused.tsx';
import { Secret } from '../webhooks/secret.tsx';

type Asking = 'switch' | 'rotate' | 'delete';

export function Actions({ webhook }: { readonly webhook: Webhook }) {
  const { id: tenant, client } = useTenant();
  const navigate = useNavigate();
  const [asking, setAsking] = useState<Asking>();
  const [rotated, setRotated] = useState<string>();
  const { id, enabled } = webhook;
  const path = { id };
  const close = (): void => setAsking(undefined);
  const reread = (): Promise<void> => changed(tenant, 'webhooks');
  const test = useMutation({
    mutationFn: () => client.request('POST', '/v1/iam/webhooks/{id}/test', { path }),
    onSettled: reread,
  });
  return (
    <>
      <Menu
        label={text.moreActions}
        isFull
        choices={[
          { id: 'rotate', label: text.rotate, onChoose: () => setAsking('rotate') },
          { id: 'delete', label: text.remove, isDanger: true, onChoose: () => setAsking('delete') },
        ]}
      />
      <Button onPress={() => setAsking('switch')}>{enabled ? text.disable : text.enable}</Button>
      <Button tone="primary" isPending={test.isPending} onPress={() => test.mutate()}>
        {text.test}
      </Button>
      {test.isSuccess || test.isError ? <Tested test={test} onClose={() => test.reset()} /> : null}
      {asking === 'switch' ? (
        <Confirm
          title={enabled ? text.disableTitle : text.enableTitle}
          action={enabled ? text.disable : text.enable}
          tone={enabled ? 'danger' : 'primary'}
          perform={() => client.request('PUT', '/v1/iam/webhooks/{id}', { path, body: { enabled: !enabled } })}
          onClose={close}
          onDone={reread}
        >
          <p>{enabled ? text.disableSays : text.enableSays}</p>
        </Confirm>
      ) : null}
      {asking === 'rotate' ? (
        <Confirm
          title={text.rotateTitle}
          action={text.rotate}
          tone="primary"
          showsSecret
          perform={async () => {
            const { secret } = await client.request('POST', '/v1/iam/webhooks/{id}/rotate', { path });
            setRotated(secret);
          }}
          onClose={close}
          onDone={reread}
        >
          <p>{text.rotateSays}</p>
        </Confirm>
      ) : null}
      {asking === 'delete' ? (
        <Confirm
          title={text.removeTitle}
          action={text.remove}
          word={text.removeWord}
          perform={() => client.request('DELETE', '/v1/iam/webhooks/{id}', { path })}
          onClose={close}
          onDone={async () => {
            await navigate({ to: '/webhooks' });
            await reread();
          }}
        >
          <p>{text.removeSays}</p>
        </Confirm>
      ) : null}
      {rotated === undefined ? null : <Secret secret={rotated} isRotated onClose={() => setRotated(undefined)} />}
    </>
  );
}

interface TestedProps {
  readonly test: {
    readonly data?: { readonly state: string; readonly status: number | null; readonly error: string | null };
    readonly error: unknown;
  };
  readonly onClose: () => void;
}

function Tested({ test: { data, error }, onClose }: TestedProps) {
  return (
    <Ask title={text.test} onClose={onClose} actions={<Button onPress={onClose}>{common.close}</Button>}>
      {data === undefined ? <Refused error={error} /> : null}
      {data === undefined ? null : data.state === 'delivered' ? (
        <Note tone="good">{text.testDone(data.status ?? 0)}</Note>
      ) : (
        <Note tone="deny">
          {text.testFailed}
          <Small>{data.error ?? (data.status === null ? text.noAnswer : text.testDone(data.status))}</Small>
        </Note>
      )}
    </Ask>
  );
}
