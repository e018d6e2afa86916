/**
 * Lines 9 to 15 of the decision, read off the rules one by one, on records: the obvious twin of the compiled evaluator.
 */

import type { PolicyRecord, ResourceConstraints, RoleRecord, TenantRecord } from '../../src/domain/records.ts';
import { BUILTIN_ROLES } from '../../src/domain/roles.ts';
import { builtinRoles } from '../support/builtin-roles.ts';
import { tableMatches } from './naive-glob.ts';

export interface NaivePrincipal {
  readonly tenant: string;
  readonly platformAdmin: boolean;
  /** The roles of the user, or of the key's owner; undefined for a key without owner. */
  readonly roles: readonly string[] | undefined;
  /** Undefined for a user. */
  readonly scopes: { readonly permissions: readonly string[]; readonly constraints: ResourceConstraints } | undefined;
  /** The patterns of a narrowed session. */
  readonly narrowedTo: readonly string[] | undefined;
}

export interface NaiveRequest {
  readonly permissions: readonly string[];
  readonly resources: readonly {
    readonly kind: 'models' | 'collections' | 'agents';
    readonly name: string | undefined;
  }[];
  readonly header: string | undefined;
  readonly limits: readonly number[];
  readonly metered: boolean;
  /** Whether the answer is a stream that reports its usage only if asked, and the request does not ask. */
  readonly hidesUsage: boolean;
}

/** Reports whether the conditions of a policy hold. The test supplies the method. */
export type Holds = (policy: PolicyRecord, tenant: TenantRecord) => boolean;

function covers(pattern: string, permission: string): boolean {
  const [resource, action] = permission.split(':');
  return ['*', '*:*', permission, `${resource}:*`, `*:${action}`].includes(pattern);
}

type Resource = NaiveRequest['resources'][number];

function grantReaches(constraints: ResourceConstraints, { kind, name }: Resource): boolean {
  const list = constraints[kind];
  if (list === undefined || list.includes('*')) return true;
  return name !== undefined && list.some((glob) => tableMatches(glob, name));
}

function patternReaches(pattern: string, resource: Resource, deny: boolean): boolean {
  if (pattern === '*') return true;
  const [kind, ...rest] = pattern.split('/');
  if (kind !== resource.kind) return false;
  return resource.name === undefined ? deny : tableMatches(rest.join('/'), resource.name);
}

function policyReaches(policy: PolicyRecord, resources: readonly Resource[]): boolean {
  const deny = policy.effect === 'deny';
  const reached = (resource: Resource) => policy.resources.some((pattern) => patternReaches(pattern, resource, deny));
  if (resources.length === 0) return policy.resources.includes('*');
  return deny ? resources.some(reached) : resources.every(reached);
}

/** The code of the denial, with the policy where one denies; or `allow`. */
export function naiveDecision(
  tenants: readonly TenantRecord[],
  globals: readonly PolicyRecord[],
  principal: NaivePrincipal,
  request: NaiveRequest,
  holds: Holds,
): string {
  const own = tenants.find((tenant) => tenant.id === principal.tenant);
  if (request.header !== undefined && !/^[a-z0-9][a-z0-9-]{0,62}$/.test(request.header)) return 'invalid_tenant';
  const effective = tenants.find((tenant) => tenant.id === (request.header ?? principal.tenant));
  if (own === undefined) return 'invalid_credential';
  if (effective === undefined || (effective !== own && !principal.platformAdmin)) return 'tenant_mismatch';
  if (own.status === 'suspended' || effective.status === 'suspended') return 'tenant_suspended';

  const held = principal.roles ?? [];
  const isBuiltin = (role: string) => BUILTIN_ROLES.some((one) => one.name === role);
  const inForce = (policy: PolicyRecord) =>
    policy.enabled &&
    (policy.appliesTo === 'everyone' ||
      policy.attachedRoles.some((role) => held.includes(role) && (own === effective || isBuiltin(role))));
  const byName = (left: PolicyRecord, right: PolicyRecord) => (left.name < right.name ? -1 : 1);
  const policies = [...globals.toSorted(byName), ...effective.policies.toSorted(byName)].filter(inForce);
  const matching = (effect: 'allow' | 'deny', permissions: readonly string[]) =>
    policies.find(
      (policy) =>
        policy.effect === effect &&
        policy.actions.some((action) => permissions.some((permission) => covers(action, permission))) &&
        policyReaches(policy, request.resources) &&
        holds(policy, effective),
    );
  const denied = matching('deny', request.permissions);
  if (denied !== undefined) return `denied_by_policy ${denied.name}`;

  const permissions = request.permissions.filter(
    (permission) =>
      (permission !== 'admin:tenants' || principal.platformAdmin) &&
      (principal.narrowedTo === undefined || principal.narrowedTo.some((pattern) => covers(pattern, permission))),
  );
  const grantCovers = (patterns: readonly string[]) =>
    patterns.some((pattern) => permissions.some((one) => covers(pattern, one)));
  const reachesAll = (constraints: ResourceConstraints) =>
    request.resources.every((resource) => grantReaches(constraints, resource));
  const roles: readonly Pick<RoleRecord, 'permissions' | 'constraints'>[] = held.flatMap((name) => [
    ...builtinRoles.list
      .filter((role) => role.name === name)
      .map((role) => ({ permissions: role.permissions, constraints: {} })),
    ...own.roles.filter((role) => role.name === name && !isBuiltin(name)),
  ]);
  const capable = roles.filter((role) => grantCovers(role.permissions));
  const permitted =
    capable.some((role) => reachesAll(role.constraints)) || matching('allow', permissions) !== undefined;
  const lacksPermission = !permitted && capable.length === 0;
  const { scopes } = principal;
  if (scopes !== undefined && !grantCovers(scopes.permissions)) return 'insufficient_permission';
  if (principal.roles !== undefined && lacksPermission) return 'insufficient_permission';
  if (scopes !== undefined && !reachesAll(scopes.constraints)) return 'resource_not_permitted';
  if (principal.roles !== undefined && !permitted) return 'resource_not_permitted';

  const limit = effective.settings.max_tokens_per_request;
  if (request.metered && limit !== undefined && request.limits.some((one) => one > limit)) return 'max_tokens_exceeded';
  return request.hidesUsage && effective.settings.require_stream_usage === true ? 'usage_required' : 'allow';
}
