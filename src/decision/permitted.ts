/** Steps 12 to 14: the requests that policies deny, and those that grants and allow policies permit. */

import type { RoleName } from '../domain/ids.ts';
import { type BuiltinRoles, effectiveRoles } from './builtin-roles.ts';
import { conditionInputs } from './conditions.ts';
import { type Grant, grantCoversPermission, grantCoversResources } from './grants.ts';
import { ruleWork } from './limits.ts';
import type { Permission, Principal, Resource, TenantView } from './model.ts';
import { ADMIN_TENANTS, covers } from './permissions.ts';
import {
  allowing,
  type CompiledPolicy,
  denying,
  type PolicyLists,
  type PolicyQuery,
  type PolicySet,
} from './policies.ts';
import { isPlatformAdmin } from './tenant.ts';

export interface AccessQuery extends PolicyQuery {
  readonly principal: Principal;
  readonly own: TenantView;
  readonly builtinRoles: BuiltinRoles;
  /**
   * The permissions that grants and allow policies may give the principal. Only platform administrators manage tenants,
   * and a narrowed session has only the permissions of its scope.
   */
  readonly grantable: readonly Permission[];
  /** The policies of the effective tenant; undefined if they do not apply. */
  readonly tenantPolicies: PolicySet | undefined;
  readonly globalPolicies: PolicySet;
}

export interface ConsideredGrant {
  readonly kind: 'role' | 'owner_role' | 'scopes';
  /** Undefined for scopes. */
  readonly name: RoleName | undefined;
  readonly grant: Grant;
  readonly coversPermission: boolean;
  readonly coversResources: boolean;
}

/** The details that an explanation shows beside the decision. */
export interface Trace {
  query?: AccessQuery;
  readonly grants: ConsideredGrant[];
}

interface AccessQueryParts {
  readonly principal: Principal;
  readonly permissions: readonly Permission[];
  readonly resources: readonly Resource[];
  readonly own: TenantView;
  readonly effective: TenantView;
  /** False if the effective tenant's policies do not apply to the principal. */
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
    grantable: grantable(principal, parts.permissions),
    tenantPolicies: parts.tenantPoliciesApply ? effective.policies : undefined,
    globalPolicies: parts.global,
  };
}

/**
 * Reports whether the comparison of the rules with the request exceeded the work limit: the decision must then be a
 * denial.
 */
export function isSpent(query: AccessQuery): boolean {
  return query.work.left < 0;
}

/** Step 12, deny policies: the deny to report, global ones first, then by name. */
export function denied(query: AccessQuery): CompiledPolicy | undefined {
  return denying(query.globalPolicies, query) ?? (query.tenantPolicies && denying(query.tenantPolicies, query));
}

/** How far one side (a user's roles, a key's scopes, its owner's roles) covers the request. */
type Coverage = 'no_permission' | 'no_resources' | 'permitted';

function coverageOf(
  kind: ConsideredGrant['kind'],
  name: RoleName | undefined,
  grant: Grant,
  query: AccessQuery,
  trace?: Trace,
): Coverage {
  const coversPermission = grantCoversPermission(grant, query.grantable);
  // A comparison for an explanation only does not count as work, so the decision stays the same.
  const work = coversPermission ? query.work : ruleWork();
  const coversResources =
    (coversPermission || trace !== undefined) && grantCoversResources(grant, query.resources, work);
  trace?.grants.push({ kind, name, grant, coversPermission, coversResources });
  if (!coversPermission) return 'no_permission';
  return coversResources ? 'permitted' : 'no_resources';
}

/** Returns the same list if it stays whole, which needs no allocation. */
function grantable(principal: Principal, permissions: readonly Permission[]): readonly Permission[] {
  const { scope } = principal;
  if (scope !== undefined && !scope.all) {
    return permissions.filter((one) => one.text !== ADMIN_TENANTS && covers(scope, one));
  }
  for (const permission of permissions) {
    if (permission.text === ADMIN_TENANTS && !isPlatformAdmin(principal)) {
      return permissions.filter((one) => one !== permission);
    }
  }
  return permissions;
}

/** Returns the first allow that matches, global ones first. */
function allowOf(
  query: AccessQuery,
  global: PolicyLists | undefined,
  tenant: PolicyLists | undefined,
): CompiledPolicy | undefined {
  const { grantable: permissions } = query;
  if (permissions.length === 0) return undefined;
  const narrowed = permissions === query.permissions ? query : { ...query, permissions };
  return (global && allowing(global, narrowed)) ?? (tenant && allowing(tenant, narrowed));
}

function allowedByPolicy(query: AccessQuery): boolean {
  return allowOf(query, query.globalPolicies, query.tenantPolicies) !== undefined;
}

type ReportLists = readonly [global: PolicyLists | undefined, tenant: PolicyLists | undefined];

function reportsOf({ globalPolicies, tenantPolicies }: AccessQuery): ReportLists | undefined {
  const { reports: global } = globalPolicies;
  const tenant = tenantPolicies?.reports;
  return global === undefined && tenant === undefined ? undefined : [global, tenant];
}

/**
 * Returns the report-only deny that would have denied a permitted request: global ones first, then by name. Its work is
 * apart from that of the decision. Undefined = none, or the work is spent.
 */
export function reportedDeny(query: AccessQuery): CompiledPolicy | undefined {
  const reports = reportsOf(query);
  if (reports === undefined) return undefined;
  const [global, tenant] = reports;
  const separate = unspent(query);
  return (global && denying(global, separate)) ?? (tenant && denying(tenant, separate));
}

/**
 * Returns the report-only allow that would have permitted a request which lacks a permission or a resource: global ones
 * first, then by name. Undefined as for `reportedDeny`.
 */
export function reportedAllow(query: AccessQuery): CompiledPolicy | undefined {
  const reports = reportsOf(query);
  const { principal } = query;
  // Allow policies count for users and the owners of keys only.
  if (reports === undefined || (principal.kind === 'api_key' && principal.owner === undefined)) return undefined;
  const separate = unspent(query);
  const policy = allowOf(separate, ...reports);
  if (policy === undefined || principal.kind === 'user') return policy;
  return coverageOf('scopes', undefined, principal.grant, separate) === 'permitted' ? policy : undefined;
}

/** Returns the query with its own work limit, for comparisons of an explanation only. */
function unspent(query: AccessQuery): AccessQuery {
  return { ...query, work: ruleWork() };
}

/** One role or one allow policy must cover the whole request; they do not add up. */
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

/**
 * Steps 13 and 14. A key needs its scopes and, if it has an owner, the owner's current roles to cover the request.
 * Allow policies count for the owner only.
 */
export function permitted(query: AccessQuery, trace?: Trace): Coverage {
  const { principal } = query;
  if (principal.kind === 'user') return coverageOfRoles('role', query, trace);
  const scopes = coverageOf('scopes', undefined, principal.grant, query, trace);
  if (principal.owner === undefined || (scopes === 'no_permission' && trace === undefined)) return scopes;
  const owner = coverageOfRoles('owner_role', scopes === 'no_permission' ? unspent(query) : query, trace);
  if (scopes === 'no_permission' || owner === 'no_permission') return 'no_permission';
  return scopes === 'permitted' ? owner : scopes;
}
