/** Updates and deletes custom roles. */

import { parseConstraints, validateConstraints, validatePatterns } from '../../decision/validate.ts';
import { Refusal } from '../../domain/errors.ts';
import { isBuiltinRole } from '../../domain/roles.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayWiden } from '../caller/escalation.ts';
import { orNotFound, throwIfInvalid, valid } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { withoutRole } from '../issuers/entity.ts';
import { issuersMapping, updateIssuerRow } from '../issuers/queries.ts';
import { detachRoleFromAll, isRoleAttached } from '../policies/queries.ts';
import { isRoleGiven } from '../users/queries.ts';
import { type RoleChanges, type RoleResource, type RoleRow, roleRecord, roleResource } from './entity.ts';
import { lockRoles } from './lock-queries.ts';
import { deleteRoleRow, findRole, updateRoleRow } from './queries.ts';
import { roleNameOf } from './read.ts';

/** @throws Refusal `not_found`, `builtin_role`, `invalid_field`, `escalation` */
export async function updateRole(
  parts: AdminParts,
  caller: Caller,
  text: string,
  changes: RoleChanges,
): Promise<RoleResource> {
  throwIfInvalid([
    ...validatePatterns(changes.permissions ?? [], '/permissions'),
    ...validateConstraints(changes.resource_constraints),
  ]);
  const entry = { action: 'role.update', target: { type: 'role', id: text } } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const role = await holdRole(trx, caller, text);
    checkPreconditions(roleResource(role));
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
    audit.before = roleResource(role);
    const updated = roleResource(await updateRoleRow(trx, changed));
    audit.after = updated;
    return updated;
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
