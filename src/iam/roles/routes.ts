/** /v1/iam/roles, with the policies attached to each. */

import { Type } from 'typebox';
import { DONE, shows } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint } from '../../http/endpoint.ts';
import { resourceEndpoints } from '../../http/resource-endpoints.ts';
import type { AdminParts } from '../caller/caller.ts';
import type { CatalogParts } from '../permissions/catalog.ts';
import { noticedRole, refuseUnneeded } from '../permissions/notices.ts';
import { Policy } from '../policies/entity.ts';
import { listRolePoliciesPage } from '../policies/read.ts';
import { attachPolicy, detachPolicy } from '../policies/write.ts';
import { flagOf } from '../schema/keywords.ts';
import { listOf } from '../schema/resource-parts.ts';
import { closed, countedPage, forced, searchText, strictly, tenantFilter, withNotices } from '../schema/schemas.ts';
import { newRole, Role, roleChanges } from './entity.ts';
import { getRole, listRolesPage } from './read.ts';
import { createRole, deleteRole, updateRole } from './write.ts';

const listing = Type.Object(
  {
    ...countedPage,
    ...tenantFilter,
    q: searchText('Any part of the name or description, in any case.'),
    ...withNotices,
    builtin: Type.Optional(flagOf('`true`: only built-in roles. `false`: only custom roles.')),
  },
  closed,
);
const paging = Type.Object({ ...countedPage }, closed);

const ROLE = '/v1/iam/roles/:name';

const roles = resourceEndpoints({
  path: '/v1/iam/roles',
  param: 'name',
  type: 'role',
  nouns: ['role', 'roles'],
  schema: Role,
  permission: 'admin:roles',
});

export function roleEndpoints(parts: AdminParts & CatalogParts): readonly Endpoint[] {
  return [
    roles.list({
      operationId: 'listRoles',
      summary: 'List roles, including the built-in roles.',
      query: listing,
      run: ({ caller, query }) => listRolesPage(parts, caller, query),
    }),
    roles.create({
      operationId: 'createRole',
      summary: 'Create a role.',
      body: newRole,
      query: strictly,
      refusals: ['escalation', 'already_exists', 'in_use', 'quota_exceeded'],
      run: async ({ caller, body, query }) => {
        if (query.strict === true) refuseUnneeded(parts, body.permissions, '/permissions');
        return noticedRole(parts, await createRole(parts, caller, body));
      },
    }),
    roles.get({
      operationId: 'getRole',
      summary: 'Get a role.',
      run: ({ caller }, name) => getRole(parts, caller, name),
    }),
    roles.update({
      operationId: 'updateRole',
      summary: 'Update a role: the members that are present.',
      body: roleChanges,
      query: strictly,
      refusals: ['builtin_role', 'escalation', 'quota_exceeded'],
      run: async ({ caller, body, query }, name) => {
        const check = () => query.strict === true && refuseUnneeded(parts, body.permissions, '/permissions');
        return noticedRole(parts, await updateRole(parts, caller, name, body, check));
      },
    }),
    roles.delete({
      operationId: 'deleteRole',
      summary: 'Delete a role. With `force=true`, users, policies and mappings of issuers that have the role lose it.',
      query: forced,
      refusals: ['builtin_role', 'in_use'],
      run: ({ caller, query }, name) => deleteRole(parts, caller, name, query.force === true),
    }),
    ...attachmentEndpoints(parts),
  ];
}

function attachmentEndpoints(parts: AdminParts & CatalogParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'GET',
      path: `${ROLE}/policies`,
      target: { type: 'role', param: 'name' },
      operationId: 'listRolePolicies',
      summary: 'List the policies attached to a role.',
      permission: 'admin:policies',
      query: paging,
      answers: shows('One page of policies.', listOf(Policy)),
      refusals: ['not_found'],
      run: ({ caller, param, query }) => listRolePoliciesPage(parts, caller, param('name'), query),
    }),
    callerEndpoint({
      method: 'PUT',
      path: `${ROLE}/policies/:policy`,
      target: { type: 'role', param: 'name' },
      operationId: 'attachPolicy',
      summary: 'Attach a policy to a role.',
      permission: 'admin:policies',
      query: forced,
      answers: DONE,
      refusals: ['not_found', 'escalation', 'would_lock_out', 'precondition_failed'],
      run: ({ caller, param, query }) =>
        attachPolicy(parts, caller, param('name'), param('policy'), query.force === true),
    }),
    callerEndpoint({
      method: 'DELETE',
      path: `${ROLE}/policies/:policy`,
      target: { type: 'role', param: 'name' },
      operationId: 'detachPolicy',
      summary: 'Detach a policy from a role.',
      permission: 'admin:policies',
      answers: DONE,
      refusals: ['not_found', 'escalation', 'precondition_failed'],
      run: ({ caller, param }) => detachPolicy(parts, caller, param('name'), param('policy')),
    }),
  ];
}
