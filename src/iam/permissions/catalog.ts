/** All permissions that the routes of the platform or the endpoints of management require. */

import { MANAGEMENT_PERMISSIONS } from '../../decision/management.ts';
import { type PermissionCatalog, permissionCatalog } from '../../decision/permission-catalog.ts';
import type { RouteTable } from '../../decision/routes.ts';

export interface CatalogParts {
  readonly routes: RouteTable;
}

const catalogs = new WeakMap<RouteTable, PermissionCatalog>();

/** Returns the same catalog for the same table, because a catalog caches its answers. */
export function catalogOf(routes: RouteTable): PermissionCatalog {
  const known = catalogs.get(routes);
  if (known !== undefined) return known;
  const needed = routes.routes.flatMap((route) => route.permissions.map(({ text }) => text));
  const made = permissionCatalog([...needed, ...MANAGEMENT_PERMISSIONS]);
  catalogs.set(routes, made);
  return made;
}
