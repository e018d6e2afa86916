/** Snapshots with proposed roles and policies, which are decided as if they were stored. */

import type { PolicyName, RoleName } from '../domain/ids.ts';
import type { PolicyRecord, RoleRecord } from '../domain/records.ts';
import { type Grant, makeGrant } from './grants.ts';
import type { Snapshot, TenantView } from './model.ts';
import {
  type CompiledPolicy,
  compilePolicy,
  listedPolicies,
  type PolicyLists,
  type PolicySet,
  policySet,
} from './policies.ts';

export interface Proposal {
  /** Custom roles of the effective tenant. */
  readonly roles: readonly RoleRecord[];
  /** Policies of the effective tenant. A disabled policy only replaces the stored policy of its name. */
  readonly policies: readonly PolicyRecord[];
  readonly globalPolicies: readonly PolicyRecord[];
  /** Stored rules that the proposal deletes. Default: none. */
  readonly removed?: RemovedRules;
}

interface RemovedRules {
  /** Custom roles of the effective tenant. The tenant's policies are detached from them. */
  readonly roles: ReadonlySet<RoleName>;
  /** Policies of the effective tenant and global ones. */
  readonly policies: ReadonlySet<PolicyName>;
}

const NO_REMOVED_RULES: RemovedRules = { roles: new Set(), policies: new Set() };

/** Proposed policies are compiled without the shared cache, so that nothing proposed is kept. */
function proposedSet(set: PolicySet, proposed: readonly PolicyRecord[], replaced: ReadonlySet<string>): PolicySet {
  const kept = (lists: PolicyLists | undefined) => listedPolicies(lists).filter((policy) => !replaced.has(policy.name));
  const inForce = proposed.filter((record) => record.enabled);
  const reports = proposed.filter((record) => !record.enabled && record.reports === true);
  return policySet(
    [...kept(set), ...inForce.map(compilePolicy)],
    [...kept(set.reports), ...reports.map(compilePolicy)],
  );
}

/** Returns the policy without the removed roles. A policy without any role left applies to no principal. */
function detached(policy: CompiledPolicy, removed: ReadonlySet<RoleName>): CompiledPolicy {
  const attachedRoles = policy.record.attachedRoles.filter((role) => !removed.has(role));
  return attachedRoles.length === policy.record.attachedRoles.length
    ? policy
    : compilePolicy({ ...policy.record, attachedRoles });
}

function detachedSet(set: PolicySet, removed: ReadonlySet<RoleName>): PolicySet {
  if (removed.size === 0) return set;
  const all = (lists: PolicyLists | undefined) => listedPolicies(lists).map((policy) => detached(policy, removed));
  return policySet(all(set), all(set.reports));
}

function proposedRoles(
  roles: TenantView['roles'],
  proposed: readonly RoleRecord[],
  removed: ReadonlySet<RoleName>,
): ReadonlyMap<RoleName, Grant> {
  return new Map([
    ...[...roles].filter(([name]) => !removed.has(name)),
    ...proposed.map((role): [RoleName, Grant] => [role.name, makeGrant(role.permissions, role.constraints)]),
  ]);
}

/**
 * Returns the snapshot with the proposal in place of the stored roles and policies of the same names, and without those
 * that it removes. A name that it both removes and proposes counts as proposed. The principal's own tenant changes only
 * if it is the effective one.
 */
export function withProposal(snapshot: Snapshot, proposal: Proposal): Snapshot {
  const { own, effective, global } = snapshot;
  const { removed = NO_REMOVED_RULES } = proposal;
  const written = [...proposal.policies, ...proposal.globalPolicies].map((policy) => policy.name);
  const replaced = new Set([...written, ...removed.policies]);
  const lost = removed.roles.difference(new Set(proposal.roles.map((role) => role.name)));
  const proposed = effective && {
    ...effective,
    roles: proposedRoles(effective.roles, proposal.roles, lost),
    policies: proposedSet(detachedSet(effective.policies, lost), proposal.policies, replaced),
  };
  return {
    own: own?.id === effective?.id ? proposed : own,
    effective: proposed,
    global: proposedSet(global, proposal.globalPolicies, replaced),
    builtinRoles: snapshot.builtinRoles,
  };
}
