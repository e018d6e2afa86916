/** Creates the first key of the tenant, and shows it once with a request to try. */

import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { IssuedApiKey } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { nameOf, shownKey } from '../../api/principal.tsx';
import { useTenant } from '../../api/session.ts';
import { keys as keyText } from '../../text/en/keys.ts';
import { onboarding as text } from '../../text/en/onboarding.ts';
import { Button } from '../../ui/button.tsx';
import { Code } from '../../ui/code.tsx';
import { TextField } from '../../ui/field.tsx';
import { Note, Skeleton, Small } from '../../ui/mark.tsx';
import { fieldError, Problem } from '../../ui/problem.tsx';
import { useShownOnce } from '../../ui/shown-once.ts';
import { sampleOf } from '../connect/sample.ts';
import { curlOf } from '../connect/snippets.ts';
import styles from './onboarding.module.css';
import { Step } from './step.tsx';

const SCOPES = ['chat:write', 'models:read'];
const DAYS = 90;

export function FirstKey() {
  const { id: tenant, client } = useTenant();
  const found = useQuery({
    queryKey: [tenant, 'keys', 'first'],
    queryFn: async ({ signal }) => {
      const query = { status: 'active', limit: 1 } as const;
      return (await client.request('GET', '/v1/iam/api-keys', { query, signal })).data[0] ?? null;
    },
  });
  const [issued, setIssued] = useState<IssuedApiKey>();
  const key = found.data ?? undefined;
  const release = useShownOnce(issued?.key !== undefined);
  return (
    <Step title={text.key} isDone={key !== undefined}>
      {found.isError ? <Problem error={found.error} onRetry={() => void found.refetch()} /> : null}
      {found.isPending ? <Skeleton width={3} /> : null}
      {key === undefined ? null : (
        <p>
          <Link to="/keys" search={{ open: key.id }}>
            {nameOf(key)}
          </Link>{' '}
          <code>{shownKey(key)}</code>
        </p>
      )}
      {issued?.key === undefined ? null : (
        <>
          <Note tone="care">{keyText.shownOnce}</Note>
          <Code title={text.secret} code={issued.key} onCopied={release} />
          <Code title={text.tryIt} code={curlOf(location.origin, sampleOf(issued), issued.key)} onCopied={release} />
        </>
      )}
      {found.isSuccess && key === undefined ? <NewKey onCreated={setIssued} /> : null}
    </Step>
  );
}

function NewKey({ onCreated }: { readonly onCreated: (issued: IssuedApiKey) => void }) {
  const { id: tenant, client } = useTenant();
  const [description, setDescription] = useState('');
  const create = useMutation({
    mutationFn: () => client.apiKeys.create({ description, scopes: SCOPES, expires_in_days: DAYS, user_id: null }),
    onSuccess: async (issued) => {
      onCreated(issued);
      await changed(tenant, 'keys');
    },
  });
  const error = fieldError(create.error, '/description');
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        // Enter in the only field of a form sends it without its button.
        if (!create.isPending) create.mutate();
      }}
    >
      {create.isError && error === undefined ? <Problem error={create.error} /> : null}
      <TextField
        label={text.purpose}
        value={description}
        onChange={setDescription}
        error={error}
        maxLength={200}
        isRequired
      />
      <Small>{text.keySays(SCOPES.join(' and '), DAYS)}</Small>
      <Button tone="primary" type="submit" isPending={create.isPending}>
        {text.createKey}
      </Button>
    </form>
  );
}
