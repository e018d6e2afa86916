/**
 * The effective access of a principal to one permission, at any time and from any address: allow, deny, or conditional.
 * The decision runs under the best and the worst assumption about the conditions (assumed.ts). Nothing is decided here.
 */

import type { RoleName } from '../domain/ids.ts';
import { BUILTIN_ROLES } from '../domain/roles.ts';
import { assumedSnapshot } from './assumed.ts';
import { checkInput } from './check-input.ts';
import { decide } from './decide.ts';
import { ruleWork } from './limits.ts';
import { decideManagement, MANAGEMENT_PERMISSIONS } from './management.ts';
import {
  type Principal,
  RESOURCE_KINDS,
  type Resource,
  type ResourceKind,
  type Route,
  type Snapshot,
} from './model.ts';
import { type AccessQuery, accessQuery, type ConsideredGrant, permitted, type Trace } from './permitted.ts';
import { type CompiledPolicy, concerns, type PolicySet } from './policies.ts';
import { isPlatformAdmin } from './tenant.ts';

export interface Ability {
  /** As those of a route: a grant of either is enough, and a deny on either applies. */
  readonly permissions: Route['permissions'];
  /** Empty: the question is about a route without resources. */
  readonly resources: readonly Resource[];
}

export type Verdict = 'allow' | 'conditional' | 'deny';

export interface EffectiveAccess {
  readonly verdict: Verdict;
  /** The grants that cover the permission and its resources; for an owned key its scopes and its owner's grants. */
  readonly grants: readonly ConsideredGrant[];
  /** The allow policies that permit it, under their conditions. */
  readonly allows: readonly CompiledPolicy[];
  /**
   * The policies on whose conditions a conditional verdict depends: denies that may apply, and allows if nothing else
   * permits.
   */
  readonly dependsOn: readonly CompiledPolicy[];
}

/** A tenant's policies do not apply to platform administrators that manage it. */
const MANAGEMENT: ReadonlySet<string> = new Set(MANAGEMENT_PERMISSIONS);

/**
 * Parses `<kind>/<name>`, one concrete resource. `<kind>/` without a name is a resource that the request does not name.
 * @returns undefined for any other text
 */
export function parseResource(text: string): Resource | undefined {
  const slash = text.indexOf('/');
  const kind: ResourceKind | undefined = RESOURCE_KINDS.find((known) => known === text.slice(0, Math.max(0, slash)));
  const name = text.slice(slash + 1);
  if (kind === undefined || name.includes('*')) return undefined;
  return { kind, name: name === '' ? undefined : name };
}

function routeFor({ permissions }: Ability): Route {
  return {
    method: '',
    template: '',
    permissions,
    model: 'none',
    collection: 'none',
    agent: 'none',
    tokens: false,
    upgrade: false,
    counts: 'none',
    readsBody: false,
    readsPrompts: false,
    usageOnRequest: false,
    reportsUsage: false,
    readsResponse: false,
    upstreamToken: true,
  };
}

/** Conditions are assumed, so neither the address nor the time matters. */
const NO_MOMENT_MS = 0;
const NO_REQUEST = { method: '', path: '', contentType: undefined, clientAddress: undefined };

function isManagement(ability: Ability): boolean {
  return MANAGEMENT.has(ability.permissions[0].text) && ability.resources.length === 0;
}

function isAllowed(ability: Ability, principal: Principal, snapshot: Snapshot): boolean {
  const about = { principal, snapshot, clientAddress: undefined, nowMs: NO_MOMENT_MS };
  const decision = isManagement(ability)
    ? decideManagement({ ...about, permission: ability.permissions[0].text, self: false })
    : decide(
        { kind: 'matched', route: routeFor(ability), resources: ability.resources },
        checkInput({ ...NO_REQUEST, tenant: snapshot.effective?.id }, undefined),
        { kind: 'proved', principal },
        snapshot,
        NO_MOMENT_MS,
      );
  return decision.kind === 'allow';
}

/** Returns the query of the decision; undefined if a tenant is missing. */
function queryFor(
  ability: Ability,
  principal: Principal,
  { own, effective, global, builtinRoles }: Snapshot,
): AccessQuery | undefined {
  if (own === undefined || effective === undefined) return undefined;
  return accessQuery({
    principal,
    permissions: ability.permissions,
    resources: ability.resources,
    own,
    effective,
    tenantPoliciesApply: !(isManagement(ability) && isPlatformAdmin(principal)),
    global,
    builtinRoles,
    clientAddress: undefined,
    nowMs: NO_MOMENT_MS,
  });
}

function concerning(effect: 'denies' | 'allows', query: AccessQuery): readonly CompiledPolicy[] {
  const { globalPolicies, tenantPolicies } = query;
  const policies = [...globalPolicies[effect].policies, ...(tenantPolicies?.[effect].policies ?? [])];
  return policies.filter((policy) => concerns(policy, { ...query, work: ruleWork() }));
}

/** An allow with an unreadable condition never permits anything. */
function isReadable(policy: CompiledPolicy): boolean {
  return policy.conditions.checks.every((check) => check.kind !== 'unreadable');
}

const DENIED: EffectiveAccess = Object.freeze({ verdict: 'deny', grants: [], allows: [], dependsOn: [] });

/** @param snapshot with the tenant of the question as the effective one */
export function evaluateAccess(ability: Ability, principal: Principal, snapshot: Snapshot): EffectiveAccess {
  const best = assumedSnapshot(snapshot, 'best');
  const worst = assumedSnapshot(snapshot, 'worst');
  const query = queryFor(ability, principal, snapshot);
  const queryAtWorst = queryFor(ability, principal, worst);
  if (query === undefined || queryAtWorst === undefined || !isAllowed(ability, principal, best)) return DENIED;

  const verdict = isAllowed(ability, principal, worst) ? 'allow' : 'conditional';
  const trace: Trace = { grants: [] };
  const withoutConditions = permitted(queryAtWorst, trace) === 'permitted';
  const policiesServe = principal.kind === 'user' || principal.owner !== undefined;
  const allows = policiesServe ? concerning('allows', query).filter(isReadable) : [];
  const isConditional = (policy: CompiledPolicy) => policy.conditions.checks.length > 0;
  return {
    verdict,
    grants: trace.grants.filter((grant) => grant.coversPermission && grant.coversResources),
    allows,
    dependsOn:
      verdict === 'allow'
        ? []
        : [
            ...concerning('denies', query).filter(isConditional),
            ...(withoutConditions ? [] : allows.filter(isConditional)),
          ],
  };
}

/**
 * Returns which users of a tenant may have the ability: all, or the holders of any of some roles. Grants do not add up
 * and a policy applies by any one role, so a permitted user is permitted by one of its roles alone, or without a role.
 * @param snapshot for users of the tenant itself
 * @param principalWith returns a user of the tenant with exactly these roles
 */
export function rolesThatSuffice(
  ability: Ability,
  snapshot: Snapshot,
  principalWith: (roles: readonly RoleName[]) => Principal,
): 'any' | readonly RoleName[] {
  const best = assumedSnapshot(snapshot, 'best');
  if (isAllowed(ability, principalWith([]), best)) return 'any';
  const { own, effective, global } = snapshot;
  const policies = policyCount(global) + (effective === undefined ? 0 : policyCount(effective.policies));
  const names = new Set<RoleName>([...BUILTIN_ROLES.map((role) => role.name), ...(own?.roles.keys() ?? [])]);
  for (const policy of [...global.allows.policies, ...(effective?.policies.allows.policies ?? [])]) {
    for (const role of policy.roles ?? []) names.add(role);
  }
  if (names.size * policies > MAX_ROLE_POLICIES) return 'any';
  return [...names].filter((role) => isAllowed(ability, principalWith([role]), best));
}

/**
 * Roles times policies that are compared to find the roles. Beyond it every user is a candidate, which is always right.
 */
const MAX_ROLE_POLICIES = 50_000;

/** Policies of a set, for bounds on work that is done for each of them. */
export function policyCount({ denies, allows }: PolicySet): number {
  return denies.policies.length + allows.policies.length;
}
