/** Creates a key, and shows its secret once. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { IssuedApiKey } from '../../../../client/index.ts';
import { useDenied, useMe, useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { keys as text } from '../../text/en/keys.ts';
import { Button } from '../../ui/button.tsx';
import { Small } from '../../ui/mark.tsx';
import { Drawer } from '../../ui/overlay.tsx';
import { fieldError, Problem } from '../../ui/problem.tsx';
import { useNow } from '../../ui/time.tsx';
import { SubjectField } from '../explain/subject-field.tsx';
import { isShownAtField, KeyForm, membersOf, missingOf, NEW_KEY } from './fields.tsx';
import styles from './keys.module.css';
import { keysChanged } from './queries.ts';

const FORM = 'create-key';

interface CreateKeyProps {
  readonly onClose: () => void;
  readonly onCreated: (issued: IssuedApiKey) => void;
}

export function CreateKey({ onClose, onCreated }: CreateKeyProps) {
  const { id: tenant, client } = useTenant();
  const queries = useQueryClient();
  const me = useMe();
  const now = useNow();
  // Without the right to manage keys a user makes keys of its own.
  const isManager = useDenied('admin:keys') === undefined;
  const [draft, setDraft] = useState(NEW_KEY);
  const [owner, setOwner] = useState<string | undefined>();
  const create = useMutation({
    mutationFn: () => {
      const { description, scopes } = draft;
      return client.apiKeys.create({
        ...membersOf(draft),
        description,
        scopes,
        user_id: isManager ? (owner ?? null) : me.id,
      });
    },
    onSuccess: async (issued) => {
      onCreated(issued);
      await keysChanged(queries, tenant);
    },
  });
  const missing = missingOf(draft, now);
  return (
    <Drawer
      title={text.create}
      onClose={onClose}
      foot={
        <>
          <Button tone="quiet" onPress={onClose}>
            {common.cancel}
          </Button>
          <Button tone="primary" type="submit" form={FORM} disabledReason={missing} isPending={create.isPending}>
            {text.creating}
          </Button>
        </>
      }
    >
      <form
        noValidate
        id={FORM}
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (missing === undefined) create.mutate();
        }}
      >
        {create.isError && !isShownAtField(create.error) ? <Problem error={create.error} /> : null}
        <KeyForm draft={draft} set={(change) => setDraft((before) => ({ ...before, ...change }))} error={create.error}>
          {isManager ? (
            <div className={styles.group}>
              <SubjectField kind="user" id={owner} onChange={setOwner} label={text.owner} isOptional />
              <Small>{fieldError(create.error, '/user_id') ?? text.ownerHint}</Small>
            </div>
          ) : null}
        </KeyForm>
      </form>
    </Drawer>
  );
}
