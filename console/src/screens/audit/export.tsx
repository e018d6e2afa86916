/** Saves what the filters select, as the server streams it. */

import { useState } from 'react';
import { useTenant } from '../../api/session.ts';
import { audit as text } from '../../text/en/audit.ts';
import buttonStyles from '../../ui/button.module.css';
import { Icon } from '../../ui/icon.tsx';
import { Menu } from '../../ui/overlay.tsx';
import { Problem } from '../../ui/problem.tsx';
import { saveAs } from '../../ui/save.ts';
import type { AuditQuery } from './audit.tsx';

const TYPES = { csv: 'text/csv', ndjson: 'application/x-ndjson' } as const;
type Format = keyof typeof TYPES;

export function Export({ query }: { readonly query: AuditQuery }) {
  const { id, client } = useTenant();
  const [isRunning, setRunning] = useState(false);
  const [error, setError] = useState<unknown>();
  const save = async (format: Format): Promise<void> => {
    setRunning(true);
    setError(undefined);
    try {
      const answer = await client.stream('GET', '/v1/iam/audit', { query, accept: TYPES[format] });
      saveAs(`audit-${id}.${format}`, await answer.blob());
    } catch (reason) {
      setError(reason);
    } finally {
      setRunning(false);
    }
  };
  return (
    <>
      {error === undefined ? null : <Problem error={error} />}
      <Menu
        label={text.exportAs}
        className={buttonStyles.button}
        choices={[
          { id: 'csv', label: text.asCsv, onChoose: () => void save('csv') },
          { id: 'ndjson', label: text.asNdjson, onChoose: () => void save('ndjson') },
        ]}
      >
        <Icon name="export" />
        {isRunning ? text.exporting : text.exportAs}
      </Menu>
    </>
  );
}
