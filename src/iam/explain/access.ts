/** Asks the decision about the people and keys of one tenant, each as a principal of its own, and shows what it answered. */

import { compilePolicies } from '../../decision/compile.ts';
import {
  type Ability,
  type EffectiveAccess,
  evaluateAccess,
  policyCount,
  rolesThatSuffice,
  type Verdict,
} from '../../decision/effective-access.ts';
import { makeGrant } from '../../decision/grants.ts';
import type { Principal, Snapshot, TenantView, UserPrincipal } from '../../decision/model.ts';
import type { ConsideredGrant } from '../../decision/permitted.ts';
import type { Policy } from '../../decision/policies.ts';
import { makeId, type RoleName, type TenantId, type UserId } from '../../domain/ids.ts';
import { ADMIN } from '../../domain/roles.ts';
import type { CandidateKey, CandidateUser } from './who-can-queries.ts';

export interface AccessReason {
  readonly kind: 'role' | 'owner_role' | 'scopes' | 'policy';
  /** Of the role or policy; null for scopes. */
  readonly name: string | null;
  /** It reaches some resources only. */
  readonly constrained: boolean;
  /** A policy that does so under conditions. */
  readonly conditional: boolean;
}

export interface GrantedAccess {
  readonly verdict: Exclude<Verdict, 'deny'>;
  readonly why: readonly AccessReason[];
  /** Names of the policies on whose conditions it hangs; empty for an allow. */
  readonly conditions: readonly string[];
}

export interface AccessEvaluator {
  /** Whoever holds one of these roles may have the ability; nobody else of the tenant does. */
  readonly suffices: 'any' | readonly RoleName[];
  /** How somebody who holds the role `admin`, and no other, stands. */
  readonly platformAdministrators: Verdict;
  /** Undefined: not able. */
  user(user: CandidateUser): GrantedAccess | undefined;
  key(key: CandidateKey): GrantedAccess | undefined;
  /** The policies that answers so far have named. */
  named(): ReadonlySet<Policy>;
  /** Reports whether one page has asked the decision often enough. */
  spent(): boolean;
}

/** Policies that are named of one user or key. */
const MAX_NAMED = 100;
/** Different users and keys that one page asks the decision about; more than the largest page shows. */
const MAX_EVALUATIONS = 500;
/** Policies that one page may look at, over all users and keys that it asks about. */
const MAX_POLICIES_READ = 250_000;
const PLACEHOLDER: UserId = makeId('usr', 0, new Uint8Array(10));

/** @param effective the tenant that is asked about; its own people are at home in it */
export function accessEvaluator(
  ability: Ability,
  effective: TenantView,
  { global, builtinRoles }: Snapshot,
): AccessEvaluator {
  const home: Snapshot = { own: effective, effective, global, builtinRoles };
  const named = new Set<Policy>();
  /** Who holds the same has the same answer. */
  const known = new Map<string, GrantedAccess | undefined>();
  const policies = policyCount(effective.policies) + policyCount(global);
  let asked = 0;

  const able = (principal: Principal, world: Snapshot, sameAs: string): GrantedAccess | undefined => {
    if (known.has(sameAs)) return known.get(sameAs);
    asked++;
    const stands = evaluateAccess(ability, principal, world);
    const answer = shown(stands, named);
    known.set(sameAs, answer);
    return answer;
  };
  return {
    suffices: rolesThatSuffice(ability, home, (roles) => holder(PLACEHOLDER, effective.id, roles)),
    platformAdministrators: evaluateAccess(ability, holder(PLACEHOLDER, effective.id, [ADMIN]), {
      ...home,
      own: { ...effective, status: 'active' },
    }).verdict,
    user: ({ id, tenantId, roles }) =>
      tenantId === effective.id
        ? able(holder(id, tenantId, roles), home, `user ${roles.join(' ')}`)
        : able(holder(id, tenantId, roles), { ...home, own: elsewhere(tenantId) }, `elsewhere ${roles.join(' ')}`),
    key: ({ id, scopes, constraints, owner }) => {
      const grant = makeGrant(scopes, constraints);
      const principal: Principal = {
        kind: 'api_key',
        id,
        tenantId: effective.id,
        grant,
        owner,
        rateLimitRpm: undefined,
      };
      return able(principal, home, `key ${JSON.stringify([scopes, constraints, owner?.roles])}`);
    },
    named: () => named,
    spent: () => asked >= MAX_EVALUATIONS || asked * policies >= MAX_POLICIES_READ,
  };
}

function holder(id: UserId, tenantId: TenantId, roles: readonly RoleName[]): UserPrincipal {
  return { kind: 'user', id, tenantId, roles, platformAdmin: roles.includes(ADMIN), sessionId: undefined };
}

/** The tenant of a platform administrator who acts in another. What its own roles give there, `admin` gives as well. */
function elsewhere(id: TenantId): TenantView {
  return { id, status: 'active', settings: {}, quotas: {}, roles: new Map(), policies: compilePolicies([]) };
}

function shown({ verdict, grants, allows, dependsOn }: EffectiveAccess, named: Set<Policy>): GrantedAccess | undefined {
  if (verdict === 'deny') return undefined;
  const listed = { allows: allows.slice(0, MAX_NAMED), dependsOn: dependsOn.slice(0, MAX_NAMED) };
  for (const policy of [...listed.allows, ...listed.dependsOn]) named.add(policy);
  return {
    verdict,
    why: [...grants.map(ofGrant), ...listed.allows.map(ofPolicy)],
    conditions: listed.dependsOn.map((policy) => policy.name),
  };
}

function ofGrant({ kind, name, grant }: ConsideredGrant): AccessReason {
  const { models, collections, agents } = grant;
  const constrained = [models, collections, agents].some((names) => names !== undefined && !names.any);
  return { kind, name: name ?? null, constrained, conditional: false };
}

function ofPolicy(policy: Policy): AccessReason {
  const { name, resources, conditions } = policy;
  return { kind: 'policy', name, constrained: !resources.all, conditional: conditions.checks.length > 0 };
}
