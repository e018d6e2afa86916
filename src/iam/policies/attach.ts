/** Attaches policies to roles and detaches them. A repetition has no effect. Preconditions apply to the policy. */

import { parseRoleName, type RoleName, type TenantId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { change } from '../change/change.ts';
import { lockRoles } from '../roles/lock-queries.ts';
import { policyResource } from './entity.ts';
import { existingRole } from './read.ts';
import { attachableRoles } from './rules.ts';
import { holdPolicy, rewritePolicy } from './update.ts';

/**
 * Attaches a policy to a role. A policy that applied to everyone then applies to its attached roles only.
 * @param force attaches it even if it then denies the caller `admin:policies`
 * @throws Refusal `not_found`, `escalation`, `invalid_field` for a global policy and a custom role, `would_lock_out`
 */
export async function attachPolicy(
  parts: AdminParts,
  caller: Caller,
  roleText: string,
  policyText: string,
  force: boolean,
): Promise<void> {
  const entry = { action: 'policy.attach', target: { type: 'policy', id: policyText } } as const;
  await change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const role = await lockedRole(trx, caller.tenant, roleText);
    const policy = await holdPolicy(trx, caller, policyText);
    checkPreconditions(policyResource(policy));
    const attached_roles = await attachableRoles(trx, policy.tenant_id, [...policy.attached_roles, role]);
    await rewritePolicy(trx, caller, audit, policy, { ...policy, applies_to: 'roles', attached_roles }, force);
  });
}

/** Locks the role until the transaction ends. */
async function lockedRole(trx: Transaction, tenant: TenantId, text: string): Promise<RoleName> {
  const name = parseRoleName(text);
  if (name !== undefined) await lockRoles(trx, tenant, [name], 'share');
  return existingRole(trx, tenant, text);
}

/** @throws Refusal `not_found`, `escalation` for a global policy */
export async function detachPolicy(
  parts: AdminParts,
  caller: Caller,
  roleText: string,
  policyText: string,
): Promise<void> {
  const entry = { action: 'policy.detach', target: { type: 'policy', id: policyText } } as const;
  await change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const role = await existingRole(trx, caller.tenant, roleText);
    const policy = await holdPolicy(trx, caller, policyText);
    checkPreconditions(policyResource(policy));
    const attached_roles = policy.attached_roles.filter((attached) => attached !== role);
    await rewritePolicy(trx, caller, audit, policy, { ...policy, attached_roles }, true);
  });
}
