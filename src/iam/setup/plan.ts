/** The difference between a set-up and the database, as actions; or what stands in the way. Nothing is written here. */

import { DEFAULT_TENANT, type TenantId } from '../../domain/ids.ts';
import { isBuiltinRole } from '../../domain/roles.ts';
import type { Transaction } from '../../store/transaction.ts';
import { type NewPolicy, policyOwners } from '../policies/queries.ts';
import type { StoredUser } from '../users/queries.ts';
import type { PlannedAction } from './action.ts';
import { type CurrentState, type PruneOptions, readCurrentState, type TenantState } from './current-state.ts';
import { refuseBrokenRules, type TenantPlan } from './guards.ts';
import { type PolicyAction, policiesAfter, policyActions } from './policies.ts';
import { NO_SUCH_ROLE, type SetupError } from './read.ts';
import { roleActions, roleNamesAfter } from './roles.ts';
import type { Setup, WantedPolicy, WantedTenant } from './setup.ts';
import { tenantActions, tenantDeletion } from './tenants.ts';
import { userActions } from './users.ts';

export interface SetupOptions extends PruneOptions {
  /** Write it even when it then locks every administrator out. */
  readonly force: boolean;
  /** Make a one-time token for each user that is made, unless it is deactivated. Default: false. */
  readonly setupTokens?: boolean;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
}

export type Plan =
  /** In the order in which the document speaks of the things. */
  | { readonly kind: 'plan'; readonly actions: readonly PlannedAction[] }
  | { readonly kind: 'errors'; readonly errors: readonly SetupError[] };

/**
 * @param hold keeps all that the plan rests on as it is until the transaction ends
 * @throws Refusal `quota_exceeded`, `last_admin`, `would_lock_out`, `in_use`
 */
export async function planSetup(trx: Transaction, setup: Setup, options: SetupOptions, hold: boolean): Promise<Plan> {
  const current = await readCurrentState(trx, setup, options, hold);
  const errors: SetupError[] = [];
  const global = policyActions(undefined, setup.globalPolicies, current.globalPolicies, options.prune, errors);
  const globalAfter = policiesAfter(current.globalPolicies, global);
  const users = placedUsers(setup, current, options, errors);
  const tenants = setup.tenants.map((wanted) =>
    planTenant(wanted, current.tenants.get(wanted.id) ?? NOTHING, users.get(wanted.id) ?? [], options, errors),
  );
  for (const tenant of tenants) checkTenantPolicyNames(tenant, globalAfter, errors);
  await checkGlobalPolicyNames(trx, setup, global, tenants, errors);
  if (errors.length > 0) return { kind: 'errors', errors };

  // The first tenant stays, whoever names it or not.
  const removedTenants = current.otherTenants.filter((tenant) => tenant.id !== DEFAULT_TENANT);
  await refuseBrokenRules(trx, { global, tenants, removedTenants }, options);
  return { kind: 'plan', actions: [...global, ...tenants.flatMap(actionsOf), ...removedTenants.map(tenantDeletion)] };
}

const NOTHING: TenantState = { tenant: undefined, deleted: false, roles: [], policies: [] };

function planTenant(
  wanted: WantedTenant,
  has: TenantState,
  users: readonly StoredUser[],
  { prune }: SetupOptions,
  errors: SetupError[],
): TenantPlan {
  const roles = roleActions(wanted.id, wanted.roles, has.roles, prune, errors);
  const names = roleNamesAfter(has.roles, roles);
  const known = (name: string) => isBuiltinRole(name) || names.has(name);
  for (const policy of wanted.policies ?? [])
    refuseUnknown(policy.attachedRoles ?? [], `${policy.at}/attached_roles`, known, errors);
  for (const user of wanted.users ?? []) refuseUnknown(user.roles ?? [], `${user.at}/roles`, known, errors);
  return {
    wanted,
    stored: has.tenant,
    policiesBefore: has.policies,
    tenant: tenantActions(wanted, has, errors),
    roles,
    policies: policyActions(wanted.id, wanted.policies, has.policies, prune, errors),
    users: userActions(wanted, users, prune, errors),
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
 * The stored users by the tenant whose plan they belong to: those of its addresses, and with pruning all its own. An address of a user
 * whom this set-up does not take away is an error.
 */
function placedUsers(
  setup: Setup,
  current: CurrentState,
  { prune }: SetupOptions,
  errors: SetupError[],
): ReadonlyMap<TenantId, readonly StoredUser[]> {
  const places = new Map<string | null, { readonly tenant: TenantId; readonly at: string }>();
  for (const { id, users } of setup.tenants)
    for (const { email, at } of users ?? []) places.set(email, { tenant: id, at });
  const going = new Set(prune ? setup.tenants.filter(({ users }) => users !== undefined).map(({ id }) => id) : []);
  const placed = new Map<TenantId, StoredUser[]>(setup.tenants.map(({ id }) => [id, []]));
  for (const user of current.users) {
    const place = places.get(user.email);
    if (place !== undefined && user.source !== 'local') {
      errors.push({
        path: `${place.at}/email`,
        message: 'This user belongs to a directory, which manages the user. Remove the user from the file.',
      });
    } else if (place !== undefined && place.tenant !== user.tenantId && !going.has(user.tenantId)) {
      const message = `A user of the tenant ${user.tenantId} has this email address, and users cannot move between tenants. Delete that user first.`;
      errors.push({ path: `${place.at}/email`, message });
    } else {
      placed.get(user.tenantId)?.push(user);
    }
  }
  return placed;
}

/** A tenant's policy has no global one's name, also not one's that the set-up does not speak of. */
function checkTenantPolicyNames(
  { wanted, policies }: TenantPlan,
  global: readonly NewPolicy[],
  errors: SetupError[],
): void {
  const names = new Set<string>(global.map((policy) => policy.name));
  for (const { verb, name } of policies) {
    if (verb === 'create' && names.has(name)) {
      errors.push({
        path: `${placeOf(wanted.policies, name)}/name`,
        message: 'A global policy already has this name. Choose another name.',
      });
    }
  }
}

/** A global policy has no name of any tenant's policy, unless that one goes. */
async function checkGlobalPolicyNames(
  trx: Transaction,
  setup: Setup,
  global: readonly PolicyAction[],
  tenants: readonly TenantPlan[],
  errors: SetupError[],
): Promise<void> {
  const going = new Set(
    tenants.flatMap(({ policies }) =>
      policies.filter((action) => action.verb === 'delete').map((action) => `${action.tenant} ${action.name}`),
    ),
  );
  for (const action of global) {
    if (action.verb !== 'create' || action.policy === undefined) continue;
    const owners = await policyOwners(trx, action.policy.name);
    const owner = owners.find((tenant) => tenant !== undefined && !going.has(`${tenant} ${action.name}`));
    if (owner !== undefined) {
      const path = `${placeOf(setup.globalPolicies, action.name)}/name`;
      errors.push({ path, message: `A policy of the tenant ${owner} already has this name. Choose another name.` });
    }
  }
}

function placeOf(policies: readonly WantedPolicy[] | undefined, name: string): string {
  return policies?.find((policy) => policy.name === name)?.at ?? '';
}

function actionsOf(plan: TenantPlan): readonly PlannedAction[] {
  return [...plan.tenant, ...plan.roles, ...plan.policies, ...plan.users];
}
