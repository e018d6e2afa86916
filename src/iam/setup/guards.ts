/** The rules that hold for a set-up as a whole, as the API keeps them for single changes. Each throws the API's refusal. */

import { BuiltinRoles } from '../../decision/builtin-roles.ts';
import { compilePolicies, compileTenant } from '../../decision/compile.ts';
import { decideManagement } from '../../decision/management.ts';
import { Refusal } from '../../domain/errors.ts';
import { DEFAULT_TENANT, makeId, type UserId } from '../../domain/ids.ts';
import { ADMIN } from '../../domain/roles.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { NewPolicy, StoredPolicy } from '../policies/queries.ts';
import { recordOf } from '../policies/record.ts';
import { hasActiveKeys, hasUsers, type StoredTenant } from '../tenants/queries.ts';
import { localAdministrators, usersWithPassword } from '../users/administrator-queries.ts';
import { refuseWithoutAdministrator } from '../users/administrators.ts';
import { countActiveUsers } from '../users/queries.ts';
import type { PlannedAction } from './action.ts';
import { type PolicyAction, policiesAfter } from './policies.ts';
import { roleHolders } from './queries.ts';
import type { WantedTenant } from './setup.ts';
import { quotasAfter } from './tenants.ts';
import type { UserAction, UserState } from './users.ts';

/** What a set-up does to one tenant that it names. */
export interface TenantPlan {
  readonly wanted: WantedTenant;
  /** Undefined when there is none yet. */
  readonly stored: StoredTenant | undefined;
  readonly policiesBefore: readonly StoredPolicy[];
  readonly tenant: readonly PlannedAction[];
  readonly roles: readonly PlannedAction[];
  readonly policies: readonly PolicyAction[];
  readonly users: readonly UserAction[];
}

export interface WholePlan {
  readonly global: readonly PolicyAction[];
  readonly tenants: readonly TenantPlan[];
  /** Tenants that are deleted. */
  readonly removedTenants: readonly StoredTenant[];
}

/** @throws Refusal `quota_exceeded`, `last_admin`, `would_lock_out`, `in_use` */
export async function refuseBrokenRules(
  trx: Transaction,
  plan: WholePlan,
  {
    force,
    nowMs,
    setupTokens = false,
  }: { readonly force: boolean; readonly nowMs: number; readonly setupTokens?: boolean },
): Promise<void> {
  for (const tenant of plan.tenants) {
    await refuseRolesInUse(trx, tenant);
    await refuseTooManyUsers(trx, tenant);
  }
  await refuseNoAdministrator(trx, plan, setupTokens);
  if (!force) refuseLockOut(plan.global);
  await refuseTenantsInUse(trx, plan.removedTenants, new Date(nowMs));
}

/** A role is deleted only when nobody has it any more: not users of the directory, nor any that the set-up does not speak of. */
async function refuseRolesInUse(
  trx: Transaction,
  { wanted, policiesBefore, roles, policies, users }: TenantPlan,
): Promise<void> {
  const later = new Map<UserId, UserAction>(
    users.flatMap((action) => (action.before === undefined ? [] : [[action.before.id, action]])),
  );
  for (const { verb, name } of roles) {
    if (verb !== 'delete') continue;
    const holders = (await roleHolders(trx, wanted.id, name)).filter(({ id, byHand }) => {
      const action = later.get(id);
      if (action === undefined) return true;
      return action.after !== undefined && (!byHand || action.after.roles.some((role) => role === name));
    });
    const attached = policiesAfter(policiesBefore, policies).filter((policy) =>
      policy.attachedRoles.some((role) => role === name),
    );
    const users = holders.map((holder) => `the user ${holder.email ?? holder.id}`);
    const having = [...users, ...attached.map((policy) => `the policy ${policy.name}`)];
    if (having.length > 0) {
      const some = having.slice(0, 3).join(', ') + (having.length > 3 ? ` and ${having.length - 3} more` : '');
      throw new Refusal(
        'in_use',
        `The role ${name} of the tenant ${wanted.id} cannot be deleted, because ${some} would still have it. Remove it there first.`,
      );
    }
  }
}

/** `max_users` counts active users, and is asked when a set-up adds some. */
async function refuseTooManyUsers(trx: Transaction, { wanted, stored, users }: TenantPlan): Promise<void> {
  const limit = quotasAfter(wanted, stored).max_users;
  const active = (user: UserState | undefined): number => (user?.status === 'active' ? 1 : 0);
  const deltas = users.map((action) => active(action.after) - active(action.before));
  if (limit === undefined || !deltas.some((delta) => delta > 0)) return;
  const now = stored === undefined ? 0 : await countActiveUsers(trx, wanted.id);
  const after = deltas.reduce((sum, delta) => sum + delta, now);
  if (after > limit) {
    throw new Refusal(
      'quota_exceeded',
      `The tenant ${wanted.id} may have ${limit} active users, but the file would give it ${after}. Raise max_users or deactivate users.`,
    );
  }
}

/** An administrator remains that can log in, if there was one. A user made by this set-up can if it gets a one-time token. */
async function refuseNoAdministrator(trx: Transaction, { tenants }: WholePlan, setupTokens: boolean): Promise<void> {
  const before = await localAdministrators(trx);
  const status = new Map(tenants.map(({ wanted, stored }) => [wanted.id, wanted.status ?? stored?.status ?? 'active']));
  const actions = tenants.flatMap((tenant) => tenant.users);
  const touched = new Set(actions.flatMap((action) => action.before?.id ?? []));
  const withPassword = await usersWithPassword(trx, [...touched]);
  const after = [
    ...before
      .filter((admin) => !touched.has(admin.id))
      .map((admin) => ({ ...admin, tenantActive: isActive(status.get(admin.tenantId), admin.tenantActive) })),
    ...actions
      .filter(({ after: user }) => user?.status === 'active' && user.roles.includes(ADMIN))
      .map(({ tenant, before: user }) => ({
        tenantActive: isActive(status.get(tenant), true),
        hasPassword: user === undefined ? setupTokens : withPassword.has(user.id),
      })),
  ];
  refuseWithoutAdministrator(before, after);
}

function isActive(status: StoredTenant['status'] | undefined, stored: boolean): boolean {
  return status === undefined ? stored : status === 'active';
}

/**
 * A global policy that at any time and from anywhere denies every administrator `admin:policies`. Conditions are not looked at: whom
 * they bind and when, nobody here can say.
 */
function refuseLockOut(global: readonly PolicyAction[]): void {
  // The only principal holds `admin`, whose permissions do not depend on the route table.
  const builtinRoles = new BuiltinRoles([]);
  const tenant = compileTenant({
    id: DEFAULT_TENANT,
    status: 'active',
    settings: {},
    quotas: {},
    roles: [],
    policies: [],
  });
  for (const { policy } of global) {
    if (policy === undefined || !isUnconditionalDeny(policy)) continue;
    const decision = decideManagement({
      permission: 'admin:policies',
      self: true,
      principal: {
        kind: 'user',
        id: NOBODY,
        tenantId: DEFAULT_TENANT,
        roles: [ADMIN],
        platformAdmin: true,
        sessionId: undefined,
      },
      snapshot: { own: tenant, effective: tenant, global: compilePolicies([recordOf(policy)]), builtinRoles },
      clientAddress: undefined,
      nowMs: 0,
    });
    if (decision.kind === 'deny') {
      throw new Refusal(
        'would_lock_out',
        `The global policy ${policy.name} would deny admin:policies to every administrator. Use --force to write it anyway.`,
        { policy: policy.name },
      );
    }
  }
}

const NOBODY = makeId('usr', 0, new Uint8Array(10));

function isUnconditionalDeny(policy: NewPolicy): boolean {
  return policy.effect === 'deny' && policy.enabled && Object.keys(policy.conditions).length === 0;
}

async function refuseTenantsInUse(trx: Transaction, tenants: readonly StoredTenant[], now: Date): Promise<void> {
  for (const { id } of tenants) {
    if ((await hasUsers(trx, id)) || (await hasActiveKeys(trx, id, now))) {
      throw new Refusal(
        'in_use',
        `The tenant ${id} cannot be deleted, because it still has users or active keys. Delete the users and revoke the keys first.`,
      );
    }
  }
}
