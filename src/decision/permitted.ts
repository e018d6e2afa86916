/** Lines 12 to 14: what policies deny, and what grants and allow policies permit. */

import type { RoleName } from '../domain/ids.ts';
import { type BuiltinRoles, effectiveRoles } from './builtin-roles.ts';
import { conditionInputs } from './conditions.ts';
import { type Grant, grantCoversPermission, grantCoversResources } from './grants.ts';
import { ruleWork } from './limits.ts';
import type { Permission, Principal, Resource, TenantView } from './model.ts';
import { ADMIN_TENANTS } from './permissions.ts';
import { allowing, denying, type Policy, type PolicyQuery, type PolicySet } from './policies.ts';
import { isPlatformAdmin } from './tenant.ts';

/** Everything that lines 12 to 14 look at. */
export interface AccessQuery extends PolicyQuery {
  readonly principal: Principal;
  readonly own: TenantView;
  readonly builtinRoles: BuiltinRoles;
  /** The policies of the effective tenant; undefined where they do not bind. */
  readonly tenantPolicies: PolicySet | undefined;
  readonly globalPolicies: PolicySet;
}

export interface ConsideredGrant {
  readonly kind: 'role' | 'owner_role' | 'scopes';
  /** The role's name; undefined for scopes. */
  readonly name: RoleName | undefined;
  readonly grant: Grant;
  readonly coversPermission: boolean;
  readonly coversResources: boolean;
}

/** What an explanation wants to know beside the decision. */
export interface Trace {
  query?: AccessQuery;
  readonly grants: ConsideredGrant[];
}

export interface AccessQueryParts {
  readonly principal: Principal;
  readonly permissions: readonly Permission[];
  readonly resources: readonly Resource[];
  readonly own: TenantView;
  readonly effective: TenantView;
  /** False where the effective tenant's policies do not bind the principal. */
  readonly tenantPoliciesApply: boolean;
  readonly global: PolicySet;
  readonly builtinRoles: BuiltinRoles;
  readonly clientAddress: string | undefined;
  readonly nowMs: number;
}

export function accessQuery(parts: AccessQueryParts): AccessQuery {
  const { principal, own, effective } = parts;
  const now = conditionInputs(parts.nowMs, parts.clientAddress, effective.settings.timezone);
  return {
    principal,
    permissions: parts.permissions,
    resources: parts.resources,
    roles: effectiveRoles(principal),
    inOwnTenant: own.id === effective.id,
    now,
    work: ruleWork(),
    own,
    builtinRoles: parts.builtinRoles,
    tenantPolicies: parts.tenantPoliciesApply ? effective.policies : undefined,
    globalPolicies: parts.global,
  };
}

/** Reports whether the rules and the request were too much to hold against each other: the decision must then be a denial. */
export function isSpent(query: AccessQuery): boolean {
  return query.work.left < 0;
}

/** Step 12, deny policies: the deny to report, global ones first, then by name. */
export function denied(query: AccessQuery): Policy | undefined {
  return denying(query.globalPolicies, query) ?? (query.tenantPolicies && denying(query.tenantPolicies, query));
}

/** How far one side (a user's roles, a key's scopes, its owner's roles) comes. */
export type Coverage = 'no_permission' | 'no_resources' | 'permitted';

function coverageOf(
  kind: ConsideredGrant['kind'],
  name: RoleName | undefined,
  grant: Grant,
  query: AccessQuery,
  trace?: Trace,
): Coverage {
  const coversPermission = grantCoversPermission(grant, grantable(query));
  // What only an explanation looks at is no work of the decision, which stays the same.
  const work = coversPermission ? query.work : ruleWork();
  const coversResources =
    (coversPermission || trace !== undefined) && grantCoversResources(grant, query.resources, work);
  trace?.grants.push({ kind, name, grant, coversPermission, coversResources });
  if (!coversPermission) return 'no_permission';
  return coversResources ? 'permitted' : 'no_resources';
}

/** The permissions that a grant may cover at all: managing tenants is for platform administrators alone. */
function grantable(query: AccessQuery): readonly Permission[] {
  for (const permission of query.permissions) {
    if (permission.text === ADMIN_TENANTS && !isPlatformAdmin(query.principal)) {
      return query.permissions.filter((one) => one !== permission);
    }
  }
  return query.permissions;
}

function allowedByPolicy(query: AccessQuery): boolean {
  const permissions = grantable(query);
  if (permissions.length === 0) return false;
  const narrowed = permissions === query.permissions ? query : { ...query, permissions };
  if (allowing(query.globalPolicies, narrowed) !== undefined) return true;
  return query.tenantPolicies !== undefined && allowing(query.tenantPolicies, narrowed) !== undefined;
}

/** The same question for what only an explanation looks at. */
function unspent(query: AccessQuery): AccessQuery {
  return { ...query, work: ruleWork() };
}

/** One role that covers everything, or one allow policy that does; they do not add up. */
function coverageOfRoles(kind: 'role' | 'owner_role', query: AccessQuery, trace?: Trace): Coverage {
  let best: Coverage = 'no_permission';
  for (const role of query.roles) {
    const grant = query.builtinRoles.grantOf(role, query.own);
    const considered: AccessQuery = best === 'permitted' ? unspent(query) : query;
    const reached: Coverage = grant === undefined ? 'no_permission' : coverageOf(kind, role, grant, considered, trace);
    if (reached === 'permitted' && trace === undefined) return reached;
    if (reached !== 'no_permission' && best !== 'permitted') best = reached;
  }
  return best === 'permitted' || allowedByPolicy(query) ? 'permitted' : best;
}

/** Lines 13 and 14. A key reaches no further than its scopes, nor than its owner does now; policies serve the owner's side only. */
export function permitted(query: AccessQuery, trace?: Trace): Coverage {
  const { principal } = query;
  if (principal.kind === 'user') return coverageOfRoles('role', query, trace);
  const scopes = coverageOf('scopes', undefined, principal.grant, query, trace);
  if (principal.owner === undefined || (scopes === 'no_permission' && trace === undefined)) return scopes;
  const owner = coverageOfRoles('owner_role', scopes === 'no_permission' ? unspent(query) : query, trace);
  if (scopes === 'no_permission' || owner === 'no_permission') return 'no_permission';
  return scopes === 'permitted' ? owner : scopes;
}
