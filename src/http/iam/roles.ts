/** /v1/iam/roles, with the policies attached to each. */

import { Type } from 'typebox';
import type { AdminParts } from '../../admin/caller.ts';
import { attachPolicy, detachPolicy } from '../../admin/policies/attach.ts';
import { listRolePoliciesPage } from '../../admin/policies/read.ts';
import { createRole } from '../../admin/roles/create.ts';
import { getRole, listRolesPage } from '../../admin/roles/read.ts';
import { deleteRole, updateRole } from '../../admin/roles/update.ts';
import { callerRoute, NOTHING, type Route } from '../route.ts';
import { closed, description, forced, page, patterns, resourceConstraints, tenantFilter } from './schemas.ts';

const listing = Type.Object({ ...page, ...tenantFilter }, closed);
const paging = Type.Object({ ...page }, closed);

const newRole = Type.Object(
  {
    name: Type.String({ maxLength: 64 }),
    description: Type.Optional(description),
    permissions: patterns,
    resource_constraints: Type.Optional(resourceConstraints),
  },
  closed,
);

const changes = Type.Object(
  {
    description: Type.Optional(description),
    permissions: Type.Optional(patterns),
    resource_constraints: Type.Optional(resourceConstraints),
  },
  closed,
);

const ROLES = '/v1/iam/roles';
const ROLE = '/v1/iam/roles/:name';

export function roleRoutes(parts: AdminParts): readonly Route[] {
  return [
    callerRoute({
      method: 'GET',
      path: ROLES,
      summary: 'List roles, built-in ones among them.',
      permission: 'admin:roles',
      body: NOTHING,
      query: listing,
      handler: async ({ caller, query }) => ({ status: 200, body: await listRolesPage(parts, caller, query) }),
    }),
    callerRoute({
      method: 'POST',
      path: ROLES,
      summary: 'Make a role.',
      permission: 'admin:roles',
      body: newRole,
      query: NOTHING,
      handler: async ({ caller, body }) => {
        const role = await createRole(parts, caller, body);
        return { status: 201, body: role, headers: { location: `${ROLES}/${role.name}` } };
      },
    }),
    callerRoute({
      method: 'GET',
      path: ROLE,
      summary: 'Get a role.',
      permission: 'admin:roles',
      body: NOTHING,
      query: NOTHING,
      handler: async ({ caller, param }) => ({ status: 200, body: await getRole(parts, caller, param('name')) }),
    }),
    callerRoute({
      method: 'PUT',
      path: ROLE,
      summary: 'Change a role: the members that are present.',
      permission: 'admin:roles',
      body: changes,
      query: NOTHING,
      handler: async ({ caller, param, body }) => ({ status: 200, body: await updateRole(parts, caller, param('name'), body) }),
    }),
    callerRoute({
      method: 'DELETE',
      path: ROLE,
      summary: 'Delete a role; with force=true also from the users and policies that have it.',
      permission: 'admin:roles',
      body: NOTHING,
      query: forced,
      handler: async ({ caller, param, query }) => {
        await deleteRole(parts, caller, param('name'), query.force === true);
        return { status: 204 };
      },
    }),
    ...attachmentRoutes(parts),
  ];
}

function attachmentRoutes(parts: AdminParts): readonly Route[] {
  return [
    callerRoute({
      method: 'GET',
      path: `${ROLE}/policies`,
      summary: 'List the policies attached to a role.',
      permission: 'admin:policies',
      body: NOTHING,
      query: paging,
      handler: async ({ caller, param, query }) => ({
        status: 200,
        body: await listRolePoliciesPage(parts, caller, param('name'), query),
      }),
    }),
    callerRoute({
      method: 'PUT',
      path: `${ROLE}/policies/:policy`,
      summary: 'Attach a policy to a role.',
      permission: 'admin:policies',
      body: NOTHING,
      query: forced,
      handler: async ({ caller, param, query }) => {
        await attachPolicy(parts, caller, param('name'), param('policy'), query.force === true);
        return { status: 204 };
      },
    }),
    callerRoute({
      method: 'DELETE',
      path: `${ROLE}/policies/:policy`,
      summary: 'Detach a policy from a role.',
      permission: 'admin:policies',
      body: NOTHING,
      query: NOTHING,
      handler: async ({ caller, param }) => {
        await detachPolicy(parts, caller, param('name'), param('policy'));
        return { status: 204 };
      },
    }),
  ];
}
