/** The built-in roles of one process, compiled with its route table, and what a role name means in a tenant. */

import type { RoleName } from '../domain/ids.ts';
import { BUILTIN_ROLES, type BuiltinRole, TENANT_ADMIN } from '../domain/roles.ts';
import { compileGrant } from './compile.ts';
import type { Grant } from './grants.ts';
import type { Principal, Route, TenantView } from './model.ts';

const NO_ROLES: readonly RoleName[] = [];

export function effectiveRoles(principal: Principal): readonly RoleName[] {
  return principal.kind === 'user' ? principal.roles : (principal.owner?.roles ?? NO_ROLES);
}

export class BuiltinRoles {
  /** `tenant-admin` has `<resource>:*` for every resource that a route names. */
  readonly list: readonly BuiltinRole[];
  readonly #grants: ReadonlyMap<string, Grant>;
  readonly #existing = new WeakMap<
    readonly RoleName[],
    { readonly own: TenantView; readonly roles: readonly RoleName[] }
  >();

  /** @param routes the route table of the process: the configuration may add routes, and thereby resources */
  constructor(routes: readonly Route[]) {
    const resources = routes.flatMap(({ permissions }) => permissions.map(({ anyAction }) => anyAction));
    this.list = BUILTIN_ROLES.map((role) =>
      role.name === TENANT_ADMIN ? { ...role, permissions: [...new Set([...role.permissions, ...resources])] } : role,
    );
    this.#grants = new Map(this.list.map((role) => [role.name, compileGrant(role.permissions, {})]));
  }

  find(name: string): BuiltinRole | undefined {
    return this.list.find((role) => role.name === name);
  }

  /** Returns the grant of a role of the tenant; undefined if the tenant has no such role. */
  grantOf(role: RoleName, own: TenantView): Grant | undefined {
    return this.#grants.get(role) ?? own.roles.get(role);
  }

  /**
   * Returns the principal's roles that exist in its tenant. A deleted role gives nothing at once, even while users
   * still have rows of it. Equal arguments return the same list, because prepared answers are found by it.
   */
  existingRoles(principal: Principal, own: TenantView): readonly RoleName[] {
    const roles = effectiveRoles(principal);
    if (roles.every((role) => this.grantOf(role, own) !== undefined)) return roles;
    const last = this.#existing.get(roles);
    if (last?.own === own) return last.roles;
    const existing = Object.freeze(roles.filter((role) => this.grantOf(role, own) !== undefined));
    this.#existing.set(roles, { own, roles: existing });
    return existing;
  }
}
