/** Updates a key. Sends only changed members, with the ETag. The secret stays. */

import { useQueryClient } from '@tanstack/react-query';
import type { ApiKey } from '../../../../client/index.ts';
import { type Tagged, useEdit } from '../../api/edit.ts';
import { nameOf } from '../../api/principal.tsx';
import { useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { keys as text } from '../../text/en/keys.ts';
import { Drawer } from '../../ui/overlay.tsx';
import { SaveBar } from '../../ui/save-bar.tsx';
import { useNow } from '../../ui/time.tsx';
import { fieldsOf, type KeyFields, KeyForm, membersOf, missingOf } from './fields.tsx';
import styles from './keys.module.css';
import { ProofFields } from './proof-fields.tsx';
import { keysChanged, readKey } from './queries.ts';
import type { KeyEdit } from './search.ts';

const FORM = 'edit-key';

interface EditKeyProps {
  readonly loaded: Tagged<ApiKey>;
  /** proof: only the tokens that prove the key. */
  readonly part: KeyEdit;
  readonly onClose: () => void;
}

export function EditKey({ loaded, part, onClose }: EditKeyProps) {
  const tenant = useTenant();
  const queries = useQueryClient();
  const now = useNow();
  const { id } = loaded.data;
  const edit = useEdit<ApiKey, KeyFields>({
    form: `key ${id}`,
    loaded,
    fieldsOf,
    read: () => readKey(tenant, id),
    write: async (changes, ifMatch) => {
      const body = membersOf(changes);
      const { data, etag } = await tenant.client.send('PUT', '/v1/iam/api-keys/{id}', { path: { id }, body, ifMatch });
      return { data, etag };
    },
    onSaved: () => void keysChanged(queries, tenant.id, id),
  });
  const { draft, set, error } = edit;
  const missing = edit.isChanged ? missingOf(draft, now) : common.noChange;
  const name = nameOf(loaded.data);
  return (
    <Drawer
      title={part === 'proof' ? text.editProofOf(name) : text.editOf(name)}
      onClose={onClose}
      foot={<SaveBar work={edit} form={FORM} action={common.save} disabledReason={missing} onClose={onClose} />}
    >
      <form
        noValidate
        id={FORM}
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (missing === undefined) edit.save();
        }}
      >
        {part === 'proof' && draft.proof !== undefined ? (
          <ProofFields proof={draft.proof} onChange={(proof) => set({ proof })} error={error} />
        ) : (
          <KeyForm draft={draft} set={set} error={error} kept={edit.base.expires_at} />
        )}
      </form>
    </Drawer>
  );
}
