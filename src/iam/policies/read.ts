/** Reads policies. A list has the tenant's policies and the global ones, by name. */

import { type PolicyName, parsePolicyName, parseRoleName, type RoleName, type TenantId } from '../../domain/ids.ts';
import { isBuiltinRole } from '../../domain/roles.ts';
import type { Page } from '../../store/paging.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { notFound, orNotFound } from '../caller/refusals.ts';
import { filterOf, type List, type ListQuery, paged, scopeOf } from '../list/list.ts';
import { countMatching, fetchMatching, type Matching } from '../list/matching.ts';
import type { CatalogParts } from '../permissions/catalog.ts';
import { tenantFindings } from '../permissions/findings.ts';
import { type Noticed, noticedPolicy } from '../permissions/notices.ts';
import { findRole } from '../roles/queries.ts';
import { type PolicyFilter, type PolicyResource, type PolicyRow, policyResource } from './entity.ts';
import { countPolicies, countPoliciesOfRole, findPolicy, listPolicies, policiesOfRole } from './queries.ts';

interface PolicyListQuery extends ListQuery, PolicyFilter {
  readonly notices?: true;
}

export async function listPoliciesPage(
  parts: AdminParts & CatalogParts,
  caller: Caller,
  query: PolicyListQuery,
): Promise<List<PolicyResource & Noticed>> {
  const { notices, ...filter } = filterOf(query);
  const scope = scopeOf(caller);
  const findings = await tenantFindings(parts, caller);
  const show = (policy: PolicyRow) => noticedPolicy(parts, policyResource(policy), findings);
  const list: Matching<PolicyRow> = {
    fetch: (page) => listPolicies(parts.db.knex, scope, filter, page),
    matches: (policy) => show(policy).notices !== undefined,
    position: (policy) => [policy.name, policy.tenant_id ?? ''],
  };
  if (notices === true) {
    const fetch = (page: Page) => fetchMatching(list, page);
    // The policies of one tenant are bounded.
    const mostExamined = scope.kind === 'one' ? Number.POSITIVE_INFINITY : undefined;
    const count = (most: number) => countMatching(list, most, mostExamined);
    return paged(caller, 'policies', query, fetch, list.position, show, count);
  }
  const count = (most: number) => countPolicies(parts.db.knex, scope, filter, most);
  return paged(caller, 'policies', query, list.fetch, list.position, show, count);
}

/** @throws Refusal `not_found` */
export async function getPolicy(
  parts: AdminParts & CatalogParts,
  caller: Caller,
  text: string,
): Promise<PolicyResource & Noticed> {
  const policy = orNotFound(await findPolicy(parts.db.knex, caller.tenant, policyNameOf(text)), 'policy');
  return noticedPolicy(parts, policyResource(policy), await tenantFindings(parts, caller));
}

export async function listRolePoliciesPage(
  parts: AdminParts & CatalogParts,
  caller: Caller,
  text: string,
  query: ListQuery,
): Promise<List<PolicyResource & Noticed>> {
  const role = await existingRole(parts.db.knex, caller.tenant, text);
  const findings = await tenantFindings(parts, caller);
  return paged(
    caller,
    `policies of ${role}`,
    query,
    (page) => policiesOfRole(parts.db.knex, caller.tenant, role, page),
    (policy) => [policy.name],
    (policy) => noticedPolicy(parts, policyResource(policy), findings),
    (most) => countPoliciesOfRole(parts.db.knex, caller.tenant, role, most),
  );
}

/** @throws Refusal `not_found` */
export async function existingRole(q: Queryable, tenant: TenantId, text: string): Promise<RoleName> {
  const name = orNotFound(parseRoleName(text), 'role');
  if (!isBuiltinRole(name) && (await findRole(q, tenant, name)) === undefined) throw notFound('role');
  return name;
}

/** @throws Refusal `not_found` for any text that cannot be a name */
export function policyNameOf(text: string): PolicyName {
  return orNotFound(parsePolicyName(text), 'policy');
}
