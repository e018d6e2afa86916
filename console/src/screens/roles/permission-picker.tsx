/** Chooses permission patterns: the known ones by name or meaning, and any other that is typed. Says what the choice covers. */

import { useState } from 'react';
import { type Catalog, useCatalog } from '../../api/catalog.ts';
import { covered, coversAny, hasWildcard, isPattern } from '../../api/permissions.ts';
import { permissions as words } from '../../text/en/permissions.ts';
import { roles as text } from '../../text/en/roles.ts';
import { Tags } from '../../ui/mark.tsx';
import { type PickItem, PickList } from '../../ui/pick-list.tsx';

interface PermissionPickerProps {
  readonly label: string;
  readonly selected: readonly string[];
  readonly onChange: (patterns: readonly string[]) => void;
  readonly error?: string | undefined;
  readonly isReadOnly?: boolean;
}

const SHOWN = 60;

export function PermissionPicker({ label, selected, onChange, error, isReadOnly = false }: PermissionPickerProps) {
  const catalog = useCatalog();
  const [typed, setTyped] = useState('');
  const q = typed.trim().toLowerCase();
  const found = choices(catalog).filter((pattern) => `${pattern} ${catalog.meaning(pattern)}`.toLowerCase().includes(q));
  const isOwn = q !== '' && isPattern(q) && !found.includes(q);
  const items = (isOwn ? [q, ...found] : found).map((pattern) => itemOf(pattern, selected, catalog, isOwn && pattern === q));
  const all = covered(selected, catalog.known);
  const isMalformed = q !== '' && items.length === 0 && !isPattern(q);
  return (
    <PickList
      label={label}
      placeholder={text.pick}
      typed={typed}
      onType={setTyped}
      items={items}
      selected={selected}
      onChange={onChange}
      empty={text.noPermission}
      error={isMalformed ? words.notAPattern : error}
      isReadOnly={isReadOnly}
      below={
        selected.length === 0 ? undefined : (
          <>
            {words.covers(all.length)} <Tags values={all} atMost={SHOWN} />
          </>
        )
      }
    />
  );
}

/** The known permissions, each resource after the wildcard that covers all of it. */
function choices({ known }: Catalog): readonly string[] {
  const resources = [...new Set(known.map((permission) => permission.split(':')[0] ?? ''))];
  return [
    ...resources.flatMap((resource) => {
      const own = known.filter((permission) => permission.startsWith(`${resource}:`));
      return own.length > 1 ? [`${resource}:*`, ...own] : own;
    }),
    '*:read',
    '*:write',
    '*',
  ];
}

function itemOf(pattern: string, selected: readonly string[], { known, meaning }: Catalog, isOwn: boolean): PickItem {
  const by = selected.find((other) => other !== pattern && coversAny([other], pattern));
  const isCovered = by !== undefined && !selected.includes(pattern);
  const n = covered([pattern], known).length;
  return {
    id: pattern,
    says: isOwn ? text.addPattern : meaning(pattern),
    isCovered,
    end: isCovered ? words.within(by) : hasWildcard(pattern) ? words.actions(n) : undefined,
  };
}
