/** /v1/iam/tenants */

import { Type } from 'typebox';
import type { Endpoint } from '../../http/endpoint.ts';
import { resourceEndpoints } from '../../http/resource-endpoints.ts';
import type { AdminParts } from '../caller/caller.ts';
import { described } from '../schema/keywords.ts';
import { closed, countedPage, forced, oneOf, only, searchText } from '../schema/schemas.ts';
import type { MeteringParts } from '../usage/parts.ts';
import { newTenant, Tenant, tenantChanges, tenantOrders, tenantStatus } from './entity.ts';
import { getTenant, listTenantsPage } from './read.ts';
import { activateTenant, createTenant, deleteTenant, suspendTenant, updateTenant } from './write.ts';

const listing = Type.Object(
  {
    ...countedPage,
    q: searchText('Any part of the name or id, in any case.'),
    status: Type.Optional(tenantStatus),
    near_limit: only(
      "`true`: tenants that have spent 80 % of the month's tokens, or that run out of them before the reset at the month's pace.",
    ),
    sort: tenantOrders.parameter,
    include: Type.Optional(
      described(oneOf('limits'), '`limits`: each tenant also has its `limits` and its `activity`.'),
    ),
  },
  closed,
);

const tenants = resourceEndpoints({
  path: '/v1/iam/tenants',
  param: 'id',
  type: 'tenant',
  nouns: ['tenant', 'tenants'],
  schema: Tenant,
  permission: 'admin:tenants',
});

export function tenantEndpoints(parts: AdminParts & MeteringParts): readonly Endpoint[] {
  return [
    tenants.list({
      operationId: 'listTenants',
      summary: 'List tenants.',
      query: listing,
      run: ({ caller, query }) => listTenantsPage(parts, caller, query),
    }),
    tenants.create({
      operationId: 'createTenant',
      summary: 'Create a tenant.',
      body: newTenant,
      refusals: ['already_exists'],
      run: ({ caller, body }) => createTenant(parts, caller, body),
    }),
    tenants.get({
      operationId: 'getTenant',
      summary: 'Get a tenant. Platform administrators may get any tenant, other callers their own.',
      permission: 'use-case',
      needs: "`admin:tenants`; for the caller's own tenant `admin:users`",
      run: ({ caller }, id) => getTenant(parts, caller, id),
    }),
    tenants.update({
      operationId: 'updateTenant',
      summary:
        'Update a tenant: the members that are present. `settings` and `quotas` are merged, and null removes a member.',
      body: tenantChanges,
      run: ({ caller, body }, id) => updateTenant(parts, caller, id, body),
    }),
    tenants.delete({
      operationId: 'deleteTenant',
      summary: 'Delete a tenant that has no users and no active keys. Its id cannot be used again.',
      refusals: ['in_use'],
      run: ({ caller }, id) => deleteTenant(parts, caller, id),
    }),
    tenants.action('suspend', {
      operationId: 'suspendTenant',
      summary: 'Suspend a tenant. The server denies its requests until it is activated.',
      query: forced,
      refusals: ['in_use', 'last_admin', 'would_lock_out'],
      run: ({ caller, query }, id) => suspendTenant(parts, caller, id, query.force === true),
    }),
    tenants.action('activate', {
      operationId: 'activateTenant',
      summary: 'Activate a tenant.',
      run: ({ caller }, id) => activateTenant(parts, caller, id),
    }),
  ];
}
