/** The built-in roles: the same in every tenant, never stored, never edited. */

import type { RoleName } from './ids.ts';

export interface BuiltinRole {
  readonly name: RoleName;
  readonly description: string;
  readonly permissions: readonly string[];
}

export const ADMIN = 'admin' as RoleName;
export const TENANT_ADMIN = 'tenant-admin' as RoleName;

export const BUILTIN_ROLES: readonly BuiltinRole[] = [
  { name: ADMIN, description: 'Administrator of the platform: full access to all resources.', permissions: ['*'] },
  {
    // And `<resource>:*` for every other resource of the route table: see decision/builtin-roles.ts.
    name: TENANT_ADMIN,
    description: 'Administrator of one tenant.',
    permissions: [
      'chat:*',
      'embeddings:*',
      'models:*',
      'rag:*',
      'agents:*',
      'finetuning:*',
      '*:read',
      'audit:read',
      'usage:read',
      'usage:write',
      'admin:*',
    ],
  },
  {
    name: 'developer' as RoleName,
    description: 'Developer.',
    permissions: ['chat:*', 'embeddings:*', 'rag:*', 'agents:*'],
  },
  { name: 'analyst' as RoleName, description: 'Analyst.', permissions: ['*:read', 'rag:query'] },
  { name: 'ml-engineer' as RoleName, description: 'ML engineer.', permissions: ['models:*', 'finetuning:*', 'chat:*'] },
  { name: 'auditor' as RoleName, description: 'Auditor.', permissions: ['audit:read', 'usage:read'] },
];

const NAMES: ReadonlySet<string> = new Set(BUILTIN_ROLES.map((role) => role.name));

export function isBuiltinRole(name: string): boolean {
  return NAMES.has(name);
}
