/** Making a custom role. */

import { parseConstraints, validateConstraints, validatePatterns } from '../../decision/validate.ts';
import { Refusal } from '../../domain/errors.ts';
import { parseRoleName, type RoleName } from '../../domain/ids.ts';
import { isBuiltinRole } from '../../domain/roles.ts';
import { brokenConstraint } from '../../store/faults.ts';
import type { DatabaseTime } from '../../store/time.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayGive } from '../caller/escalation.ts';
import { invalidField, tenantGone, throwIfInvalid, valid } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { shareTenantNow } from '../tenants/queries.ts';
import { insertRole, type NewRole } from './queries.ts';
import { type RoleResource, roleResource } from './resource.ts';

export interface NewRoleRequest {
  readonly name: string;
  readonly description?: string;
  readonly permissions: readonly string[];
  readonly resource_constraints?: unknown;
}

/** @throws Refusal `invalid_field`, `already_exists`, `in_use`, `escalation` */
export async function createRole(parts: AdminParts, caller: Caller, request: NewRoleRequest): Promise<RoleResource> {
  const { name, constraints } = readNewRole(request);
  return change(
    parts,
    caller,
    { action: 'role.create', target: { type: 'role', id: name } },
    async ({ trx, caller, audit }) => {
      mayGive(caller, { permissions: request.permissions, constraints });
      const held = await shareTenantNow(trx, caller.tenant);
      if (held === undefined) throw tenantGone();
      const { at } = held;
      const { description = '', permissions } = request;
      const role: NewRole = { tenantId: caller.tenant, name, description, permissions, constraints };
      await insertUnlessTaken(trx, role, at);
      const made = roleResource({ ...role, createdAt: at.date, updatedAt: at.date });
      audit.after = made;
      return made;
    },
  );
}

/**
 * What can be told of a new role from its request alone.
 * @throws Refusal `invalid_field`, `already_exists` for the name of a built-in role
 */
export function readNewRole(request: NewRoleRequest): Pick<NewRole, 'name' | 'constraints'> {
  const name = newRoleName(request.name);
  throwIfInvalid([
    ...validatePatterns(request.permissions, '/permissions'),
    ...validateConstraints(request.resource_constraints),
  ]);
  return { name, constraints: valid(parseConstraints(request.resource_constraints)) };
}

function newRoleName(text: string): RoleName {
  const name = parseRoleName(text);
  if (name === undefined)
    throw invalidField(
      '/name',
      'A name must be 1 to 63 lowercase letters, digits, _ or -, and must start with a letter.',
    );
  if (isBuiltinRole(name)) throw taken();
  return name;
}

async function insertUnlessTaken(trx: Transaction, role: NewRole, at: DatabaseTime): Promise<void> {
  try {
    await insertRole(trx, role, at);
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
