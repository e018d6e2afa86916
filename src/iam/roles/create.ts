/** Creates a custom role. */

import { parseConstraints, validateConstraints, validatePatterns } from '../../decision/validate.ts';
import { Refusal } from '../../domain/errors.ts';
import { parseRoleName } from '../../domain/ids.ts';
import { isBuiltinRole } from '../../domain/roles.ts';
import { brokenConstraint } from '../../store/faults.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayGive } from '../caller/escalation.ts';
import { invalidField, NAME_FORM, tenantGone, throwIfInvalid, valid } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { lockTenant } from '../tenants/queries.ts';
import { type NewRole, type RoleResource, type RoleRow, type RoleValues, roleRecord, roleResource } from './entity.ts';
import { insertRole } from './queries.ts';

/** @throws Refusal `invalid_field`, `already_exists`, `in_use`, `escalation` */
export async function createRole(parts: AdminParts, caller: Caller, request: NewRole): Promise<RoleResource> {
  const values = readNewRole(request);
  const target = { type: 'role', id: values.name } as const;
  return change(parts, caller, { action: 'role.create', target }, async ({ trx, caller, audit }) => {
    mayGive(caller, roleRecord(values));
    if ((await lockTenant(trx, caller.tenant, 'share')) === undefined) throw tenantGone();
    const created = roleResource(await insertUnlessTaken(trx, { ...values, tenant_id: caller.tenant }));
    audit.after = created;
    return created;
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
