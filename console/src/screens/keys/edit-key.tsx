/** Updates a key. Sends only changed members, with the ETag. The secret stays. */

import type { ApiKey } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { type Tagged, useEdit } from '../../api/edit.ts';
import { tagged } from '../../api/one.ts';
import { nameOf } from '../../api/principal.tsx';
import { useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { keys as text } from '../../text/en/keys.ts';
import { DrawerForm } from '../../ui/drawer-form.tsx';
import { useNow } from '../../ui/time.tsx';
import { fieldsOf, type KeyFields, KeyForm, membersOf, missingOf } from './fields.tsx';
import { ProofFields } from './proof-fields.tsx';
import { readKey } from './queries.ts';
import type { KeyEdit } from './search.ts';

interface EditKeyProps {
  readonly loaded: Tagged<ApiKey>;
  /** proof: only the tokens that prove the key. */
  readonly part: KeyEdit;
  readonly onClose: () => void;
}

export function EditKey({ loaded, part, onClose }: EditKeyProps) {
  const tenant = useTenant();
  const now = useNow();
  const { id } = loaded.data;
  const edit = useEdit<ApiKey, KeyFields>({
    form: `key ${id}`,
    loaded,
    fieldsOf,
    read: () => readKey(tenant, id),
    write: (changes, ifMatch) =>
      tagged(tenant.client.send('PUT', '/v1/iam/api-keys/{id}', { path: { id }, body: membersOf(changes), ifMatch })),
    onSaved: () => void changed(tenant.id, 'keys', id),
  });
  const { draft, set, error } = edit;
  const missing = edit.isChanged ? missingOf(draft, now) : common.noChange;
  const name = nameOf(loaded.data);
  return (
    <DrawerForm
      title={part === 'proof' ? text.editProofOf(name) : text.editOf(name)}
      work={edit}
      action={common.save}
      fault={missing}
      onClose={onClose}
      noValidate
    >
      {part === 'proof' && draft.proof !== undefined ? (
        <ProofFields proof={draft.proof} onChange={(proof) => set({ proof })} error={error} />
      ) : (
        <KeyForm draft={draft} set={set} error={error} kept={edit.base.expires_at} />
      )}
    </DrawerForm>
  );
}
