/** The permissions of the platform's routes, by which the scopes of a key are compared with its recorded uses. */

import type { Permission } from '../../decision/model.ts';
import { coveringPatterns } from '../../decision/permissions.ts';
import type { RouteTable } from '../../decision/routes.ts';
import { catalogOf } from '../permissions/catalog.ts';

/** Days without a recorded use after which a permission counts as unused. */
export const UNUSED_DAYS = 30;

export interface PlatformPermission {
  readonly permission: Permission;
  /** The patterns that cover it. */
  readonly patterns: readonly string[];
  /**
   * The recorded permissions that count as its use. A decision records the first permission of its route, also if the
   * second one was enough.
   */
  readonly recorded: readonly string[];
}

const known = new WeakMap<RouteTable, readonly PlatformPermission[]>();

/** Returns the permissions by text. Gates record no requests to the management API, so its permissions are not among them. */
export function platformPermissions(table: RouteTable): readonly PlatformPermission[] {
  const found = known.get(table) ?? listed(table);
  known.set(table, found);
  return found;
}

function listed(table: RouteTable): readonly PlatformPermission[] {
  const recorded = new Map<string, Set<string>>();
  for (const { permissions } of table.routes) {
    for (const { text } of permissions) {
      const names = recorded.get(text) ?? new Set();
      recorded.set(text, names.add(permissions[0].text));
    }
  }
  return catalogOf(table).permissions.flatMap((permission) => {
    const names = recorded.get(permission.text);
    return names === undefined ? [] : [{ permission, patterns: coveringPatterns(permission), recorded: [...names] }];
  });
}
