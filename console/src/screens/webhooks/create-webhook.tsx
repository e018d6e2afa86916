/** Creates a webhook. */

import { useQueryClient } from '@tanstack/react-query';
import { ProblemError, type WebhookWithSecret } from '../../../../client/index.ts';
import { useCreation } from '../../api/edit.ts';
import { useTenant } from '../../api/session.ts';
import { webhooksChanged } from '../../api/webhooks.ts';
import { webhooks as text } from '../../text/en/webhooks.ts';
import { Drawer } from '../../ui/overlay.tsx';
import { SaveBar } from '../../ui/save-bar.tsx';
import { changesOf, faultOf, NEW_WEBHOOK, WebhookForm } from './fields.tsx';
import styles from './webhooks.module.css';

const FORM = 'create-webhook';

interface CreateWebhookProps {
  readonly onClose: () => void;
  readonly onCreated: (issued: WebhookWithSecret) => void;
}

export function CreateWebhook({ onClose, onCreated }: CreateWebhookProps) {
  const { id: tenant, client } = useTenant();
  const queries = useQueryClient();
  const create = useCreation({
    form: 'new webhook',
    start: NEW_WEBHOOK,
    send: ({ url, events, description }) =>
      client.request('POST', '/v1/iam/webhooks', { body: { ...changesOf({ description }), url: url.trim(), events } }),
    onCreated: async (issued) => {
      onCreated(issued);
      await webhooksChanged(queries, tenant);
    },
  });
  const { draft, set, error, reset } = create;
  const isTaken = error instanceof ProblemError && error.code === 'already_exists';
  const fault = faultOf(draft);
  return (
    <Drawer
      title={text.create}
      onClose={onClose}
      foot={<SaveBar work={create} form={FORM} action={text.creating} disabledReason={fault} onClose={onClose} />}
    >
      <form
        noValidate
        id={FORM}
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (fault === undefined) create.save();
        }}
      >
        <WebhookForm
          draft={draft}
          set={(change) => {
            set(change);
            if (isTaken) reset();
          }}
          error={error}
          isTaken={isTaken}
          isNew
        />
      </form>
    </Drawer>
  );
}
