/** The question before several users are changed: what will happen to each, as the server says before it happens. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Operation } from '../../../../client/index.ts';
import { useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { users as text } from '../../text/en/users.ts';
import { Button } from '../../ui/button.tsx';
import { Small, shortened } from '../../ui/mark.tsx';
import { Ask } from '../../ui/overlay.tsx';
import { Problem } from '../../ui/problem.tsx';
import styles from './change-several.module.css';
import { RolePicker } from './role-picker.tsx';

export const USERS_ACTIONS = ['add_role', 'remove_role', 'deactivate'] as const;
export type UsersAction = (typeof USERS_ACTIONS)[number];

type Body = Operation<'POST', '/v1/iam/users/change'>['body'];

interface ChangeSeveralProps {
  readonly action: UsersAction;
  readonly users: Pick<Body, 'ids' | 'filter'>;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Rows of a preview. */
const MOST_SHOWN = 100;
const CHANGE = '/v1/iam/users/change';

export function ChangeSeveral({ action, users, onClose, onDone }: ChangeSeveralProps) {
  const { id: tenant, client } = useTenant();
  const queries = useQueryClient();
  const [roles, setRoles] = useState<readonly string[]>([]);
  const [soFar, setSoFar] = useState(0);
  const role = roles[0];
  const isReady = action === 'deactivate' || role !== undefined;
  const body: Body = { action, ...(action === 'deactivate' || role === undefined ? {} : { role }), ...users };
  const preview = useQuery({
    queryKey: [tenant, 'users', 'change', body],
    queryFn: ({ signal }) => client.request('POST', CHANGE, { body, query: { dry_run: true }, signal }),
    enabled: isReady,
    gcTime: 0,
  });
  const run = useMutation({
    // One request changes a part of the users that a filter matches.
    mutationFn: async () => {
      for (let changed = 0; ; ) {
        const done = await client.request('POST', CHANGE, { body });
        changed += done.changed;
        setSoFar(changed);
        if (!done.has_more || done.changed === 0) return done;
      }
    },
    onSettled: () => queries.invalidateQueries({ queryKey: [tenant] }),
    onSuccess: ({ data }) => {
      if (data.every(({ outcome }) => outcome === 'changed' || outcome === 'unchanged')) onDone();
    },
  });
  const shown = run.data ?? preview.data;
  const total = common.total(preview.data?.changed ?? 0, preview.data?.has_more === true);
  const waits = preview.data === undefined || preview.data.changed === 0;
  return (
    <Ask
      title={text.several[action]}
      onClose={run.isPending ? undefined : onClose}
      actions={
        run.isSuccess ? (
          <Button onPress={onDone}>{common.close}</Button>
        ) : (
          <>
            <Button onPress={onClose} isPending={run.isPending}>
              {common.cancel}
            </Button>
            <Button
              tone={action === 'deactivate' ? 'danger' : 'primary'}
              onPress={() => run.mutate()}
              isPending={run.isPending}
              disabledReason={isReady ? (waits ? text.severalNone : undefined) : text.severalRole}
            >
              {text.changeSeveral[action](total)}
            </Button>
          </>
        )
      }
    >
      <p>{text.severalSays[action]}</p>
      {action === 'deactivate' ? null : (
        <RolePicker label={text.role} selected={roles} onChange={(chosen) => setRoles(chosen.slice(-1))} />
      )}
      {preview.isError ? <Problem error={preview.error} /> : null}
      {run.isError ? <Problem error={run.error} /> : null}
      {soFar > 0 ? <p role="status">{text.changedSoFar(soFar)}</p> : null}
      {shown === undefined ? null : (
        <ul className={styles.preview} aria-label={text.severalOutcome}>
          {shown.data.slice(0, MOST_SHOWN).map(({ id, outcome, user, detail }) => (
            <li key={id}>
              <span>
                {user?.name ?? shortened(id)} {user?.email ? <Small>{user.email}</Small> : null}
              </span>
              <span>{detail ?? text.severalOutcomes[outcome]}</span>
            </li>
          ))}
        </ul>
      )}
      {shown !== undefined && shown.data.length > MOST_SHOWN ? <Small>{text.firstOf(MOST_SHOWN)}</Small> : null}
    </Ask>
  );
}
