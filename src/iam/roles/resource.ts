/** What the API shows of a role. */

import type { ResourceConstraints } from '../../domain/records.ts';
import type { BuiltinRole } from '../../domain/roles.ts';
import type { StoredRole } from './queries.ts';

export interface RoleResource {
  readonly name: string;
  readonly description: string;
  readonly permissions: readonly string[];
  readonly resource_constraints: ResourceConstraints;
  readonly builtin: boolean;
  /** null for built-in roles, which are the same in every tenant. */
  readonly tenant_id: string | null;
  readonly created_at: string | null;
  readonly updated_at: string | null;
}

export function roleResource(role: StoredRole): RoleResource {
  return {
    name: role.name,
    description: role.description,
    permissions: role.permissions,
    resource_constraints: role.constraints,
    builtin: false,
    tenant_id: role.tenantId,
    created_at: role.createdAt.toISOString(),
    updated_at: role.updatedAt.toISOString(),
  };
}

export function builtinResource(role: BuiltinRole): RoleResource {
  return {
    name: role.name,
    description: role.description,
    permissions: role.permissions,
    resource_constraints: {},
    builtin: true,
    tenant_id: null,
    created_at: null,
    updated_at: null,
  };
}
