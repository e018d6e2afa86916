import type { UsageRow } from '../../../../client/index.ts';
import { Principal } from '../../api/principal.tsx';
import { usage as text } from '../../text/en/usage.ts';
import { USAGE_GROUPS, type UsageGroup } from './search.ts';
import { TenantLink } from './tenant-link.tsx';

interface Group {
  readonly by: UsageGroup;
  /** Null: the usage belongs to none. */
  readonly value: string | null;
}

/** The group of a row by its own member. Rows of the former grouping stay while the next ones load. */
function groupOf(row: UsageRow): Group | undefined {
  for (const by of USAGE_GROUPS) {
    const value = row[by];
    if (value !== undefined) return { by, value };
  }
  return undefined;
}

/** Returns the id of a row within its list. */
export function groupIdOf(row: UsageRow): string {
  return groupOf(row)?.value ?? '';
}

/** The model, key, user, day or tenant of a row. */
export function GroupName({ row }: { readonly row: UsageRow }) {
  const group = groupOf(row);
  if (group === undefined) return null;
  const { by, value } = group;
  switch (by) {
    case 'key':
      return value === null ? text.none.key : <Principal type="api_key" id={value} name={row.name ?? null} />;
    case 'user':
      return value === null ? text.none.user : <Principal type="user" id={value} name={row.name ?? null} />;
    case 'model':
      return value === null ? text.none.model : <code>{value}</code>;
    case 'tenant':
      return value === null ? null : <TenantLink id={value} name={row.name ?? value} />;
    case 'day':
      return value;
    default:
      return by satisfies never;
  }
}
