/** The definition of a custom role, and the form in which the API shows custom and built-in roles. */

import { type Static, Type } from 'typebox';
import type { RoleName } from '../../domain/ids.ts';
import type { RoleRecord } from '../../domain/records.ts';
import type { BuiltinRole } from '../../domain/roles.ts';
import {
  changesComponent,
  column,
  converted,
  derived,
  newComponent,
  type ResourceOf,
  type RowOf,
  resourceOf,
  shownComponent,
} from '../schema/entity.ts';
import { aName } from '../schema/grammar.ts';
import { nullable, shownTextOrNull } from '../schema/keywords.ts';
import { Constraints, instant, notices, tenantId, text, texts } from '../schema/resource-parts.ts';
import { description, patterns, resourceConstraints } from '../schema/schemas.ts';

export const role = {
  name: column(Type.Unsafe<RoleName>(Type.String()), {
    accepts: Type.String({ maxLength: 64, ...aName }),
    changes: false,
  }),
  description: column(text, { accepts: Type.Optional(description), changes: true }),
  permissions: column(texts, { accepts: patterns, changes: true }),
  resource_constraints: column(Constraints, { accepts: Type.Optional(resourceConstraints), changes: true }),
  builtin: derived(Type.Boolean()),
  tenant_id: converted(tenantId, shownTextOrNull('Null for built-in roles, which are the same in every tenant.')),
  created_at: converted(instant, nullable(instant)),
  updated_at: converted(instant, nullable(instant)),
};

export interface RoleRow extends RowOf<typeof role> {}
/** The columns that a change sets. */
export type RoleValues = Omit<RoleRow, 'created_at' | 'updated_at'>;
export type RoleResource = ResourceOf<typeof role>;

export const Role = shownComponent('Role', role, notices);

export const newRole = newComponent('NewRole', role, {
  examples: [
    { name: 'support', permissions: ['chat:*', 'models:read'], resource_constraints: { models: ['llama-*'] } },
  ],
});
export type NewRole = Static<typeof newRole>;

export const roleChanges = changesComponent('RoleChanges', role, {
  examples: [{ description: 'Members of the support team.' }],
});
export type RoleChanges = Static<typeof roleChanges>;

export function roleResource(row: RoleRow): RoleResource {
  const { tenant_id, created_at, updated_at } = row;
  return resourceOf(role, row, { builtin: false, tenant_id, created_at, updated_at });
}

export function builtinResource({ name, description: text, permissions }: BuiltinRole): RoleResource {
  return {
    name,
    description: text,
    permissions,
    resource_constraints: {},
    builtin: true,
    tenant_id: null,
    created_at: null,
    updated_at: null,
  };
}

/** Returns the part of a role that decisions read. */
export function roleRecord({
  name,
  permissions,
  resource_constraints: constraints,
}: Omit<RoleValues, 'tenant_id'>): RoleRecord {
  return { name, permissions, constraints };
}
