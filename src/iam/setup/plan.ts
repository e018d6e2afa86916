/** Plans a setup: compares it with the current state and returns the actions, or the errors. */

import { DEFAULT_TENANT, type PolicyName, type TenantId } from '../../domain/ids.ts';
import { isBuiltinRole } from '../../domain/roles.ts';
import type { Transaction } from '../../store/transaction.ts';
import { rolesOfMapping, usersOf } from '../issuers/users.ts';
import { policyOwners } from '../policies/queries.ts';
import type { UserRow } from '../users/entity.ts';
import type { PlannedAction } from './action.ts';
import { planBudgets } from './budgets.ts';
import { type CurrentState, type PruneOptions, readCurrentState, type TenantState } from './current-state.ts';
import { refuseBrokenRules, type TenantPlan, type WholePlan } from './guards.ts';
import { planIssuers } from './issuers.ts';
import { NO_SUCH_ROLE, type Setup, type SetupError } from './read.ts';
import { planResources, valuesByName } from './resource-plan.ts';
import { type PolicyAction, planPolicies, roleResources, type WantedPolicy } from './rules.ts';
import { planTenant, planTenantRemoval, type WantedTenant } from './tenants.ts';
import { userResources } from './users.ts';
import { planWebhooks } from './webhooks.ts';

export interface SetupOptions extends PruneOptions {
  /** Writes policies even if they lock out every administrator. */
  readonly force: boolean;
  /** Creates a one-time token for each new active user. Default: false. */
  readonly setupTokens?: boolean;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  /** `issuers.allowed-hosts`. Default: none. */
  readonly allowedHosts?: readonly string[];
  /** `webhooks.allowed-hosts`. Default: none. */
  readonly webhookHosts?: readonly string[];
}

export type Plan =
  /** In the order of the document. */
  | {
      readonly kind: 'plan';
      readonly actions: readonly PlannedAction[];
      /** The same actions by tenant. */
      readonly parts: WholePlan;
    }
  | { readonly kind: 'errors'; readonly errors: readonly SetupError[] };

/**
 * @param lock locks the resources that the plan depends on until the transaction ends
 * @throws Refusal `quota_exceeded`, `last_admin`, `would_lock_out`, `in_use`, `already_exists`
 */
export async function planSetup(trx: Transaction, setup: Setup, options: SetupOptions, lock: boolean): Promise<Plan> {
  const current = await readCurrentState(trx, setup, options, lock);
  const errors: SetupError[] = [];
  const global = planPolicies(null, setup.globalPolicies, current.globalPolicies, options.prune, errors);
  const globalAfter = valuesByName(current.globalPolicies, global);
  const users = placedUsers(setup, current, options, errors);
  const tenants = setup.tenants.map((wanted) =>
    planTenantParts(wanted, current.tenants.get(wanted.key) ?? NOTHING, users.get(wanted.key) ?? [], options, errors),
  );
  for (const tenant of tenants) checkTenantPolicyNames(tenant, globalAfter, errors);
  await checkGlobalPolicyNames(trx, setup, global, tenants, errors);
  if (errors.length > 0) return { kind: 'errors', errors };

  // The first tenant is never deleted.
  const removedTenants = current.otherTenants.filter((tenant) => tenant.id !== DEFAULT_TENANT);
  const parts: WholePlan = { global, tenants, removedTenants };
  await refuseBrokenRules(trx, parts, options);
  return {
    kind: 'plan',
    parts,
    actions: [...global, ...tenants.flatMap(actionsOf), ...removedTenants.map(planTenantRemoval)],
  };
}

const NOTHING: TenantState = {
  tenant: undefined,
  deleted: false,
  roles: [],
  policies: [],
  issuers: [],
  webhooks: [],
  budgets: [],
  absentCallers: new Set(),
};

function planTenantParts(
  wanted: WantedTenant,
  state: TenantState,
  users: readonly UserRow[],
  { prune, allowedHosts = [], webhookHosts = [], nowMs }: SetupOptions,
  errors: SetupError[],
): TenantPlan {
  const id = wanted.key;
  const roles = planResources(roleResources(id), wanted.roles, state.roles, prune, errors);
  const names = new Set<string>(valuesByName(state.roles, roles).keys());
  const known = (name: string) => isBuiltinRole(name) || names.has(name);
  for (const policy of wanted.policies ?? [])
    refuseUnknown(policy.attached_roles ?? [], `${policy.at}/attached_roles`, known, errors);
  const issuers = planIssuers(id, wanted.issuers, state.issuers, prune, { allowedHosts, nowMs }, errors);
  for (const { at, document } of wanted.issuers ?? [])
    refuseUnknown(rolesOfMapping(usersOf(document.users ?? null)), `${at}/users`, known, errors);
  for (const user of wanted.users ?? []) refuseUnknown(user.roles ?? [], `${user.at}/roles`, known, errors);
  for (const { key, at, applies_to: scope } of wanted.budgets ?? []) {
    // A budget keeps a role that was deleted after it was written.
    const before = state.budgets.find(({ row }) => row.name === key)?.applies_to;
    const kept = before !== undefined && 'roles' in before ? before.roles : [];
    const isKnown = (name: string) => known(name) || kept.some((role) => role === name);
    if (scope !== undefined && 'roles' in scope) refuseUnknown(scope.roles, `${at}/applies_to/roles`, isKnown, errors);
  }
  const userActions = planResources(userResources(id), wanted.users, users, prune, errors);
  const created = new Set(userActions.flatMap(({ before, name }) => (before === undefined ? name : [])));
  const deleted = new Set<string>(
    userActions.flatMap(({ before, after, name }) => (after === undefined ? [before?.id ?? name, name] : [])),
  );
  const isAbsent = (caller: string) => deleted.has(caller) || (state.absentCallers.has(caller) && !created.has(caller));
  return {
    wanted,
    stored: state.tenant,
    policiesBefore: state.policies,
    issuersBefore: state.issuers,
    tenant: planTenant(wanted, state, errors),
    roles,
    policies: planPolicies(id, wanted.policies, state.policies, prune, errors),
    issuers,
    webhooks: planWebhooks(id, wanted.webhooks, state.webhooks, prune, webhookHosts, errors),
    budgets: planBudgets(id, wanted.budgets, state.budgets, prune, isAbsent, errors),
    users: userActions,
  };
}

function refuseUnknown(
  names: readonly string[],
  path: string,
  known: (name: string) => boolean,
  errors: SetupError[],
): void {
  for (const name of names) {
    if (!known(name)) errors.push({ path, message: `${NO_SUCH_ROLE.slice(0, -1)}: ${name}.` });
  }
}

/**
 * Returns the stored users for the plan of each tenant: those with its email addresses, and with pruning all its local
 * users. An email address of another tenant's user is an error, unless this setup deletes that user.
 */
function placedUsers(
  setup: Setup,
  current: CurrentState,
  { prune }: SetupOptions,
  errors: SetupError[],
): ReadonlyMap<TenantId, readonly UserRow[]> {
  const places = new Map<string | null, { readonly tenant: TenantId; readonly at: string }>();
  for (const { key: tenant, users } of setup.tenants)
    for (const { key: email, at } of users ?? []) places.set(email, { tenant, at });
  const pruned = new Set(prune ? setup.tenants.filter(({ users }) => users !== undefined).map(({ key }) => key) : []);
  const placed = new Map<TenantId, UserRow[]>(setup.tenants.map(({ key }) => [key, []]));
  for (const user of current.users) {
    const place = places.get(user.email);
    if (place !== undefined && user.source !== 'local') {
      errors.push({
        path: `${place.at}/email`,
        message:
          'This user belongs to a directory or an issuer, which manages the user. Remove the user from the file.',
      });
    } else if (place !== undefined && place.tenant !== user.tenant_id && !pruned.has(user.tenant_id)) {
      const message = `A user of the tenant ${user.tenant_id} has this email address, and users cannot move between tenants. Delete that user first.`;
      errors.push({ path: `${place.at}/email`, message });
    } else {
      placed.get(user.tenant_id)?.push(user);
    }
  }
  return placed;
}

/** A tenant's policy must not have the name of a global policy, including those that the setup does not name. */
function checkTenantPolicyNames(
  { wanted, policies }: TenantPlan,
  global: ReadonlyMap<PolicyName, unknown>,
  errors: SetupError[],
): void {
  for (const { verb, name } of policies) {
    if (verb === 'create' && global.has(name)) {
      errors.push({
        path: `${placeOf(wanted.policies, name)}/name`,
        message: 'A global policy already has this name. Choose another name.',
      });
    }
  }
}

/** A new global policy must not have the name of a tenant's policy, unless this setup deletes that policy. */
async function checkGlobalPolicyNames(
  trx: Transaction,
  setup: Setup,
  global: readonly PolicyAction[],
  tenants: readonly TenantPlan[],
  errors: SetupError[],
): Promise<void> {
  const deleted = new Set(
    tenants.flatMap(({ policies }) =>
      policies.filter((action) => action.verb === 'delete').map((action) => `${action.tenant} ${action.name}`),
    ),
  );
  for (const action of global) {
    if (action.verb !== 'create') continue;
    const owners = await policyOwners(trx, action.name);
    const owner = owners.find((tenant) => tenant !== null && !deleted.has(`${tenant} ${action.name}`));
    if (owner !== undefined) {
      const path = `${placeOf(setup.globalPolicies, action.name)}/name`;
      errors.push({ path, message: `A policy of the tenant ${owner} already has this name. Choose another name.` });
    }
  }
}

function placeOf(policies: readonly WantedPolicy[] | undefined, name: string): string {
  return policies?.find((policy) => policy.key === name)?.at ?? '';
}

function actionsOf(plan: TenantPlan): readonly PlannedAction[] {
  return [
    ...plan.tenant,
    ...plan.roles,
    ...plan.policies,
    ...plan.issuers,
    ...plan.webhooks,
    ...plan.users,
    ...plan.budgets,
  ];
}
