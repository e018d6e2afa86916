/**
 * No escalation, for use cases: what a change would give, or whom it acts on, is read inside its transaction and compared with what
 * the caller holds there. Each function throws a Refusal `escalation` that names the first thing the caller lacks.
 */

import { compileGrant, compilePolicies, compileTenant } from '../../decision/compile.ts';
import {
  added,
  addedByPolicy,
  firstMissing,
  type PermissionSet,
  permissionsOfCaller,
  permissionsOfGrant,
  permissionsOfKey,
  permissionsOfRole,
  permissionsOfUser,
} from '../../decision/escalation.ts';
import type { TenantView } from '../../decision/model.ts';
import type { PolicySet } from '../../decision/policies.ts';
import type { RoleName, TenantId } from '../../domain/ids.ts';
import type { ResourceConstraints } from '../../domain/records.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { StoredKey } from '../api-keys/queries.ts';
import { enabledAllowPolicies, type NewPolicy, type StoredPolicy } from '../policies/queries.ts';
import { recordOf } from '../policies/record.ts';
import { findRoles } from '../roles/queries.ts';
import { findUser, type StoredUser } from '../users/queries.ts';
import { selfId } from './caller.ts';
import type { HeldCaller } from './hold-caller.ts';
import { escalation } from './refusals.ts';

interface Grantable {
  readonly permissions: readonly string[];
  readonly constraints: ResourceConstraints;
}

/** Making a role, or a key with these scopes. */
export function mayGive(caller: HeldCaller, given: Grantable): void {
  refuseLacking(
    caller,
    permissionsOfGrant(given.permissions, given.constraints),
    'You cannot grant permissions that you do not have:',
  );
}

/** Changing a role or a key: what it adds counts. */
export function mayWiden(caller: HeldCaller, before: Grantable, after: Grantable): void {
  const given = added(
    permissionsOfGrant(after.permissions, after.constraints),
    permissionsOfGrant(before.permissions, before.constraints),
  );
  refuseLacking(caller, given, 'You cannot grant permissions that you do not have:');
}

/** Making or changing a policy, or attaching it: what an allow adds counts. */
export function mayWritePolicy(caller: HeldCaller, before: NewPolicy | undefined, after: NewPolicy): void {
  refuseLacking(
    caller,
    addedByPolicy(before && recordOf(before), recordOf(after)),
    'You cannot allow permissions that you do not have:',
  );
}

/** Giving roles of the caller's effective tenant; their attached allow policies count. */
export async function mayGiveRoles(trx: Transaction, caller: HeldCaller, roles: readonly RoleName[]): Promise<void> {
  if (roles.length === 0) return;
  const { own, global } = await loadTenantView(trx, caller.tenant, roles);
  for (const role of roles)
    refuseLacking(
      caller,
      permissionsOfRole(role, own, global),
      `The role ${role} grants permissions that you do not have:`,
    );
}

/**
 * Changing a user in any way. Nobody is stronger than oneself.
 * @param allowPolicies the enabled allow policies of the user's tenant and the global ones, where they are at hand
 */
export async function mayActOnUser(
  trx: Transaction,
  caller: HeldCaller,
  user: StoredUser,
  allowPolicies?: readonly StoredPolicy[],
): Promise<void> {
  if (user.id === selfId(caller)) return;
  const roles = [...user.roles, ...user.directoryRoles];
  const { own, global } = await loadTenantView(trx, user.tenantId, roles, allowPolicies);
  refuseLacking(caller, permissionsOfUser(roles, own, global), 'The user has permissions that you do not have:');
}

/** Revoking a key. Its owner always may, and a key itself. @param allowPolicies as for `mayActOnUser` */
export async function mayActOnKey(
  trx: Transaction,
  caller: HeldCaller,
  key: StoredKey,
  allowPolicies?: readonly StoredPolicy[],
): Promise<void> {
  if (isOwnKey(caller, key)) return;
  const owner = key.userId === undefined ? undefined : await findUser(trx, key.tenantId, key.userId);
  const roles = owner && [...owner.roles, ...owner.directoryRoles];
  const { own, global } = await loadTenantView(trx, key.tenantId, roles ?? [], allowPolicies);
  const given = permissionsOfKey(compileGrant(key.scopes, key.constraints), roles, own, global);
  refuseLacking(caller, given, 'The key has permissions that you do not have:');
}

/** Updating or rotating a key, which acts on its owner too. */
export async function mayChangeKey(trx: Transaction, caller: HeldCaller, key: StoredKey): Promise<void> {
  if (isOwnKey(caller, key)) return;
  await mayActOnKey(trx, caller, key);
  const owner = key.userId === undefined ? undefined : await findUser(trx, key.tenantId, key.userId);
  if (owner !== undefined) await mayActOnUser(trx, caller, owner);
}

function isOwnKey(caller: HeldCaller, key: StoredKey): boolean {
  return caller.principal.id === key.id || (key.userId !== undefined && key.userId === selfId(caller));
}

function refuseLacking(caller: HeldCaller, given: PermissionSet, messagePrefix: string): void {
  const pattern = firstMissing(permissionsOfCaller(caller.principal, caller.snapshot), given);
  if (pattern !== undefined) throw escalation(`${messagePrefix} ${pattern}.`);
}

/** The part of a tenant that powers are read from, as the transaction sees it: these roles and all allow policies in force. */
async function loadTenantView(
  trx: Transaction,
  tenant: TenantId,
  names: readonly RoleName[],
  allowPolicies?: readonly StoredPolicy[],
): Promise<{ readonly own: TenantView; readonly global: PolicySet }> {
  const roles = await findRoles(trx, tenant, names);
  const policies = allowPolicies ?? (await enabledAllowPolicies(trx, tenant));
  const own = compileTenant({
    id: tenant,
    status: 'active',
    settings: {},
    quotas: {},
    roles,
    policies: policies.filter((policy) => policy.tenantId !== undefined).map(recordOf),
  });
  return { own, global: compilePolicies(policies.filter((policy) => policy.tenantId === undefined).map(recordOf)) };
}
