/** A world in which roles and policies that nobody has saved yet are in force, to decide in it as if they were. */

import type { RoleName } from '../domain/ids.ts';
import type { PolicyRecord, RoleRecord } from '../domain/records.ts';
import { type Grant, makeGrant } from './grants.ts';
import type { Snapshot, TenantView } from './model.ts';
import { compilePolicy, type PolicySet, policyList } from './policies.ts';

export interface Proposal {
  /** Custom roles of the effective tenant. */
  readonly roles: readonly RoleRecord[];
  /** Policies of the effective tenant; a disabled one only takes the place of that of its name. */
  readonly policies: readonly PolicyRecord[];
  readonly globalPolicies: readonly PolicyRecord[];
}

/** Compiled apart from what is stored, so that nothing proposed is kept. */
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

/** The same world with the proposal in the place of whatever has its names. The principal's own tenant changes only when it acts there. */
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
