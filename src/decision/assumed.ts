/**
 * Policies under an assumption about their conditions, for questions that have no time and no address. `best`: no
 * condition of a deny holds and every condition of an allow holds. `worst`: the opposite. A request that is permitted
 * under `worst` is always permitted. A request that is denied under `best` is always denied. Otherwise the result
 * depends on the conditions.
 */

import type { CompiledConditions } from './conditions.ts';
import type { Snapshot, TenantView } from './model.ts';
import { type CompiledPolicy, listedPolicies, type PolicySet, policySet } from './policies.ts';

type Assumption = 'best' | 'worst';

const ALWAYS: CompiledConditions = Object.freeze({ checks: [], timezone: undefined });

/** Returns the policy under the assumption; undefined if it is not in force. */
function assumedPolicy(policy: CompiledPolicy, assumption: Assumption): CompiledPolicy | undefined {
  const { checks } = policy.conditions;
  if (checks.length === 0) return policy;
  const always = { ...policy, conditions: ALWAYS };
  // An unreadable check always holds in a deny and never in an allow.
  const readable = checks.filter((check) => check.kind !== 'unreadable').length;
  if (policy.effect === 'deny') return assumption === 'worst' || readable === 0 ? always : undefined;
  return assumption === 'best' && readable === checks.length ? always : undefined;
}

/** Sets are frozen and live as long as their tenant is cached, so each is converted once. */
const known: Readonly<Record<Assumption, WeakMap<PolicySet, PolicySet>>> = {
  best: new WeakMap(),
  worst: new WeakMap(),
};

function assumedPolicies(set: PolicySet, assumption: Assumption): PolicySet {
  // Report-only policies are left out, because they have no effect.
  return known[assumption].getOrInsertComputed(set, () =>
    policySet(listedPolicies(set).flatMap((policy) => assumedPolicy(policy, assumption) ?? [])),
  );
}

export function assumedSnapshot(snapshot: Snapshot, assumption: Assumption): Snapshot {
  const view = (tenant: TenantView | undefined) =>
    tenant && { ...tenant, policies: assumedPolicies(tenant.policies, assumption) };
  const own = view(snapshot.own);
  return {
    own,
    effective: snapshot.effective === snapshot.own ? own : view(snapshot.effective),
    global: assumedPolicies(snapshot.global, assumption),
    builtinRoles: snapshot.builtinRoles,
  };
}
