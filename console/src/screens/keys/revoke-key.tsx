/** The questions before keys are revoked: when they were last used, and what will happen. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { ApiKey } from '../../../../client/index.ts';
import { nameOf } from '../../api/principal.tsx';
import { useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { keys as text } from '../../text/en/keys.ts';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { Note, Small, shortened } from '../../ui/mark.tsx';
import { Ask } from '../../ui/overlay.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Ago } from '../../ui/time.tsx';
import styles from './keys.module.css';
import { keysChanged } from './queries.ts';

export function RevokeKey({ apiKey, onClose }: { readonly apiKey: ApiKey; readonly onClose: () => void }) {
  const { id: tenant, client } = useTenant();
  const queries = useQueryClient();
  const [typed, setTyped] = useState('');
  const revoke = useMutation({
    mutationFn: () => client.apiKeys.revoke(apiKey.id),
    onSuccess: async () => {
      onClose();
      await keysChanged(queries, tenant, apiKey.id);
    },
  });
  const wanted = apiKey.last_four;
  return (
    <Ask
      title={text.revokeTitle(nameOf(apiKey))}
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>{common.cancel}</Button>
          <Button
            tone="danger"
            onPress={() => revoke.mutate()}
            isPending={revoke.isPending}
            disabledReason={typed.trim() === wanted ? undefined : common.typeToConfirm(wanted)}
          >
            {text.revoke}
          </Button>
        </>
      }
    >
      <p>{text.revokeSays}</p>
      <Note tone={apiKey.last_used_at === null ? 'plain' : 'care'}>
        {apiKey.last_used_at === null ? (
          text.neverUsed
        ) : (
          <>
            {text.lastUsed} <Ago time={apiKey.last_used_at} />
          </>
        )}
      </Note>
      <TextField
        label={common.typeToConfirm(wanted)}
        value={typed}
        onChange={setTyped}
        autoComplete="off"
        isMono
        autoFocus
      />
      {revoke.isError ? <Problem error={revoke.error} /> : null}
    </Ask>
  );
}

interface RevokeSeveralProps {
  readonly ids: readonly string[];
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Shows what the server says would happen before it happens. */
export function RevokeSeveral({ ids, onClose, onDone }: RevokeSeveralProps) {
  const { id: tenant, client } = useTenant();
  const queries = useQueryClient();
  const preview = useQuery({
    queryKey: [tenant, 'keys', 'revoke', ids],
    queryFn: ({ signal }) => client.apiKeys.revokeSeveral({ ids }, { dry_run: true }, { signal }),
    gcTime: 0,
  });
  const revoke = useMutation({
    mutationFn: () => client.apiKeys.revokeSeveral({ ids }),
    onSuccess: async ({ data }) => {
      if (data.every(({ outcome }) => outcome === 'revoked' || outcome === 'already_revoked')) onDone();
      await keysChanged(queries, tenant);
    },
  });
  const shown = revoke.data ?? preview.data;
  const count = preview.data?.revoked ?? 0;
  return (
    <Ask
      title={text.previewTitle(ids.length)}
      onClose={onClose}
      actions={
        revoke.isSuccess ? (
          <Button onPress={onDone}>{common.close}</Button>
        ) : (
          <>
            <Button onPress={onClose}>{common.cancel}</Button>
            <Button
              tone="danger"
              onPress={() => revoke.mutate()}
              isPending={revoke.isPending}
              disabledReason={count === 0 ? text.loadingPreview : undefined}
            >
              {text.revokeSeveral(count)}
            </Button>
          </>
        )
      }
    >
      <p>{text.previewSays}</p>
      {preview.isError ? <Problem error={preview.error} /> : null}
      {revoke.isError ? <Problem error={revoke.error} /> : null}
      {shown === undefined ? (
        <Small>{text.loadingPreview}</Small>
      ) : (
        <ul className={styles.preview} aria-label={text.outcome}>
          {shown.data.map(({ id, outcome, key, detail }) => (
            <li key={id}>
              <span>
                {key === undefined ? shortened(id) : nameOf(key)}
                {key === undefined ? null : (
                  <Small>
                    {text.lastUsed} <Ago time={key.last_used_at} />
                  </Small>
                )}
              </span>
              <span>{detail ?? text.outcomes[outcome]}</span>
            </li>
          ))}
        </ul>
      )}
    </Ask>
  );
}
