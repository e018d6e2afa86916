/** The rules for a setup as a whole. The API has the same rules for single changes, with the same refusals. */

import { BuiltinRoles } from '../../decision/builtin-roles.ts';
import { compilePolicies, compileTenant } from '../../decision/compile.ts';
import { decideManagement } from '../../decision/management.ts';
import { userWithRoles } from '../../decision/tenant.ts';
import { Refusal } from '../../domain/errors.ts';
import { DEFAULT_TENANT, makeId, type UserId } from '../../domain/ids.ts';
import { ADMIN } from '../../domain/roles.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { StoredIssuer } from '../issuers/queries.ts';
import { rolesOfMapping } from '../issuers/users.ts';
import { type PolicyRow, policyRecord } from '../policies/entity.ts';
import type { TenantRow } from '../tenants/entity.ts';
import { hasActiveKeys, hasUsers } from '../tenants/queries.ts';
import { localAdministrators, usersWithPassword } from '../users/administrator-queries.ts';
import { refuseWithoutAdministrator } from '../users/checks.ts';
import { countActiveUsers } from '../users/queries.ts';
import type { PlannedAction } from './action.ts';
import type { BudgetAction } from './budgets.ts';
import { type IssuerAction, refuseBrokenIssuers } from './issuers.ts';
import { roleHolders } from './queries.ts';
import { valuesByName } from './resource-plan.ts';
import type { PolicyAction, RoleAction } from './rules.ts';
import { quotasAfter, type WantedTenant } from './tenants.ts';
import type { UserAction, UserValues } from './users.ts';
import type { WebhookAction } from './webhooks.ts';

/** The actions for one tenant that a setup names. */
export interface TenantPlan {
  readonly wanted: WantedTenant;
  /** Undefined if the tenant does not exist. */
  readonly stored: TenantRow | undefined;
  readonly policiesBefore: readonly PolicyRow[];
  readonly issuersBefore: readonly StoredIssuer[];
  readonly tenant: readonly PlannedAction[];
  readonly roles: readonly RoleAction[];
  readonly policies: readonly PolicyAction[];
  readonly issuers: readonly IssuerAction[];
  readonly webhooks: readonly WebhookAction[];
  readonly budgets: readonly BudgetAction[];
  readonly users: readonly UserAction[];
}

export interface WholePlan {
  readonly global: readonly PolicyAction[];
  readonly tenants: readonly TenantPlan[];
  /** The tenants that the setup deletes. */
  readonly removedTenants: readonly TenantRow[];
}

/** @throws Refusal `quota_exceeded`, `last_admin`, `would_lock_out`, `in_use`, `already_exists` */
export async function refuseBrokenRules(
  trx: Transaction,
  plan: WholePlan,
  {
    force,
    nowMs,
    setupTokens = false,
  }: { readonly force: boolean; readonly nowMs: number; readonly setupTokens?: boolean },
): Promise<void> {
  const allIssuers = plan.tenants.flatMap(({ issuers }) => issuers);
  for (const tenant of plan.tenants) {
    await refuseRolesInUse(trx, tenant);
    await refuseTooManyUsers(trx, tenant);
    await refuseBrokenIssuers(trx, tenant.wanted.key, tenant.issuersBefore, tenant.issuers, allIssuers);
  }
  await refuseNoAdministrator(trx, plan, setupTokens);
  if (!force) refuseLockOut(plan.global);
  await refuseTenantsInUse(trx, plan.removedTenants, new Date(nowMs));
}

/**
 * A role is deleted only if no user has it afterwards. Users of a directory and users that the setup does not name
 * count as well.
 */
async function refuseRolesInUse(
  trx: Transaction,
  { wanted, policiesBefore, issuersBefore, roles, policies, issuers, users }: TenantPlan,
): Promise<void> {
  const later = new Map<UserId, UserAction>(
    users.flatMap((action) => (action.before === undefined ? [] : [[action.before.id, action]])),
  );
  for (const { verb, name } of roles) {
    if (verb !== 'delete') continue;
    const holders = (await roleHolders(trx, wanted.key, name)).filter(({ id, manual }) => {
      const action = later.get(id);
      if (action === undefined) return true;
      return action.after !== undefined && (!manual || action.after.roles.some((role) => role === name));
    });
    const attached = [...valuesByName(policiesBefore, policies)].filter(([, policy]) =>
      policy.attached_roles.some((role) => role === name),
    );
    const users = holders.map((holder) => `the user ${holder.email ?? holder.id}`);
    const mapping = [...valuesByName(issuersBefore, issuers)].filter(([, issuer]) =>
      rolesOfMapping(issuer.users).some((role) => role === name),
    );
    const having = [
      ...users,
      ...attached.map(([policy]) => `the policy ${policy}`),
      ...mapping.map(([issuer]) => `the issuer ${issuer}`),
    ];
    if (having.length > 0) {
      const some = having.slice(0, 3).join(', ') + (having.length > 3 ? ` and ${having.length - 3} more` : '');
      throw new Refusal(
        'in_use',
        `The role ${name} of the tenant ${wanted.key} cannot be deleted, because ${some} would still have it. Remove it there first.`,
      );
    }
  }
}

/** `max_users` counts active users. The rule applies if the setup adds active users. */
async function refuseTooManyUsers(trx: Transaction, { wanted, stored, users }: TenantPlan): Promise<void> {
  const limit = quotasAfter(wanted, stored).max_users;
  const active = (user: UserValues | undefined): number => (user?.status === 'active' ? 1 : 0);
  const deltas = users.map((action) => active(action.after) - active(action.before));
  if (limit === undefined || !deltas.some((delta) => delta > 0)) return;
  const now = stored === undefined ? 0 : await countActiveUsers(trx, wanted.key);
  const after = deltas.reduce((sum, delta) => sum + delta, now);
  if (after > limit) {
    throw new Refusal(
      'quota_exceeded',
      `The tenant ${wanted.key} may have ${limit} active users, but the file would give it ${after}. Raise max_users or deactivate users.`,
    );
  }
}

/**
 * If there is an administrator who can log in, the setup must leave one. A user that the setup creates can log in if
 * the setup also creates a one-time token for the user.
 */
async function refuseNoAdministrator(trx: Transaction, { tenants }: WholePlan, setupTokens: boolean): Promise<void> {
  const before = await localAdministrators(trx);
  const status = new Map(
    tenants.map(({ wanted, stored }) => [wanted.key, wanted.status ?? stored?.status ?? 'active']),
  );
  const actions = tenants.flatMap(({ wanted, users }) => users.map((action) => ({ ...action, tenant: wanted.key })));
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

function isActive(status: TenantRow['status'] | undefined, stored: boolean): boolean {
  return status === undefined ? stored : status === 'active';
}

/**
 * Rejects a global policy that always denies every administrator `admin:policies`. A policy with conditions is not
 * checked, because it may not apply.
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
  for (const { name, after } of global) {
    if (after === undefined || !isUnconditionalDeny(after)) continue;
    const decision = decideManagement({
      permission: 'admin:policies',
      self: true,
      principal: userWithRoles(PLACEHOLDER, DEFAULT_TENANT, [ADMIN]),
      snapshot: {
        own: tenant,
        effective: tenant,
        global: compilePolicies([policyRecord({ name, ...after })]),
        builtinRoles,
      },
      clientAddress: undefined,
      nowMs: 0,
    });
    if (decision.kind === 'deny') {
      throw new Refusal(
        'would_lock_out',
        `The global policy ${name} would deny admin:policies to every administrator. Use --force to write it anyway.`,
        { policy: name },
      );
    }
  }
}

const PLACEHOLDER = makeId('usr', 0, new Uint8Array(10));

function isUnconditionalDeny({
  effect,
  enabled,
  conditions,
}: Pick<PolicyRow, 'effect' | 'enabled' | 'conditions'>): boolean {
  return effect === 'deny' && enabled && Object.keys(conditions).length === 0;
}

async function refuseTenantsInUse(trx: Transaction, tenants: readonly TenantRow[], now: Date): Promise<void> {
  for (const { id } of tenants) {
    if ((await hasUsers(trx, id)) || (await hasActiveKeys(trx, id, now))) {
      throw new Refusal(
        'in_use',
        `The tenant ${id} cannot be deleted, because it still has users or active keys. Delete the users and revoke the keys first.`,
      );
    }
  }
}
