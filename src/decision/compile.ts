/**
 * Compiles records of the store for decisions, once, when they are loaded. The rules of one tenant may take a megabyte,
 * so they are compiled in steps: the cache runs them in slices, and decides other requests between the slices.
 */

import type { RoleName } from '../domain/ids.ts';
import type { PolicyRecord, ResourceConstraints, TenantRecord } from '../domain/records.ts';
import { isBuiltinRole } from '../domain/roles.ts';
import { finish, type Steps } from '../domain/steps.ts';
import { compileBudgetsInSteps } from './budgets.ts';
import { type Grant, makeGrant } from './grants.ts';
import { interned } from './interned.ts';
import type { TenantView } from './model.ts';
import { type CompiledPolicy, compilePolicy, type PolicySet, policySetInSteps } from './policies.ts';

const MAX_INTERNED = 4096;
/**
 * A tenant with more roles or policies shares none with other tenants: building the keys costs more than the memory is
 * worth.
 */
const MAX_SHARED = 64;

const grantOf = interned(
  MAX_INTERNED,
  (parts: { readonly permissions: readonly string[]; readonly constraints: ResourceConstraints }) => {
    const { models, collections, agents } = parts.constraints;
    return JSON.stringify([parts.permissions, models, collections, agents]);
  },
  ({ permissions, constraints }) => makeGrant(permissions, constraints),
);
const policyOf = interned(MAX_INTERNED, (record: PolicyRecord) => JSON.stringify(record), compilePolicy);

/** Returns the same object for equal grants. */
export function compileGrant(permissions: readonly string[], constraints: ResourceConstraints): Grant {
  return grantOf({ permissions, constraints });
}

/** Disabled policies are never in force, so the set does not contain them. */
export function compilePolicies(records: readonly PolicyRecord[]): PolicySet {
  return finish(compilePoliciesInSteps(records));
}

/** Like `compilePolicies`, with one policy for each step. */
export function* compilePoliciesInSteps(records: readonly PolicyRecord[]): Steps<PolicySet> {
  const compile = records.length > MAX_SHARED ? compilePolicy : policyOf;
  const inForce: CompiledPolicy[] = [];
  const reports: CompiledPolicy[] = [];
  for (const record of records) {
    if (!record.enabled && record.reports !== true) continue;
    (record.enabled ? inForce : reports).push(compile(record));
    yield;
  }
  return yield* policySetInSteps(inForce, reports);
}

export function compileTenant(record: TenantRecord): TenantView {
  return finish(compileTenantInSteps(record));
}

/** Like `compileTenant`, with one role, policy or budget for each step. */
export function* compileTenantInSteps(record: TenantRecord): Steps<TenantView> {
  const compile = record.roles.length > MAX_SHARED ? makeGrant : compileGrant;
  const roles = new Map<RoleName, Grant>();
  for (const role of record.roles) {
    if (!isBuiltinRole(role.name)) roles.set(role.name, compile(role.permissions, role.constraints));
    yield;
  }
  return Object.freeze({
    id: record.id,
    status: record.status,
    settings: record.settings,
    quotas: record.quotas,
    roles,
    policies: yield* compilePoliciesInSteps(record.policies),
    ...(record.budgets === undefined || record.budgets.length === 0
      ? {}
      : { budgets: yield* compileBudgetsInSteps(record.budgets, (name) => isBuiltinRole(name) || roles.has(name)) }),
  });
}
