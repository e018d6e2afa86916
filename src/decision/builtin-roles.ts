/**
 * The permissions of the built-in roles. `tenant-admin` holds `<resource>:*` for every resource that the route table names, and the
 * configuration adds routes: so its permissions belong to the configuration of the process, which names its routes once, when it starts.
 */

import { BUILTIN_ROLES, type BuiltinRole, TENANT_ADMIN } from '../domain/roles.ts';
import { BUILTIN_ROUTES } from './builtin-routes.ts';
import { compileGrant } from './compile.ts';
import type { Grant } from './grants.ts';
import type { Route } from './model.ts';

let roles: readonly BuiltinRole[] = [];
let grants: ReadonlyMap<string, Grant> = new Map();

nameRoutes(BUILTIN_ROUTES);

/** Takes note of the route table. To be called before the first decision. */
export function nameRoutes(routes: readonly Route[]): void {
  const resources = routes.flatMap(({ permissions }) => permissions.map(({ anyAction }) => anyAction));
  roles = BUILTIN_ROLES.map((role) =>
    role.name === TENANT_ADMIN ? { ...role, permissions: [...new Set([...role.permissions, ...resources])] } : role,
  );
  grants = new Map(roles.map((role) => [role.name, compileGrant(role.permissions, {})]));
}

export function builtinRoles(): readonly BuiltinRole[] {
  return roles;
}

/** Returns the grant of a built-in role; undefined for any other name. */
export function builtinGrant(name: string): Grant | undefined {
  return grants.get(name);
}
