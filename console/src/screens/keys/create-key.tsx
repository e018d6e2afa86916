/** Creates a key, and shows its secret once. */

import { useQueryClient } from '@tanstack/react-query';
import type { IssuedApiKey } from '../../../../client/index.ts';
import { useCreation } from '../../api/edit.ts';
import { useDenied, useMe, useTenant } from '../../api/session.ts';
import { keys as text } from '../../text/en/keys.ts';
import { Small } from '../../ui/mark.tsx';
import { Drawer } from '../../ui/overlay.tsx';
import { fieldError } from '../../ui/problem.tsx';
import { SaveBar } from '../../ui/save-bar.tsx';
import { useNow } from '../../ui/time.tsx';
import { SubjectField } from '../explain/subject-field.tsx';
import { type KeyFields, KeyForm, membersOf, missingOf, NEW_KEY } from './fields.tsx';
import styles from './keys.module.css';
import { keysChanged } from './queries.ts';

const FORM = 'create-key';

interface NewKeyFields extends KeyFields {
  /** A user's id. */
  readonly owner: string | undefined;
}

const EMPTY: NewKeyFields = { ...NEW_KEY, owner: undefined };

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
  const create = useCreation({
    form: 'new key',
    start: EMPTY,
    send: ({ owner, ...fields }) => {
      const { description, scopes } = fields;
      return client.apiKeys.create({
        ...membersOf(fields),
        description,
        scopes,
        user_id: isManager ? (owner ?? null) : me.id,
      });
    },
    onCreated: async (issued) => {
      onCreated(issued);
      await keysChanged(queries, tenant);
    },
  });
  const { draft, set, error } = create;
  const missing = missingOf(draft, now);
  return (
    <Drawer
      title={text.create}
      onClose={onClose}
      foot={<SaveBar work={create} form={FORM} action={text.creating} disabledReason={missing} onClose={onClose} />}
    >
      <form
        noValidate
        id={FORM}
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (missing === undefined) create.save();
        }}
      >
        <KeyForm draft={draft} set={set} error={error}>
          {isManager ? (
            <div className={styles.group}>
              <SubjectField
                kind="user"
                id={draft.owner}
                onChange={(owner) => set({ owner })}
                label={text.owner}
                isOptional
              />
              <Small>{fieldError(error, '/user_id') ?? text.ownerHint}</Small>
            </div>
          ) : null}
        </KeyForm>
      </form>
    </Drawer>
  );
}
