/** One webhook: its deliveries, its settings and its record. */

import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { Webhook as WebhookResource } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { type Tagged, useEdit } from '../../api/edit.ts';
import { tagged } from '../../api/one.ts';
import { useTenant } from '../../api/session.ts';
import { readWebhook, useWebhook } from '../../api/webhooks.ts';
import { common } from '../../text/en/common.ts';
import { webhooks as text } from '../../text/en/webhooks.ts';
import { Courses } from '../../ui/courses.tsx';
import { Facts } from '../../ui/facts.tsx';
import { Form } from '../../ui/form.tsx';
import { Id, Note, Small } from '../../ui/mark.tsx';
import { count } from '../../ui/number.ts';
import { Page, SectionHead } from '../../ui/page.tsx';
import { SaveBar } from '../../ui/save-bar.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Moment } from '../../ui/time.tsx';
import { Unloaded } from '../../ui/unloaded.tsx';
import { changesOf, faultOf, fieldsOf, type WebhookFields, WebhookForm } from '../webhooks/fields.tsx';
import { WEBHOOK_TABS } from '../webhooks/search.ts';
import { WebhookState } from '../webhooks/webhooks.tsx';
import { Actions } from './actions.tsx';
import { Deliveries } from './deliveries.tsx';
import styles from './webhook.module.css';

export function Webhook() {
  const tenant = useTenant();
  const { id } = useParams({ from: '/inside/webhooks/$id' });
  const { tab = 'deliveries' } = useSearch({ from: '/inside/webhooks/$id' });
  const navigate = useNavigate({ from: '/webhooks/$id' });
  const loaded = useWebhook(id);
  const crumb = <Link to="/webhooks">{text.crumb}</Link>;
  if (loaded.data === undefined) return <Unloaded query={loaded} title={text.crumb} crumb={crumb} />;
  const webhook = loaded.data.data;
  return (
    <Page
      title={webhook.url}
      says={webhook.description ?? undefined}
      crumb={crumb}
      actions={<Actions webhook={webhook} />}
    >
      {webhook.disabled_reason === null ? null : (
        <div className={styles.note}>
          <Note tone="deny">
            {text.stoppedSays}
            <Small>{webhook.disabled_reason}</Small>
          </Note>
        </div>
      )}
      <Tabs
        label={text.tab}
        value={tab}
        onChange={(value) => void navigate({ search: (before) => ({ ...before, tab: value }) })}
        tabs={WEBHOOK_TABS.map((value) => ({ value, label: text.tabs[value] }))}
      >
        {tab === 'deliveries' ? (
          <Deliveries id={id} />
        ) : (
          <Courses
            main={<Editor key={`${tenant.id} ${id}`} loaded={loaded.data} />}
            side={<Record webhook={webhook} />}
          />
        )}
      </Tabs>
    </Page>
  );
}

function Editor({ loaded }: { readonly loaded: Tagged<WebhookResource> }) {
  const tenant = useTenant();
  const { id } = loaded.data;
  const edit = useEdit<WebhookResource, WebhookFields>({
    form: `webhook ${id}`,
    loaded,
    fieldsOf,
    read: () => readWebhook(tenant, id),
    write: (changes, ifMatch) =>
      tagged(tenant.client.send('PUT', '/v1/iam/webhooks/{id}', { path: { id }, body: changesOf(changes), ifMatch })),
    onSaved: () => void changed(tenant.id, 'webhooks'),
  });
  const { draft, set, error } = edit;
  const missing = faultOf(draft) ?? (edit.isChanged ? undefined : common.noChange);
  return (
    <Form noValidate className={styles.form} fault={missing} onSend={() => edit.save()}>
      <WebhookForm draft={draft} set={set} error={error} isNew={false} />
      <SaveBar work={edit} action={text.save} saved={text.saved} disabledReason={missing} comparable={comparable} />
    </Form>
  );
}

/** Leaves out the members that change by themselves, so that a conflict does not show them. */
function comparable({ dropped: _, previous_until: __, ...rest }: WebhookResource) {
  return rest;
}

function Record({ webhook }: { readonly webhook: WebhookResource }) {
  const { id, dropped, previous_until: until, created_at: created, updated_at: updated } = webhook;
  return (
    <section>
      <SectionHead title={text.record} />
      <Facts
        facts={[
          { name: text.state, value: <WebhookState webhook={webhook} /> },
          { name: text.rotatedUntil, value: until === null ? null : <Moment time={until} /> },
          { name: text.created, value: <Moment time={created} /> },
          { name: text.changed, value: <Moment time={updated} /> },
          { name: text.id, value: <Id value={id} /> },
        ]}
      />
      {dropped === 0 ? null : (
        <div className={styles.note}>
          <Note tone="care">{text.droppedSays(count(dropped))}</Note>
        </div>
      )}
    </section>
  );
}
