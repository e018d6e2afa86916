/** The addresses that the events of the tenant are sent to. */

import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Webhook, WebhookWithSecret } from '../../../../client/index.ts';
import { useDenied } from '../../api/session.ts';
import { useWebhooks } from '../../api/webhooks.ts';
import { webhooks as text } from '../../text/en/webhooks.ts';
import { Button } from '../../ui/button.tsx';
import { type ListColumn, ListTable, TwoLines } from '../../ui/list.tsx';
import { Empty, State, Tags } from '../../ui/mark.tsx';
import { Page } from '../../ui/page.tsx';
import { Ago } from '../../ui/time.tsx';
import { CreateWebhook } from './create-webhook.tsx';
import { Secret } from './secret.tsx';

const SHOWN_EVENTS = 3;

const COLUMNS: readonly ListColumn<Webhook>[] = [
  { id: 'url', title: text.url, cell: ({ url, description }) => <TwoLines name={url} second={description} /> },
  { id: 'state', title: text.state, cell: (webhook) => <WebhookState webhook={webhook} /> },
  { id: 'events', title: text.events, cell: ({ events }) => <Tags values={events} atMost={SHOWN_EVENTS} /> },
  { id: 'created', title: text.created, rank: 'second', cell: ({ created_at: at }) => <Ago time={at} /> },
];

export function Webhooks() {
  const denied = useDenied('admin:webhooks');
  const { add } = useSearch({ from: '/inside/webhooks' });
  const navigate = useNavigate({ from: '/webhooks' });
  const [issued, setIssued] = useState<WebhookWithSecret>();
  const list = useWebhooks();
  const show = (isOpen: true | undefined): void => void navigate({ search: (before) => ({ ...before, add: isOpen }) });
  return (
    <Page
      title={text.title}
      says={text.says}
      actions={
        <Button tone="primary" disabledReason={denied} onPress={() => show(true)}>
          {text.create}
        </Button>
      }
    >
      <ListTable
        label={text.title}
        list={list}
        idOf={({ id }) => id}
        onOpen={({ id }) => void navigate({ to: '/webhooks/$id', params: { id }, search: {} })}
        empty={<Empty title={text.empty}>{text.emptySays}</Empty>}
        columns={COLUMNS}
      />
      {add === true ? (
        <CreateWebhook
          onClose={() => show(undefined)}
          onCreated={(created) => {
            show(undefined);
            setIssued(created);
          }}
        />
      ) : null}
      {issued === undefined ? null : (
        <Secret
          secret={issued.secret}
          isRotated={false}
          onClose={() => void navigate({ to: '/webhooks/$id', params: { id: issued.id }, search: {} })}
        />
      )}
    </Page>
  );
}

export function WebhookState({ webhook: { enabled, disabled_reason: reason } }: { readonly webhook: Webhook }) {
  if (enabled) return <State>{text.states.enabled}</State>;
  return reason === null ? (
    <State tone="off">{text.states.disabled}</State>
  ) : (
    <State tone="deny">{text.states.stopped}</State>
  );
}
