/** Saves what the filters select, as the server streams it. */

import { useMutation } from '@tanstack/react-query';
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
  const save = useMutation({
    mutationFn: async (format: Format) => {
      const answer = await client.stream('GET', '/v1/iam/audit', { query, accept: TYPES[format] });
      saveAs(`audit-${id}.${format}`, await answer.blob());
    },
  });
  const disabledReason = save.isPending ? text.exporting : undefined;
  return (
    <>
      {save.isError ? <Problem error={save.error} /> : null}
      <Menu
        label={text.exportAs}
        className={buttonStyles.button}
        choices={[
          { id: 'csv', label: text.asCsv, disabledReason, onChoose: () => save.mutate('csv') },
          { id: 'ndjson', label: text.asNdjson, disabledReason, onChoose: () => save.mutate('ndjson') },
        ]}
      >
        <Icon name="export" />
        {save.isPending ? text.exporting : text.exportAs}
      </Menu>
    </>
  );
}
