/** Ready settings for programs that call the platform, and one request to try them. */

import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { ApiKey } from '../../../../client/index.ts';
import { nameOf, shownKey } from '../../api/principal.tsx';
import { useTenant } from '../../api/session.ts';
import { connect as text } from '../../text/en/connect.ts';
import { keys as keyText } from '../../text/en/keys.ts';
import buttons from '../../ui/button.module.css';
import { classes } from '../../ui/classes.ts';
import { Code } from '../../ui/code.tsx';
import { TextField } from '../../ui/field.tsx';
import { Note, Skeleton, Small, Tags } from '../../ui/mark.tsx';
import { Page, SectionHead } from '../../ui/page.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import styles from './connect.module.css';
import { chatSample, modelOf, SOME_MODEL, sampleOf } from './sample.ts';
import { CLIENTS, curlOf, envOf, snippetsOf } from './snippets.ts';
import type { TrialKind } from './trial.ts';
import { TryIt } from './try-it.tsx';

/** Without query and fragment, and with nothing that a shell or a configuration file reads as its own. */
const ADDRESS = /^https?:\/\/[\p{L}\p{N}.:[\]-]+(?:\/[\w.~%/-]*)?$/u;

export function Connect() {
  const { key: id } = useSearch({ from: '/inside/connect' });
  const tenant = useTenant();
  const key = useQuery({
    queryKey: [tenant.id, 'key', id, 'settings'],
    queryFn: ({ signal }) => (id === undefined ? null : tenant.client.apiKeys.get(id, { signal })),
    retry: false,
  });
  const settings = useQuery({
    queryKey: [tenant.id, 'tenant', 'settings'],
    queryFn: ({ signal }) => tenant.client.tenants.get(tenant.id, { signal }),
    retry: false,
  });
  if (key.isPending || settings.isPending)
    return (
      <Page title={text.title} says={text.says}>
        <Skeleton width={3} />
      </Page>
    );
  const apiKey = key.data ?? undefined;
  const model = (apiKey && modelOf(apiKey.resource_constraints)) ?? settings.data?.settings.default_model ?? SOME_MODEL;
  return <Settings key={id} apiKey={apiKey} isGone={key.isError} firstModel={model} />;
}

interface SettingsProps {
  readonly apiKey: ApiKey | undefined;
  /** The key that the address names was not found. */
  readonly isGone: boolean;
  readonly firstModel: string;
}

function Settings({ apiKey, isGone, firstModel }: SettingsProps) {
  const { client: chosen = 'curl' } = useSearch({ from: '/inside/connect' });
  const navigate = useNavigate({ from: '/connect' });
  const [typedAddress, setAddress] = useState(window.location.origin);
  const [typedModel, setModel] = useState(firstModel);
  const address = typedAddress.trim().replace(/\/+$/, '');
  const model = typedModel.trim() === '' ? SOME_MODEL : typedModel.trim();
  const isAddress = ADDRESS.test(address);
  const place = { address: isAddress ? address : window.location.origin, model };
  const sample = apiKey === undefined ? chatSample(model) : sampleOf(apiKey, model);
  const snippets =
    chosen === 'curl' ? [{ title: text.shell, code: curlOf(place.address, sample) }] : snippetsOf(chosen, place);
  return (
    <Page title={text.title} says={text.says}>
      <div className={styles.columns}>
        <div className={styles.main}>
          {isGone ? <Note tone="care">{text.keyGone}</Note> : null}
          <ForKey apiKey={apiKey} />
          <div className={styles.pair}>
            <TextField
              label={text.address}
              value={typedAddress}
              onChange={setAddress}
              hint={text.addressHint}
              error={isAddress ? undefined : text.addressFault}
              autoComplete="off"
              isMono
            />
            <TextField
              label={text.model}
              value={typedModel}
              onChange={setModel}
              hint={text.modelHint}
              autoComplete="off"
              maxLength={256}
              isMono
            />
          </div>
          <Tabs
            label={text.clients}
            value={chosen}
            onChange={(client) => void navigate({ search: (before) => ({ ...before, client }), replace: true })}
            tabs={CLIENTS.map((value) => ({ value, label: text.kinds[value] }))}
          >
            <div className={styles.snippets}>
              {snippets.map((snippet) => (
                <Code key={snippet.title} {...snippet} />
              ))}
              {text.notes[chosen] === undefined ? null : <Small>{text.notes[chosen]}</Small>}
            </div>
          </Tabs>
        </div>
        <section className={styles.variables}>
          <SectionHead title={text.variables} />
          <Small>{text.variablesSay}</Small>
          <Code title=".env" code={envOf(place.address, text.yourKey)} />
        </section>
      </div>
      <TryIt model={model} first={trialFor(sample.path)} />
    </Page>
  );
}

function trialFor(path: string): TrialKind {
  if (path === '/v1/chat/completions') return 'chat';
  if (path === '/v1/embeddings') return 'embeddings';
  return 'models';
}

function ForKey({ apiKey }: { readonly apiKey: ApiKey | undefined }) {
  if (apiKey === undefined) {
    return (
      <p className={styles.for}>
        {text.noKeyYet}{' '}
        <Link className={classes(buttons.button, buttons.small)} to="/keys" search={{ open: 'new' }}>
          {text.toKeys}
        </Link>
      </p>
    );
  }
  return (
    <p className={styles.for}>
      {text.forKey}{' '}
      <Link to="/keys" search={{ open: apiKey.id }}>
        {nameOf(apiKey)}
      </Link>
      <code>{shownKey(apiKey)}</code>
      <Tags values={apiKey.scopes} atMost={4} />
      {apiKey.status === 'active' ? null : <b>{keyText.states[apiKey.status]}</b>}
    </p>
  );
}
