/**
 * The exact difference that the roles and policies of a setup make for the users and keys that tenants have now. New
 * users, and changed roles of users, are no part of it.
 */

import type { BuiltinRoles } from '../../decision/builtin-roles.ts';
import { compilePolicies, compileTenant } from '../../decision/compile.ts';
import type { Snapshot } from '../../decision/model.ts';
import type { TenantId } from '../../domain/ids.ts';
import type { PolicyRecord } from '../../domain/records.ts';
import { finish } from '../../domain/steps.ts';
import { compareRules, type DifferenceParts } from '../explain/difference.ts';
import type { RulesDifference } from '../explain/difference-schemas.ts';
import { type PolicyRow, policyRecord } from '../policies/entity.ts';
import { roleRecord } from '../roles/entity.ts';
import type { TenantRow } from '../tenants/entity.ts';
import { listAllTenants, listGlobalPolicies, listTenantRoles, listVisiblePolicies } from './current-state.ts';
import type { TenantPlan, WholePlan } from './guards.ts';
import { valuesByName } from './resource-plan.ts';
import type { PolicyAction } from './rules.ts';

export interface TenantDifference extends RulesDifference {
  readonly tenant: TenantId;
}

export interface SetupDifference {
  readonly tenants: readonly TenantDifference[];
  /** The tenants that a changed global policy applies to and that are not compared. */
  readonly left: number;
}

/**
 * The largest number of tenants that are compared for a changed global policy, in addition to those with changes of
 * their own.
 */
const MAX_TENANTS = 200;

/** Compares each tenant whose rules change. A setup that changes global policies is compared in all tenants. */
export async function setupDifference(
  parts: DifferenceParts,
  { global, tenants: plans, removedTenants }: WholePlan,
  nowMs: number,
): Promise<SetupDifference> {
  const q = parts.db.knex;
  const planned = new Map(plans.map((plan): [TenantId, TenantPlan] => [plan.wanted.key, plan]));
  const removed = new Set(removedTenants.map(({ id }) => id));
  const all = (await listAllTenants(q)).filter(({ id }) => !removed.has(id));
  const changed = all.filter(({ id }) => hasRules(planned.get(id)));
  const others = global.length === 0 ? [] : all.filter(({ id }) => !hasRules(planned.get(id)));
  const globalPolicies = await listGlobalPolicies(q);
  const globals = {
    before: compilePolicies(globalPolicies.map(policyRecord)),
    after: compilePolicies(recordsAfter(globalPolicies, global)),
  };
  const compared: TenantDifference[] = [];
  for (const tenant of [...changed, ...others.slice(0, MAX_TENANTS)]) {
    const snapshots = await snapshotsOf(parts, tenant, planned.get(tenant.id), globals);
    compared.push({
      tenant: tenant.id,
      ...(await compareRules(parts, snapshots, nowMs, async (steps) => finish(steps))),
    });
  }
  return { tenants: compared, left: Math.max(0, others.length - MAX_TENANTS) };
}

function hasRules(plan: TenantPlan | undefined): boolean {
  return plan !== undefined && plan.roles.length + plan.policies.length > 0;
}

interface Versions<T> {
  readonly before: T;
  readonly after: T;
}

async function snapshotsOf(
  { db, routes }: DifferenceParts & { readonly routes: { readonly builtinRoles: BuiltinRoles } },
  tenant: TenantRow,
  plan: TenantPlan | undefined,
  globals: Versions<Snapshot['global']>,
): Promise<Versions<Snapshot>> {
  const roles = await listTenantRoles(db.knex, tenant.id);
  const policies = (await listVisiblePolicies(db.knex, tenant.id)).filter(({ tenant_id: owner }) => owner !== null);
  const { id, status, settings, quotas } = tenant;
  const snapshot = (
    rules: Pick<Parameters<typeof compileTenant>[0], 'roles' | 'policies'>,
    global: Snapshot['global'],
  ) => {
    const view = compileTenant({ id, status, settings, quotas, ...rules });
    return { own: view, effective: view, global, builtinRoles: routes.builtinRoles };
  };
  return {
    before: snapshot({ roles: roles.map(roleRecord), policies: policies.map(policyRecord) }, globals.before),
    after: snapshot(
      {
        roles: [...valuesByName(roles, plan?.roles ?? [])].map(([name, values]) => roleRecord({ ...values, name })),
        policies: recordsAfter(policies, plan?.policies ?? []),
      },
      globals.after,
    ),
  };
}

function recordsAfter(stored: readonly PolicyRow[], actions: readonly PolicyAction[]): readonly PolicyRecord[] {
  return [...valuesByName(stored, actions)].map(([name, values]) => policyRecord({ ...values, name }));
}
