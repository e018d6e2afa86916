/**
 * Creates, updates, attaches, detaches and deletes policies. A policy keeps its name and its tenant, which may be none for
 * a global policy.
 */

import { isPlatformAdmin } from '../../decision/tenant.ts';
import { parseConditions, validatePatterns, validateResourcePatterns } from '../../decision/validate.ts';
import { Refusal } from '../../domain/errors.ts';
import { parsePolicyName, parseRoleName, type RoleName, type TenantId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayWritePolicy } from '../caller/escalation.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import {
  escalation,
  invalidField,
  NAME_FORM,
  onlyOneNamed,
  orNotFound,
  tenantGone,
  throwIfInvalid,
  valid,
} from '../caller/refusals.ts';
import { OPERATOR } from '../change/audit-row.ts';
import { type AuditDraft, change, changeAsSystem, recorded } from '../change/change.ts';
import { lockRoles } from '../roles/lock-queries.ts';
import { lockTenant } from '../tenants/queries.ts';
import {
  type NewPolicy,
  type PolicyChanges,
  type PolicyResource,
  type PolicyRow,
  type PolicyValues,
  policyResource,
} from './entity.ts';
import {
  deletePolicyRow,
  findPolicy,
  findPolicyOf,
  insertPolicy,
  isPolicyNameTaken,
  lockPolicy,
  policyOwners,
  reservePolicyName,
  updatePolicyRow,
} from './queries.ts';
import { existingRole, policyNameOf } from './read.ts';
import {
  type Audience,
  attachableRoles,
  audienceAfter,
  initialAudience,
  mayWriteOwner,
  refuseLockOut,
} from './rules.ts';

/**
 * @param force writes the policy even if it denies the caller `admin:policies`
 * @throws Refusal `invalid_field`, `escalation`, `already_exists`, `would_lock_out`
 */
export async function createPolicy(
  parts: AdminParts,
  caller: Caller,
  request: NewPolicy,
  force: boolean,
): Promise<PolicyResource> {
  const { audience, ...values } = readNewPolicy(request);
  const { name } = values;
  const owner = request.global === true ? null : caller.tenant;
  const target = { type: 'policy', id: name } as const;
  return change(parts, caller, { action: 'policy.create', target }, async ({ trx, caller, audit }) => {
    mayWriteOwner(caller, owner);
    if ((await lockTenant(trx, caller.tenant, 'share')) === undefined) throw tenantGone();
    const policy: PolicyValues = {
      ...values,
      tenant_id: owner,
      applies_to: audience.applies_to,
      attached_roles: await attachableRoles(trx, owner, audience.attached_roles),
    };
    mayWritePolicy(caller, undefined, policy);
    await reservePolicyName(trx, name);
    if (await isPolicyNameTaken(trx, owner, name)) throw taken(owner === null);
    refuseLockOut(caller, policy, force);
    const created = policyResource(await insertPolicy(trx, policy));
    audit.tenant = owner ?? undefined;
    return recorded(audit, undefined, created);
  });
}

/** A new policy without the parts that depend on the database. */
interface ReadPolicy extends Omit<PolicyValues, 'tenant_id' | 'applies_to' | 'attached_roles'> {
  readonly audience: Audience;
}

/** @throws Refusal `invalid_field` */
export function readNewPolicy(request: NewPolicy): ReadPolicy {
  const name = parsePolicyName(request.name);
  if (name === undefined) throw invalidField('/name', NAME_FORM);
  const conditions = valid(parseConditions(request.conditions));
  throwIfInvalid([
    ...validatePatterns(request.actions, '/actions'),
    ...validateResourcePatterns(request.resources, '/resources'),
  ]);
  const { description = '', effect, actions, resources, mode = 'enforce', enabled = true } = request;
  const audience = audienceAfter(initialAudience(effect), request.applies_to, request.attached_roles);
  return { name, description, effect, actions, resources, conditions, mode, enabled, audience };
}

function taken(global: boolean): Refusal {
  const detail = global
    ? 'A global policy or a policy of a tenant already has this name. Choose another name.'
    : 'A policy with this name already exists. Choose another name.';
  return new Refusal('already_exists', detail, { param: 'name' });
}

/**
 * @param check rejects values of the changes, beside the rules for all changes
 * @throws Refusal `not_found`, `escalation`, `invalid_field`, `would_lock_out`
 */
export async function updatePolicy(
  parts: AdminParts,
  caller: Caller,
  text: string,
  changes: PolicyChanges,
  force: boolean,
  check?: () => void,
): Promise<PolicyResource> {
  const entry = { action: 'policy.update', target: { type: 'policy', id: text } } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const policy = await holdPolicy(trx, caller, text);
    checkPreconditions(policyResource(policy));
    check?.();
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
  return recorded(audit, policyResource(before), updated);
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

/**
 * Attaches a policy to a role. A repetition has no effect, and preconditions apply to the policy. A policy that applied to everyone then applies to its attached roles only.
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
    const attached_roles = await attachableRoles(trx, policy.tenant_id, [...policy.attached_roles, role]);
    await rewritePolicy(trx, caller, audit, policy, { ...policy, applies_to: 'roles', attached_roles }, force);
    checkPreconditions(policyResource(policy));
  });
}

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

/**
 * Disables a policy for the operator, for example if the policy locks its author out. There is no caller whose
 * permissions count.
 * @param tenant the tenant of the policy; undefined if its name is unique. A global policy is found with any tenant.
 * @returns the policy's tenant; null for a global policy
 * @throws Refusal `not_found`; `invalid_parameter` if several tenants have a policy with that name and no tenant is
 *   named
 */
export async function disablePolicy(
  parts: Pick<AdminParts, 'db' | 'feed' | 'flush'>,
  text: string,
  tenant: TenantId | undefined,
): Promise<TenantId | null> {
  const target = { type: 'policy', id: text } as const;
  return changeAsSystem(parts, OPERATOR, { action: 'policy.disable', target }, async (trx, audit) => {
    const name = policyNameOf(text);
    const owners = (await policyOwners(trx, name)).map((tenant_id) => ({ tenant_id }));
    const { tenant_id: owner } = onlyOneNamed(owners, 'policy', name, tenant);
    const policy = orNotFound(await findPolicyOf(trx, owner, name), 'policy');
    const updated = await updatePolicyRow(trx, policy.id, { ...policy, enabled: false });
    audit.tenant = owner ?? undefined;
    audit.before = policyResource(policy);
    audit.after = policyResource(updated);
    return owner;
  });
}
