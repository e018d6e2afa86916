/** The filters that are set: by a link from elsewhere, or by a row. */

import { audit as text } from '../../text/en/audit.ts';
import { Chip } from '../../ui/chip.tsx';
import { shortened } from '../../ui/mark.tsx';
import type { AuditSearch } from './search.ts';

const FILTERS = ['actor', 'action', 'from', 'to'] as const;

interface FiltersProps {
  readonly search: AuditSearch;
  readonly onChange: (change: Partial<AuditSearch>) => void;
}

export function Filters({ search, onChange }: FiltersProps) {
  return (
    <>
      {FILTERS.flatMap((name) => {
        const value = search[name];
        if (value === undefined) return [];
        return [
          <Chip key={name} label={text.clear(text.filterOf[name])} onRemove={() => onChange({ [name]: undefined })}>
            {`${text.filterOf[name]} ${name === 'actor' ? shortened(value) : value}`}
          </Chip>,
        ];
      })}
    </>
  );
}
