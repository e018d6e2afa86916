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
import { keysChanged, readKey } from './queries.ts';

const FORM = 'edit-key';

export function EditKey({ loaded, onClose }: { readonly loaded: Tagged<ApiKey>; readonly onClose: () => void }) {
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
  return (
    <Drawer
      title={text.editOf(nameOf(loaded.data))}
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
        <KeyForm draft={draft} set={set} error={error} kept={edit.base.expires_at} />
      </form>
    </Drawer>
  );
}
