/** Evaluates which users, keys and roles of one tenant have an ability, with the function of the decision. */

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
import type { Principal, Snapshot, TenantView } from '../../decision/model.ts';
import type { ConsideredGrant } from '../../decision/permitted.ts';
import type { CompiledPolicy } from '../../decision/policies.ts';
import { userWithRoles } from '../../decision/tenant.ts';
import { makeId, type RoleName, type TenantId, type UserId } from '../../domain/ids.ts';
import { ADMIN } from '../../domain/roles.ts';
import type { AccessReason, GrantedAccess } from './schemas.ts';
import type { CandidateKey, CandidateUser } from './who-can-queries.ts';

export interface AccessEvaluator {
  /** Only users of the tenant with one of these roles may have an ability. */
  readonly suffices: 'any' | readonly RoleName[];
  /** The access of a user whose only role is `admin`. */
  readonly platformAdministrators: Verdict;
  /** Returns undefined if the user has none of the abilities. */
  user(user: CandidateUser): GrantedAccess | undefined;
  key(key: CandidateKey): GrantedAccess | undefined;
  /** The access of a user of the tenant whose only role is this one. */
  role(name: RoleName): GrantedAccess | undefined;
  /** Returns the policies that the results so far name. */
  named(): ReadonlySet<CompiledPolicy>;
  /** Reports whether the evaluations of one page are used up. */
  spent(): boolean;
}

/** The number of policies that the result for one user or key names. */
const MAX_NAMED = 100;
/** The number of evaluations for one page. It exceeds the rows of the largest page. */
const MAX_EVALUATIONS = 500;
/** The number of policies that all evaluations for one page may read. */
const MAX_POLICIES_READ = 250_000;
const PLACEHOLDER: UserId = makeId('usr', 0, new Uint8Array(10));

/**
 * @param abilities at least one. A principal has access if it has one of them.
 * @param effective the tenant of the request
 */
export function accessEvaluator(
  abilities: readonly Ability[],
  effective: TenantView,
  { global, builtinRoles }: Snapshot,
): AccessEvaluator {
  const home: Snapshot = { own: effective, effective, global, builtinRoles };
  const named = new Set<CompiledPolicy>();
  /** Results by the roles or scopes, because principals with the same ones have the same access. */
  const known = new Map<string, GrantedAccess | undefined>();
  const policies = policyCount(effective.policies) + policyCount(global);
  let evaluations = 0;

  const evaluate = (principal: Principal, snapshot: Snapshot, key: string): GrantedAccess | undefined => {
    if (known.has(key)) return known.get(key);
    evaluations += abilities.length;
    const access = grantedAccess(abilitiesOf(abilities, principal, snapshot), named);
    known.set(key, access);
    return access;
  };
  const withRoles = (roles: readonly RoleName[]) => userWithRoles(PLACEHOLDER, effective.id, roles);
  const whileActive: Snapshot = { ...home, own: { ...effective, status: 'active' } };
  return {
    suffices: union(abilities.map((ability) => rolesThatSuffice(ability, home, withRoles))),
    platformAdministrators: widest(
      abilities.map((ability) => evaluateAccess(ability, withRoles([ADMIN]), whileActive).verdict),
    ),
    user: ({ id, tenant_id: tenantId, roles }) =>
      tenantId === effective.id
        ? evaluate(userWithRoles(id, tenantId, roles), home, `user ${roles.join(' ')}`)
        : evaluate(
            userWithRoles(id, tenantId, roles),
            { ...home, own: elsewhere(tenantId) },
            `elsewhere ${roles.join(' ')}`,
          ),
    key: ({ id, scopes, resource_constraints: constraints, user_id, roles }) => {
      const owner = user_id === null ? undefined : { id: user_id, roles: roles ?? [] };
      const grant = makeGrant(scopes, constraints);
      const principal = { kind: 'api_key', id, tenantId: effective.id, grant, owner, rateLimitRpm: undefined } as const;
      return evaluate(principal, home, `key ${JSON.stringify([scopes, constraints, owner?.roles])}`);
    },
    role: (name) => evaluate(withRoles([name]), home, `user ${name}`),
    named: () => named,
    spent: () => evaluations >= MAX_EVALUATIONS || evaluations * policies >= MAX_POLICIES_READ,
  };
}

/**
 * The tenant of a platform administrator who acts in another one. Its roles do not matter, because `admin` grants
 * everything there.
 */
function elsewhere(id: TenantId): TenantView {
  return { id, status: 'active', settings: {}, quotas: {}, roles: new Map(), policies: compilePolicies([]) };
}

/** The access to one of several abilities, with the text of its first permission. */
interface AbilityAccess extends EffectiveAccess {
  readonly permission: string;
}

function abilitiesOf(
  abilities: readonly Ability[],
  principal: Principal,
  snapshot: Snapshot,
): readonly AbilityAccess[] {
  return abilities
    .map((ability) => ({ permission: ability.permissions[0].text, ...evaluateAccess(ability, principal, snapshot) }))
    .filter(({ verdict }) => verdict !== 'deny');
}

function grantedAccess(granted: readonly AbilityAccess[], named: Set<CompiledPolicy>): GrantedAccess | undefined {
  const verdict = widest(granted.map((access) => access.verdict));
  if (verdict === 'deny') return undefined;
  const of = <T>(read: (access: AbilityAccess) => readonly T[]): readonly T[] => [...new Set(granted.flatMap(read))];
  const allows = of((access) => access.allows).slice(0, MAX_NAMED);
  const dependsOn = of((access) => access.dependsOn).slice(0, MAX_NAMED);
  for (const policy of [...allows, ...dependsOn]) named.add(policy);
  const grants = new Map(
    granted.flatMap((access) => access.grants).map((one) => [`${one.kind} ${one.name}`, ofGrant(one)]),
  );
  const why = [...grants.values(), ...allows.map(ofPolicy)];
  return {
    verdict,
    by: why.find(({ kind }) => kind !== 'scopes')?.name ?? 'scopes',
    permissions: of((access) => [access.permission]),
    why,
    conditions: dependsOn.map((policy) => policy.name),
  };
}

function widest(verdicts: readonly Verdict[]): Verdict {
  if (verdicts.includes('allow')) return 'allow';
  return verdicts.includes('conditional') ? 'conditional' : 'deny';
}

function union(sets: readonly ('any' | readonly RoleName[])[]): 'any' | readonly RoleName[] {
  const roles = new Set<RoleName>();
  for (const set of sets) {
    if (set === 'any') return 'any';
    for (const role of set) roles.add(role);
  }
  return [...roles];
}

function ofGrant({ kind, name, grant }: ConsideredGrant): AccessReason {
  const { models, collections, agents } = grant;
  const constrained = [models, collections, agents].some((names) => names !== undefined && !names.any);
  return { kind, name: name ?? null, constrained, conditional: false };
}

function ofPolicy(policy: CompiledPolicy): AccessReason {
  const { name, resources, conditions } = policy;
  return { kind: 'policy', name, constrained: !resources.all, conditional: conditions.checks.length > 0 };
}
