/** Gives a key a new secret; the old one works on for as long as is chosen. */

import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { ApiKey, IssuedApiKey } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { nameOf } from '../../api/principal.tsx';
import { useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { keys as text } from '../../text/en/keys.ts';
import { Button } from '../../ui/button.tsx';
import { Segments } from '../../ui/field.tsx';
import { Small } from '../../ui/mark.tsx';
import { Ask } from '../../ui/overlay.tsx';
import { Problem } from '../../ui/problem.tsx';

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
  const rotate = useMutation({
    mutationFn: () => client.apiKeys.rotate(apiKey.id, { grace_seconds: Number(grace) }),
    onSuccess: async (issued) => {
      onRotated(issued);
      await changed(tenant, 'keys', apiKey.id);
    },
  });
  return (
    <Ask
      title={text.rotateTitle(nameOf(apiKey))}
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>{common.cancel}</Button>
          <Button tone="primary" onPress={() => rotate.mutate()} isPending={rotate.isPending}>
            {text.rotate}
          </Button>
        </>
      }
    >
      <p>{text.rotateSays}</p>
      <Segments
        label={text.grace}
        value={grace}
        onChange={setGrace}
        options={GRACES.map((value) => ({ value, label: text.graces[value] }))}
      />
      <Small>{grace === '0' ? text.graceNow : text.graceLater}</Small>
      {rotate.isError ? <Problem error={rotate.error} /> : null}
    </Ask>
  );
}
