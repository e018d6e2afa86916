/** Reads roles. A list has the built-in roles and the tenant's own, by name. */

import type { BuiltinRoles } from '../../decision/builtin-roles.ts';
import { parseRoleName, type RoleName } from '../../domain/ids.ts';
import { present } from '../../domain/objects.ts';
import type { Page, PageRows } from '../../store/paging.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { orNotFound } from '../caller/refusals.ts';
import { filterOf, type List, type ListQuery, paged, scopeOf } from '../list/list.ts';
import { countMatching, fetchMatching, type Matching } from '../list/matching.ts';
import type { CatalogParts } from '../permissions/catalog.ts';
import { type TenantFindings, tenantFindings } from '../permissions/findings.ts';
import { type Noticed, noticedRole } from '../permissions/notices.ts';
import { builtinResource, type RoleResource, type RoleRow, roleResource } from './entity.ts';
import { countRoles, findRole, listRoles, type RoleFilter } from './queries.ts';

interface RoleListQuery extends ListQuery, RoleFilter {
  readonly builtin?: boolean;
  readonly notices?: true;
}

const NONE: PageRows<RoleRow> = { rows: [], more: false };

export async function listRolesPage(
  parts: AdminParts & CatalogParts,
  caller: Caller,
  query: RoleListQuery,
): Promise<List<RoleResource & Noticed>> {
  const { builtin, notices, ...filter } = filterOf(query);
  const findings = await tenantFindings(parts, caller);
  if (notices === true) return noticedPage(parts, caller, query, findings);
  return paged(
    caller,
    'roles',
    query,
    async (page) => {
      const own = builtin === true ? NONE : await listRoles(parts.db.knex, scopeOf(caller), filter, page);
      const builtins = builtin === false ? [] : builtinsAfter(caller.snapshot.builtinRoles, filter, page);
      return { rows: merged(builtins, own.rows.map(roleResource), own.more).slice(0, page.take), more: own.more };
    },
    position,
    (role) => noticedRole(parts, role, findings),
    async (most) => {
      const own = builtin === true ? 0 : await countRoles(parts.db.knex, scopeOf(caller), filter, most);
      return own + (builtin === false ? 0 : builtinsWith(caller.snapshot.builtinRoles, filter).length);
    },
  );
}

/** Lists the roles that have a notice. No built-in role has one. */
function noticedPage(
  parts: AdminParts & CatalogParts,
  caller: Caller,
  query: RoleListQuery,
  findings: TenantFindings,
): Promise<List<RoleResource & Noticed>> {
  const scope = scopeOf(caller);
  const filter: RoleFilter = present({ q: query.q });
  const show = (role: RoleRow) => noticedRole(parts, roleResource(role), findings);
  const list: Matching<RoleRow> = {
    fetch: async (page) => (query.builtin === true ? NONE : listRoles(parts.db.knex, scope, filter, page)),
    matches: (role) => show(role).notices !== undefined,
    position: (role) => [role.name, role.tenant_id],
  };
  // The roles of one tenant are bounded.
  const mostExamined = scope.kind === 'one' ? Number.POSITIVE_INFINITY : undefined;
  const count = (most: number) => countMatching(list, most, mostExamined);
  return paged(caller, 'roles', query, (page) => fetchMatching(list, page), list.position, show, count);
}

/** @throws Refusal `not_found` */
export async function getRole(
  parts: AdminParts & CatalogParts,
  caller: Caller,
  text: string,
): Promise<RoleResource & Noticed> {
  const builtin = caller.snapshot.builtinRoles.find(text);
  if (builtin !== undefined) return builtinResource(builtin);
  const role = orNotFound(await findRole(parts.db.knex, caller.tenant, roleNameOf(text)), 'role');
  return noticedRole(parts, roleResource(role), await tenantFindings(parts, caller));
}

/** @throws Refusal `not_found` for any text that cannot be a name */
export function roleNameOf(text: string): RoleName {
  return orNotFound(parseRoleName(text), 'role');
}

function builtinsWith({ list }: BuiltinRoles, { q }: RoleFilter): readonly RoleResource[] {
  const needle = q?.toLowerCase();
  return list
    .map(builtinResource)
    .filter((role) => needle === undefined || `${role.name}\n${role.description}`.toLowerCase().includes(needle));
}

function builtinsAfter(builtinRoles: BuiltinRoles, filter: RoleFilter, page: Page): readonly RoleResource[] {
  const name = page.after?.[0];
  const roles = builtinsWith(builtinRoles, filter);
  return name === undefined ? roles : roles.filter((role) => role.name > name);
}

/** Merges by position. If the page is not the last, built-in roles after its last row belong to the next page. */
function merged(
  builtins: readonly RoleResource[],
  own: readonly RoleResource[],
  more: boolean,
): readonly RoleResource[] {
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
