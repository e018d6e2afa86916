/** The question before a key is disabled or enabled. */

import type { ApiKey } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { nameOf } from '../../api/principal.tsx';
import { useTenant } from '../../api/session.ts';
import { keys as text } from '../../text/en/keys.ts';
import { Confirm } from '../../ui/confirm.tsx';

interface SwitchKeyProps {
  readonly apiKey: ApiKey;
  readonly action: 'disable' | 'enable';
  readonly onClose: () => void;
}

export function SwitchKey({ apiKey, action, onClose }: SwitchKeyProps) {
  const { id: tenant, client } = useTenant();
  const { id } = apiKey;
  const isDisabling = action === 'disable';
  return (
    <Confirm
      title={isDisabling ? text.disableTitle(nameOf(apiKey)) : text.enableTitle(nameOf(apiKey))}
      action={isDisabling ? text.disable : text.enable}
      tone={isDisabling ? 'danger' : 'primary'}
      perform={() => client.request('POST', `/v1/iam/api-keys/{id}/${action}`, { path: { id } })}
      onClose={onClose}
      onDone={() => changed(tenant, 'keys', id)}
    >
      <p>{isDisabling ? text.disableSays : text.enableSays}</p>
    </Confirm>
  );
}
