/**
 * Chooses roles: the typed name first, then a page of the server's list at a time, so that every role can be reached.
 */

import { useState } from 'react';
import type { Role } from '../../../../client/index.ts';
import { coversAny } from '../../api/permissions.ts';
import { useRoles } from '../../api/roles.ts';
import { useMe } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { users as text } from '../../text/en/users.ts';
import { PickList } from '../../ui/pick-list.tsx';
import { Problem } from '../../ui/problem.tsx';
import { useSearchText } from '../../ui/use-search-text.ts';

interface RolePickerProps {
  readonly label: string;
  readonly note?: string;
  readonly error?: string | undefined;
  readonly below?: string | undefined;
  readonly selected: readonly string[];
  readonly onChange: (roles: readonly string[]) => void;
}

export function RolePicker(props: RolePickerProps) {
  const me = useMe();
  const [typed, setTyped] = useState('');
  const list = useRoles(useSearchText(typed));
  if (list.kind === 'failed') return <Problem error={list.error} onRetry={list.retry} />;
  const rows = list.kind === 'loaded' ? list.rows : [];
  return (
    <PickList
      {...props}
      placeholder={text.pickRoles}
      typed={typed}
      onType={setTyped}
      items={rows.map((role) => ({ id: role.name, says: role.description, end: exceeds(role, me.permissions) }))}
      empty={list.kind === 'loading' ? common.loading : text.noRole}
      more={list.kind === 'loaded' ? list.more : undefined}
      isLoadingMore={list.kind === 'loaded' && list.isLoadingMore}
    />
  );
}

/** Returns why the server will probably reject the role. Only the server decides it. */
function exceeds(role: Role, held: readonly string[]): string | undefined {
  return role.permissions.every((pattern) => coversAny(held, pattern)) ? undefined : text.beyondYou;
}
