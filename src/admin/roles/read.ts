/** Reading roles: the built-in ones and the tenant's own in one list, by name. */

import { parseRoleName, type RoleName } from '../../domain/ids.ts';
import { BUILTIN_ROLES } from '../../domain/roles.ts';
import { countRoles, findRole, listRoles } from '../../store/queries/roles.ts';
import type { Page } from '../../store/queries/rows.ts';
import type { AdminParts, Caller } from '../caller.ts';
import { type List, type ListQuery, paged, scopeOf } from '../list.ts';
import { notFound } from '../refusals.ts';
import { builtinResource, type RoleResource, roleResource } from './resource.ts';

export async function listRolesPage(parts: AdminParts, caller: Caller, query: ListQuery): Promise<List<RoleResource>> {
  return paged(
    caller,
    'roles',
    query,
    async (page) => {
      const { rows, more } = await listRoles(parts.db.knex, scopeOf(caller), page);
      return { rows: merged(builtinsAfter(page), rows.map(roleResource), more).slice(0, page.take), more };
    },
    position,
    (role) => role,
    async (most) => BUILTIN_ROLES.length + (await countRoles(parts.db.knex, scopeOf(caller), most)),
  );
}

/** @throws Refusal `not_found` */
export async function getRole(parts: AdminParts, caller: Caller, text: string): Promise<RoleResource> {
  const builtin = BUILTIN_ROLES.find((role) => role.name === text);
  if (builtin !== undefined) return builtinResource(builtin);
  const role = await findRole(parts.db.knex, caller.tenant, roleNameOf(text));
  if (role === undefined) throw notFound('role');
  return roleResource(role);
}

/** @throws Refusal `not_found` for any text that cannot be a name */
export function roleNameOf(text: string): RoleName {
  const name = parseRoleName(text);
  if (name === undefined) throw notFound('role');
  return name;
}

function builtinsAfter(page: Page): readonly RoleResource[] {
  const name = page.after?.[0];
  const roles = BUILTIN_ROLES.map(builtinResource);
  return name === undefined ? roles : roles.filter((role) => role.name > name);
}

/** Both by position. Built-in roles behind the last row of a page that has more belong to the next one. */
function merged(builtins: readonly RoleResource[], own: readonly RoleResource[], more: boolean): readonly RoleResource[] {
  const last = more ? own.at(-1) : undefined;
  const before = last === undefined ? builtins : builtins.filter((role) => byPosition(role, last) < 0);
  return [...before, ...own].toSorted(byPosition);
}

function position(role: RoleResource): readonly [string, string] {
  return [role.name, role.tenant_id ?? ''];
}

function byPosition(left: RoleResource, right: RoleResource): number {
  const [leftName, leftTenant] = position(left);
  const [rightName, rightTenant] = position(right);
  if (leftName !== rightName) return leftName < rightName ? -1 : 1;
  return leftTenant < rightTenant ? -1 : leftTenant > rightTenant ? 1 : 0;
}
