/** Attaching policies to roles and detaching them. Both may be said again without effect. Preconditions look at the policy: it is what changes. */

import { parseRoleName, type RoleName, type TenantId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { change } from '../change/change.ts';
import { lockRoles } from '../roles/queries.ts';
import { existingRole } from './read.ts';
import { policyResource } from './resource.ts';
import { attachableRoles } from './rules.ts';
import { holdPolicy, rewritePolicy } from './update.ts';

/**
 * From then on the policy applies to its attached roles, also when it applied to everyone before.
 * @param force attaches it even when it then denies its author `admin:policies`
 * @throws Refusal `not_found`, `escalation`, `invalid_field` for a global policy and a custom role, `would_lock_out`
 */
export async function attachPolicy(
  parts: AdminParts,
  caller: Caller,
  roleText: string,
  policyText: string,
  force: boolean,
): Promise<void> {
  await change(
    parts,
    caller,
    { action: 'policy.attach', target: { type: 'policy', id: policyText } },
    async ({ trx, caller, audit, checkPreconditions }) => {
      const role = await heldRole(trx, caller.tenant, roleText);
      const policy = await holdPolicy(trx, caller, policyText);
      checkPreconditions(policyResource(policy));
      const attachedRoles = await attachableRoles(trx, policy.tenantId, [...policy.attachedRoles, role]);
      await rewritePolicy(trx, caller, audit, policy, { ...policy, appliesTo: 'roles', attachedRoles }, force);
    },
  );
}

/** It stays until the transaction ends. */
async function heldRole(trx: Transaction, tenant: TenantId, text: string): Promise<RoleName> {
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
  await change(
    parts,
    caller,
    { action: 'policy.detach', target: { type: 'policy', id: policyText } },
    async ({ trx, caller, audit, checkPreconditions }) => {
      const role = await existingRole(trx, caller.tenant, roleText);
      const policy = await holdPolicy(trx, caller, policyText);
      checkPreconditions(policyResource(policy));
      const attachedRoles = policy.attachedRoles.filter((attached) => attached !== role);
      await rewritePolicy(trx, caller, audit, policy, { ...policy, attachedRoles }, true);
    },
  );
}
