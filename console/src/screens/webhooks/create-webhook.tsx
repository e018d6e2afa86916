/** Creates a webhook. */

import type { WebhookWithSecret } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { useCreation } from '../../api/edit.ts';
import { useTenant } from '../../api/session.ts';
import { webhooks as text } from '../../text/en/webhooks.ts';
import { DrawerForm } from '../../ui/drawer-form.tsx';
import { changesOf, faultOf, NEW_WEBHOOK, WebhookForm } from './fields.tsx';

interface CreateWebhookProps {
  readonly onClose: () => void;
  readonly onCreated: (issued: WebhookWithSecret) => void;
}

export function CreateWebhook({ onClose, onCreated }: CreateWebhookProps) {
  const { id: tenant, client } = useTenant();
  const create = useCreation({
    form: 'new webhook',
    start: NEW_WEBHOOK,
    send: ({ url, events, description }) =>
      client.request('POST', '/v1/iam/webhooks', { body: { ...changesOf({ description }), url: url.trim(), events } }),
    onCreated: async (issued) => {
      onCreated(issued);
      await changed(tenant, 'webhooks');
    },
  });
  const { draft, set, error } = create;
  const fault = faultOf(draft);
  return (
    <DrawerForm title={text.create} work={create} action={text.creating} fault={fault} onClose={onClose} noValidate>
      <WebhookForm draft={draft} set={set} error={error} isNew />
    </DrawerForm>
  );
}
