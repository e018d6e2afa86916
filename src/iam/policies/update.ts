/** Changing and deleting policies. A policy keeps its name and its owner. */

import { isPlatformAdmin } from '../../decision/tenant.ts';
import { parseConditions, validatePatterns, validateResourcePatterns } from '../../decision/validate.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayWritePolicy } from '../caller/escalation.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { escalation, invalidField, notFound, throwIfInvalid, valid } from '../caller/refusals.ts';
import { type AuditDraft, change } from '../change/change.ts';
import type { NewPolicyRequest } from './create.ts';
import {
  findPolicy,
  lockPolicy,
  type NewPolicy,
  deletePolicy as removePolicy,
  type StoredPolicy,
  setAttachedRoles,
  updatePolicy as writePolicy,
} from './queries.ts';
import { policyNameOf } from './read.ts';
import { type PolicyResource, policyResource } from './resource.ts';
import { attachableRoles, audienceAfter, mayWriteOwner, refuseLockOut } from './rules.ts';

/** Absent members stay as they are. */
export type PolicyChanges = Partial<Omit<NewPolicyRequest, 'name'>>;

/** @throws Refusal `not_found`, `escalation`, `invalid_field`, `would_lock_out` */
export async function updatePolicy(
  parts: AdminParts,
  caller: Caller,
  text: string,
  changes: PolicyChanges,
  force: boolean,
): Promise<PolicyResource> {
  return change(
    parts,
    caller,
    { action: 'policy.update', target: { type: 'policy', id: text } },
    async ({ trx, caller, audit, checkPreconditions }) => {
      const policy = await holdPolicy(trx, caller, text);
      checkPreconditions(policyResource(policy));
      refuseOwnerChange(caller, policy, changes.global);
      return rewritePolicy(trx, caller, audit, policy, await policyAfter(trx, policy, changes), force);
    },
  );
}

/** Detaching or deleting a deny is no escalation. */
export async function deletePolicy(parts: AdminParts, caller: Caller, text: string): Promise<void> {
  await change(
    parts,
    caller,
    { action: 'policy.delete', target: { type: 'policy', id: text } },
    async ({ trx, caller, audit, checkPreconditions }) => {
      const policy = await holdPolicy(trx, caller, text);
      checkPreconditions(policyResource(policy));
      await removePolicy(trx, policy.number);
      audit.tenant = policy.tenantId;
      audit.before = policyResource(policy);
    },
  );
}

/** @throws Refusal `not_found`, `escalation` for a global policy and a caller who may not write it */
export async function holdPolicy(trx: Transaction, caller: HeldCaller, text: string): Promise<StoredPolicy> {
  const name = policyNameOf(text);
  await lockPolicy(trx, caller.tenant, name);
  const policy = await findPolicy(trx, caller.tenant, name);
  if (policy === undefined) throw notFound('policy');
  mayWriteOwner(caller, policy.tenantId);
  return policy;
}

/** Checks the policy as it would become against every rule, and writes it. */
export async function rewritePolicy(
  trx: Transaction,
  caller: HeldCaller,
  audit: AuditDraft,
  before: StoredPolicy,
  after: NewPolicy,
  force: boolean,
): Promise<PolicyResource> {
  mayWritePolicy(caller, before, after);
  refuseLockOut(caller, after, force);
  await writePolicy(trx, before.number, after);
  await setAttachedRoles(trx, before.number, after.attachedRoles);
  const written = await findPolicy(trx, caller.tenant, before.name);
  if (written === undefined) throw notFound('policy');
  audit.tenant = before.tenantId;
  audit.before = policyResource(before);
  audit.after = policyResource(written);
  return policyResource(written);
}

async function policyAfter(trx: Transaction, policy: StoredPolicy, changes: PolicyChanges): Promise<NewPolicy> {
  throwIfInvalid([
    ...validatePatterns(changes.actions ?? [], '/actions'),
    ...validateResourcePatterns(changes.resources ?? [], '/resources'),
  ]);
  const before = { appliesTo: policy.appliesTo, roles: policy.attachedRoles };
  const audience = audienceAfter(before, changes.applies_to, changes.attached_roles);
  return {
    tenantId: policy.tenantId,
    name: policy.name,
    description: changes.description ?? policy.description,
    effect: changes.effect ?? policy.effect,
    actions: changes.actions ?? policy.actions,
    resources: changes.resources ?? policy.resources,
    conditions: changes.conditions === undefined ? policy.conditions : valid(parseConditions(changes.conditions)),
    appliesTo: audience.appliesTo,
    attachedRoles: await attachableRoles(trx, policy.tenantId, audience.roles),
    enabled: changes.enabled ?? policy.enabled,
  };
}

function refuseOwnerChange(caller: HeldCaller, policy: StoredPolicy, global: boolean | undefined): void {
  if (global === undefined || global === (policy.tenantId === undefined)) return;
  if (!isPlatformAdmin(caller.principal))
    throw escalation('Only platform administrators may create, update or delete global policies.');
  throw invalidField('/global', 'A policy cannot change between global and tenant scope. Create another policy.');
}
