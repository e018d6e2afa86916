/** Records of the store become what deciding needs, once, when they are loaded. */

import type { RoleName } from '../domain/ids.ts';
import type { PolicyRecord, ResourceConstraints, TenantRecord } from '../domain/records.ts';
import { isBuiltinRole } from '../domain/roles.ts';
import { type Grant, makeGrant } from './grants.ts';
import { interned } from './interned.ts';
import type { TenantView } from './model.ts';
import { compilePolicy, type PolicySet, policyList } from './policies.ts';

const MAX_INTERNED = 4096;

const grantOf = interned(
  MAX_INTERNED,
  (parts: { readonly permissions: readonly string[]; readonly constraints: ResourceConstraints }) => {
    const { models, collections, agents } = parts.constraints;
    return JSON.stringify([parts.permissions, models, collections, agents]);
  },
  ({ permissions, constraints }) => makeGrant(permissions, constraints),
);
const policyOf = interned(MAX_INTERNED, (record: PolicyRecord) => JSON.stringify(record), compilePolicy);

/** Equal grants are one object. */
export function compileGrant(permissions: readonly string[], constraints: ResourceConstraints): Grant {
  return grantOf({ permissions, constraints });
}

/** Disabled policies are never in force, so they are not in the set. */
export function compilePolicies(records: readonly PolicyRecord[]): PolicySet {
  const policies = records.filter((record) => record.enabled).map(policyOf);
  return Object.freeze({
    denies: policyList(policies.filter((policy) => policy.effect === 'deny')),
    allows: policyList(policies.filter((policy) => policy.effect === 'allow')),
  });
}

export function compileTenant(record: TenantRecord): TenantView {
  const roles = new Map<RoleName, Grant>();
  for (const role of record.roles) {
    if (!isBuiltinRole(role.name)) roles.set(role.name, compileGrant(role.permissions, role.constraints));
  }
  return Object.freeze({
    id: record.id,
    status: record.status,
    settings: record.settings,
    quotas: record.quotas,
    roles,
    policies: compilePolicies(record.policies),
  });
}
