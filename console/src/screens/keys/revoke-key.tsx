/** The questions before keys are revoked: when they were last used, and what will happen. */

import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { ApiKey, ApiKeyRevocations, ApiKeysToRevoke } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { nameOf } from '../../api/principal.tsx';
import { useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { keys as text } from '../../text/en/keys.ts';
import { Button } from '../../ui/button.tsx';
import { Confirm } from '../../ui/confirm.tsx';
import { Note, Small, shortened } from '../../ui/mark.tsx';
import { Ask } from '../../ui/overlay.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Ago } from '../../ui/time.tsx';
import styles from './keys.module.css';

export function RevokeKey({ apiKey, onClose }: { readonly apiKey: ApiKey; readonly onClose: () => void }) {
  const { id: tenant, client } = useTenant();
  return (
    <Confirm
      title={text.revokeTitle(nameOf(apiKey))}
      action={text.revoke}
      // A key without a secret has no last four characters.
      word={apiKey.proof === null ? apiKey.last_four : nameOf(apiKey)}
      perform={() => client.apiKeys.revoke(apiKey.id)}
      onClose={onClose}
      onDone={() => changed(tenant, 'keys', apiKey.id)}
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
    </Confirm>
  );
}

/** Rows of a preview. */
const MOST_SHOWN = 100;

interface RevokeSeveralProps {
  /** Each is a request. */
  readonly keys: readonly ApiKeysToRevoke[];
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Shows what the server says would happen before it happens. */
export function RevokeSeveral({ keys, onClose, onDone }: RevokeSeveralProps) {
  const { id: tenant, client } = useTenant();
  const isFilter = keys.some((part) => 'filter' in part);
  const [soFar, setSoFar] = useState(0);
  const preview = useQuery({
    queryKey: [tenant, 'keys', 'revoke', keys],
    queryFn: async ({ signal }) =>
      together(
        await Promise.all(keys.map((part) => client.apiKeys.revokeSeveral(part, { dry_run: true }, { signal }))),
      ),
    gcTime: 0,
  });
  const revoke = useMutation({
    mutationFn: async () => {
      const last: ApiKeyRevocations[] = [];
      let revoked = 0;
      for (const part of keys) {
        // One request revokes a part of the keys that a filter matches.
        let done: ApiKeyRevocations;
        do {
          done = await client.apiKeys.revokeSeveral(part);
          revoked += done.revoked;
          setSoFar(revoked);
        } while (done.has_more && done.revoked > 0);
        last.push(done);
      }
      return together(last);
    },
    onSettled: () => changed(tenant, 'keys'),
    onSuccess: ({ data }) => {
      if (data.every(({ outcome }) => outcome === 'revoked' || outcome === 'already_revoked')) onDone();
    },
  });
  const shown = revoke.data ?? preview.data;
  const count = preview.data?.revoked ?? 0;
  const total = common.total(count, preview.data?.has_more === true);
  return (
    <Ask
      title={isFilter ? text.revokeAllTitle(total) : text.previewTitle(count)}
      onClose={revoke.isPending ? undefined : onClose}
      actions={
        revoke.isSuccess ? (
          <Button onPress={onDone}>{common.close}</Button>
        ) : (
          <>
            <Button onPress={onClose} isPending={revoke.isPending}>
              {common.cancel}
            </Button>
            <Button
              tone="danger"
              onPress={() => revoke.mutate()}
              isPending={revoke.isPending}
              disabledReason={count === 0 ? text.loadingPreview : undefined}
            >
              {isFilter ? text.revokeAll(total) : text.revokeSeveral(count)}
            </Button>
          </>
        )
      }
    >
      <p>{isFilter ? text.revokeAllSays : text.previewSays}</p>
      {preview.isError ? <Problem error={preview.error} /> : null}
      {revoke.isError ? <Problem error={revoke.error} /> : null}
      {soFar > 0 ? <p role="status">{text.revokedSoFar(soFar)}</p> : null}
      {shown !== undefined && shown.data.length > MOST_SHOWN ? <Small>{text.firstOf(MOST_SHOWN)}</Small> : null}
      {shown === undefined ? (
        <Small>{text.loadingPreview}</Small>
      ) : (
        <ul className={styles.preview} aria-label={text.outcome}>
          {shown.data.slice(0, MOST_SHOWN).map(({ id, outcome, key, detail }) => (
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

function together(parts: readonly ApiKeyRevocations[]): Pick<ApiKeyRevocations, 'revoked' | 'has_more' | 'data'> {
  return {
    revoked: parts.reduce((sum, { revoked }) => sum + revoked, 0),
    has_more: parts.some((part) => part.has_more),
    data: parts.flatMap(({ data }) => data),
  };
}
