/** Gives a key a new secret; the old one works on for as long as is chosen. */

import { useState } from 'react';
import type { ApiKey, IssuedApiKey } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { nameOf } from '../../api/principal.tsx';
import { useTenant } from '../../api/session.ts';
import { keys as text } from '../../text/en/keys.ts';
import { Confirm } from '../../ui/confirm.tsx';
import { Segments } from '../../ui/field.tsx';
import { Small } from '../../ui/mark.tsx';

/** Seconds. */
const GRACES = ['0', '3600', '86400', '604800'] as const;
type Grace = (typeof GRACES)[number];

interface RotateKeyProps {
  readonly apiKey: ApiKey;
  readonly onClose: () => void;
  readonly onRotated: (issued: IssuedApiKey) => void;
}

export function RotateKey({ apiKey, onClose, onRotated }: RotateKeyProps) {
  const { id: tenant, client } = useTenant();
  const [grace, setGrace] = useState<Grace>('3600');
  return (
    <Confirm
      title={text.rotateTitle(nameOf(apiKey))}
      action={text.rotate}
      tone="primary"
      showsSecret
      perform={async () => onRotated(await client.apiKeys.rotate(apiKey.id, { grace_seconds: Number(grace) }))}
      onClose={onClose}
      onDone={() => changed(tenant, 'keys', apiKey.id)}
    >
      <p>{text.rotateSays}</p>
      <Segments
        label={text.grace}
        value={grace}
        onChange={setGrace}
        options={GRACES.map((value) => ({ value, label: text.graces[value] }))}
      />
      <Small>{grace === '0' ? text.graceNow : text.graceLater}</Small>
    </Confirm>
  );
}
