/** Snapshots with proposed roles and policies, which are decided as if they were stored. */

import type { RoleName } from '../domain/ids.ts';
import type { PolicyRecord, RoleRecord } from '../domain/records.ts';
import { type Grant, makeGrant } from './grants.ts';
import type { Snapshot, TenantView } from './model.ts';
import { compilePolicy, type PolicySet, policyList } from './policies.ts';

export interface Proposal {
  /** Custom roles of the effective tenant. */
  readonly roles: readonly RoleRecord[];
  /** Policies of the effective tenant. A disabled policy only replaces the stored policy of its name. */
  readonly policies: readonly PolicyRecord[];
  readonly globalPolicies: readonly PolicyRecord[];
}

/** Proposed policies are compiled without the shared cache, so that nothing proposed is kept. */
function proposedSet(set: PolicySet, proposed: readonly PolicyRecord[], replaced: ReadonlySet<string>): PolicySet {
  const added = proposed.filter((record) => record.enabled).map(compilePolicy);
  const listed = (effect: 'denies' | 'allows') =>
    policyList([
      ...set[effect].policies.filter((policy) => !replaced.has(policy.name)),
      ...added.filter((policy) => policy.effect === (effect === 'denies' ? 'deny' : 'allow')),
    ]);
  return { denies: listed('denies'), allows: listed('allows') };
}

function proposedRoles(roles: TenantView['roles'], proposed: readonly RoleRecord[]): ReadonlyMap<RoleName, Grant> {
  return new Map([
    ...roles,
    ...proposed.map((role): [RoleName, Grant] => [role.name, makeGrant(role.permissions, role.constraints)]),
  ]);
}

/**
 * Returns the snapshot with the proposal in place of the stored roles and policies of the same names. The principal's
 * own tenant changes only if it is the effective one.
 */
export function withProposal(snapshot: Snapshot, proposal: Proposal): Snapshot {
  const { own, effective, global } = snapshot;
  const replaced = new Set([...proposal.policies, ...proposal.globalPolicies].map((policy) => policy.name));
  const proposed = effective && {
    ...effective,
    roles: proposedRoles(effective.roles, proposal.roles),
    policies: proposedSet(effective.policies, proposal.policies, replaced),
  };
  return {
    own: own?.id === effective?.id ? proposed : own,
    effective: proposed,
    global: proposedSet(global, proposal.globalPolicies, replaced),
    builtinRoles: snapshot.builtinRoles,
  };
}
