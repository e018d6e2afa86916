/** Creates, updates and deletes custom roles. */

import { parseConstraints, validateConstraints, validatePatterns } from '../../decision/validate.ts';
import { Refusal } from '../../domain/errors.ts';
import { parseRoleName } from '../../domain/ids.ts';
import { isBuiltinRole } from '../../domain/roles.ts';
import { brokenConstraint } from '../../store/faults.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayGive, mayWiden } from '../caller/escalation.ts';
import { invalidField, NAME_FORM, orNotFound, tenantGone, throwIfInvalid, valid } from '../caller/refusals.ts';
import { change, recorded } from '../change/change.ts';
import { withoutRole } from '../issuers/entity.ts';
import { issuersMapping, updateIssuerRow } from '../issuers/queries.ts';
import { detachRoleFromAll, isRoleAttached } from '../policies/queries.ts';
import { lockTenant } from '../tenants/queries.ts';
import { isRoleGiven } from '../users/queries.ts';
import {
  type NewRole,
  type RoleChanges,
  type RoleResource,
  type RoleRow,
  type RoleValues,
  roleRecord,
  roleResource,
} from './entity.ts';
import { lockRoles } from './lock-queries.ts';
import { deleteRoleRow, findRole, insertRole, updateRoleRow } from './queries.ts';
import { roleNameOf } from './read.ts';

/** @throws Refusal `invalid_field`, `already_exists`, `in_use`, `escalation` */
export async function createRole(parts: AdminParts, caller: Caller, request: NewRole): Promise<RoleResource> {
  const values = readNewRole(request);
  const target = { type: 'role', id: values.name } as const;
  return change(parts, caller, { action: 'role.create', target }, async ({ trx, caller, audit }) => {
    mayGive(caller, roleRecord(values));
    if ((await lockTenant(trx, caller.tenant, 'share')) === undefined) throw tenantGone();
    const row = await insertUnlessTaken(trx, { ...values, tenant_id: caller.tenant });
    return recorded(audit, undefined, roleResource(row));
  });
}

/**
 * Reads the parts of a new role that do not depend on the database.
 * @throws Refusal `invalid_field`, `already_exists` for the name of a built-in role
 */
export function readNewRole(request: NewRole): Omit<RoleValues, 'tenant_id'> {
  const name = parseRoleName(request.name);
  if (name === undefined) throw invalidField('/name', NAME_FORM);
  if (isBuiltinRole(name)) throw taken();
  throwIfInvalid([
    ...validatePatterns(request.permissions, '/permissions'),
    ...validateConstraints(request.resource_constraints),
  ]);
  return {
    name,
    description: request.description ?? '',
    permissions: request.permissions,
    resource_constraints: valid(parseConstraints(request.resource_constraints)),
  };
}

async function insertUnlessTaken(trx: Transaction, role: RoleValues): Promise<RoleRow> {
  try {
    return await insertRole(trx, role);
  } catch (error) {
    switch (brokenConstraint(error)) {
      case 'roles_pkey':
        throw taken();
      case 'roles_deleted_name':
        throw beingRemoved(role.name);
      default:
        throw error;
    }
  }
}

export function beingRemoved(name: string): Refusal {
  const detail = `A role named ${name} was deleted and is still being removed from its users. Try again in a minute, or choose another name.`;
  return new Refusal('in_use', detail, { param: 'name' });
}

function taken(): Refusal {
  return new Refusal('already_exists', 'A role with this name already exists. Choose another name.', { param: 'name' });
}

/**
 * @param check rejects values of the changes, beside the rules for all changes
 * @throws Refusal `not_found`, `builtin_role`, `invalid_field`, `escalation`
 */
export async function updateRole(
  parts: AdminParts,
  caller: Caller,
  text: string,
  changes: RoleChanges,
  check?: () => void,
): Promise<RoleResource> {
  const entry = { action: 'role.update', target: { type: 'role', id: text } } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const role = await holdRole(trx, caller, text);
    checkPreconditions(roleResource(role));
    check?.();
    throwIfInvalid([
      ...validatePatterns(changes.permissions ?? [], '/permissions'),
      ...validateConstraints(changes.resource_constraints),
    ]);
    const changed = {
      ...role,
      description: changes.description ?? role.description,
      permissions: changes.permissions ?? role.permissions,
      resource_constraints:
        changes.resource_constraints === undefined
          ? role.resource_constraints
          : valid(parseConstraints(changes.resource_constraints)),
    };
    mayWiden(caller, roleRecord(role), roleRecord(changed));
    return recorded(audit, roleResource(role), roleResource(await updateRoleRow(trx, changed)));
  });
}

/**
 * Deletes a role. Its users lose it with the commit, and auth/upkeep.ts removes their rows afterwards.
 * @param force deletes the role even if users, policies or mappings of issuers have it
 * @throws Refusal `not_found`, `builtin_role`, `in_use`
 */
export async function deleteRole(parts: AdminParts, caller: Caller, text: string, force: boolean): Promise<void> {
  const entry = { action: 'role.delete', target: { type: 'role', id: text } } as const;
  await change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const role = await holdRole(trx, caller, text);
    const mappings = await issuersMapping(trx, role.tenant_id, role.name);
    const used =
      mappings.length > 0 ||
      (await isRoleGiven(trx, role.tenant_id, role.name)) ||
      (await isRoleAttached(trx, role.tenant_id, role.name));
    if (used && !force) {
      throw new Refusal(
        'in_use',
        'Users have this role, policies are attached to it, or issuers map to it. Use force=true to remove it from them.',
      );
    }
    checkPreconditions(roleResource(role));
    for (const { id, users } of mappings) await updateIssuerRow(trx, id, { users: withoutRole(users, role.name) });
    await detachRoleFromAll(trx, role.tenant_id, role.name);
    await deleteRoleRow(trx, role.tenant_id, role.name);
    audit.before = roleResource(role);
  });
}

async function holdRole(trx: Transaction, caller: Caller, text: string): Promise<RoleRow> {
  const name = roleNameOf(text);
  if (isBuiltinRole(name)) throw new Refusal('builtin_role', 'Built-in roles cannot be changed or deleted.');
  await lockRoles(trx, caller.tenant, [name], 'update');
  return orNotFound(await findRole(trx, caller.tenant, name), 'role');
}
