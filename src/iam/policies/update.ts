/** Updates and deletes policies. A policy keeps its name and its tenant. */

import { isPlatformAdmin } from '../../decision/tenant.ts';
import { parseConditions, validatePatterns, validateResourcePatterns } from '../../decision/validate.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayWritePolicy } from '../caller/escalation.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { escalation, invalidField, orNotFound, throwIfInvalid, valid } from '../caller/refusals.ts';
import { type AuditDraft, change } from '../change/change.ts';
import {
  type PolicyChanges,
  type PolicyResource,
  type PolicyRow,
  type PolicyValues,
  policyResource,
} from './entity.ts';
import { deletePolicyRow, findPolicy, lockPolicy, updatePolicyRow } from './queries.ts';
import { policyNameOf } from './read.ts';
import { attachableRoles, audienceAfter, mayWriteOwner, refuseLockOut } from './rules.ts';

/** @throws Refusal `not_found`, `escalation`, `invalid_field`, `would_lock_out` */
export async function updatePolicy(
  parts: AdminParts,
  caller: Caller,
  text: string,
  changes: PolicyChanges,
  force: boolean,
): Promise<PolicyResource> {
  const entry = { action: 'policy.update', target: { type: 'policy', id: text } } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const policy = await holdPolicy(trx, caller, text);
    checkPreconditions(policyResource(policy));
    refuseOwnerChange(caller, policy, changes.global);
    return rewritePolicy(trx, caller, audit, policy, await policyAfter(trx, policy, changes), force);
  });
}

/** Deletes a policy. Unlike its creation, the removal of a deny policy needs no check against escalation. */
export async function deletePolicy(parts: AdminParts, caller: Caller, text: string): Promise<void> {
  const entry = { action: 'policy.delete', target: { type: 'policy', id: text } } as const;
  await change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const policy = await holdPolicy(trx, caller, text);
    checkPreconditions(policyResource(policy));
    await deletePolicyRow(trx, policy.id);
    audit.tenant = policy.tenant_id ?? undefined;
    audit.before = policyResource(policy);
  });
}

/** @throws Refusal `not_found`, `escalation` for a global policy unless the caller may write it */
export async function holdPolicy(trx: Transaction, caller: HeldCaller, text: string): Promise<PolicyRow> {
  const name = policyNameOf(text);
  await lockPolicy(trx, caller.tenant, name);
  const policy = orNotFound(await findPolicy(trx, caller.tenant, name), 'policy');
  mayWriteOwner(caller, policy.tenant_id);
  return policy;
}

/** Checks the new values of a policy against every rule, and writes them. */
export async function rewritePolicy(
  trx: Transaction,
  caller: HeldCaller,
  audit: AuditDraft,
  before: PolicyRow,
  after: PolicyValues,
  force: boolean,
): Promise<PolicyResource> {
  mayWritePolicy(caller, before, after);
  refuseLockOut(caller, after, force);
  const updated = policyResource(await updatePolicyRow(trx, before.id, after));
  audit.tenant = before.tenant_id ?? undefined;
  audit.before = policyResource(before);
  audit.after = updated;
  return updated;
}

async function policyAfter(trx: Transaction, policy: PolicyRow, changes: PolicyChanges): Promise<PolicyValues> {
  throwIfInvalid([
    ...validatePatterns(changes.actions ?? [], '/actions'),
    ...validateResourcePatterns(changes.resources ?? [], '/resources'),
  ]);
  const audience = audienceAfter(policy, changes.applies_to, changes.attached_roles);
  return {
    ...policy,
    description: changes.description ?? policy.description,
    effect: changes.effect ?? policy.effect,
    actions: changes.actions ?? policy.actions,
    resources: changes.resources ?? policy.resources,
    conditions: changes.conditions === undefined ? policy.conditions : valid(parseConditions(changes.conditions)),
    applies_to: audience.applies_to,
    attached_roles: await attachableRoles(trx, policy.tenant_id, audience.attached_roles),
    mode: changes.mode ?? policy.mode,
    enabled: changes.enabled ?? policy.enabled,
  };
}

function refuseOwnerChange(caller: HeldCaller, policy: PolicyRow, global: boolean | undefined): void {
  if (global === undefined || global === (policy.tenant_id === null)) return;
  if (!isPlatformAdmin(caller.principal))
    throw escalation('Only platform administrators may create, update or delete global policies.');
  throw invalidField('/global', 'A policy cannot change between global and tenant scope. Create another policy.');
}
