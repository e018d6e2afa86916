/**
 * Chooses permission patterns: the known ones by name or meaning, and any other that is typed. Says what the choice
 * covers.
 */

import { useState } from 'react';
import { type Catalog, useCatalog } from '../../api/catalog.ts';
import { covered, coversAny, hasWildcard, isPattern, unneeded } from '../../api/permissions.ts';
import { common } from '../../text/en/common.ts';
import { permissions as words } from '../../text/en/permissions.ts';
import { roles as text } from '../../text/en/roles.ts';
import { Note, Tags } from '../../ui/mark.tsx';
import { type PickItem, PickList } from '../../ui/pick-list.tsx';
import { Problem } from '../../ui/problem.tsx';
import styles from './permission-picker.module.css';

interface PermissionPickerProps {
  readonly label: string;
  readonly selected: readonly string[];
  readonly onChange: (patterns: readonly string[]) => void;
  readonly error?: string | undefined;
  /** Shown while nothing is chosen. */
  readonly hint?: string;
  readonly isReadOnly?: boolean;
  /** Patterns that a notice lists as matching no permission. */
  readonly noted?: readonly string[];
}

const SHOWN = 60;

export function PermissionPicker({
  label,
  selected,
  onChange,
  error,
  hint,
  isReadOnly = false,
  noted = [],
}: PermissionPickerProps) {
  const catalog = useCatalog();
  const [typed, setTyped] = useState('');
  const q = typed.trim().toLowerCase();
  const found = choices(catalog).filter((pattern) =>
    `${pattern} ${catalog.meaning(pattern)}`.toLowerCase().includes(q),
  );
  const isOwn = q !== '' && isPattern(q) && !found.includes(q);
  const items = (isOwn ? [q, ...found] : found).map((pattern) =>
    itemOf(pattern, selected, catalog, isOwn && pattern === q),
  );
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
      empty={catalog.isLoading ? common.loading : text.noPermission}
      error={isMalformed ? words.notAPattern : error}
      isReadOnly={isReadOnly}
      below={<Below patterns={selected} noted={noted} catalog={catalog} hint={hint} />}
    />
  );
}

interface BelowProps {
  readonly patterns: readonly string[];
  readonly noted: readonly string[];
  readonly catalog: Catalog;
  readonly hint: string | undefined;
}

/** The permissions that the chosen patterns cover, and the patterns that cover none. */
function Below({ patterns, noted, catalog, hint }: BelowProps) {
  const { known, isPart, isLoading, failure } = catalog;
  if (failure !== undefined) return <Problem error={failure.error} onRetry={failure.retry} />;
  if (isLoading) return null;
  if (patterns.length === 0) return hint;
  const all = covered(patterns, known);
  const idle = isPart ? [] : unneeded(patterns, known).filter((pattern) => !noted.includes(pattern));
  return (
    <>
      {words.covers(all.length, isPart)} <Tags values={all} atMost={SHOWN} />
      {idle.length === 0 ? null : (
        <div className={styles.unneeded}>
          <Note tone="care">{words.unneeded(idle)}</Note>
        </div>
      )}
    </>
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

function itemOf(
  pattern: string,
  selected: readonly string[],
  { known, isPart, meaning }: Catalog,
  isOwn: boolean,
): PickItem {
  const by = selected.find((other) => other !== pattern && coversAny([other], pattern));
  const isCovered = by !== undefined && !selected.includes(pattern);
  const n = covered([pattern], known).length;
  return {
    id: pattern,
    says: isOwn ? text.addPattern : meaning(pattern),
    isCovered,
    end: isCovered ? words.within(by) : hasWildcard(pattern) ? words.actions(n, isPart) : undefined,
  };
}
