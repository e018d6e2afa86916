/** /v1/iam/tenants */

import { Type } from 'typebox';
import { DONE, makes, shows, TAGGED } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint, NOTHING } from '../../http/endpoint.ts';
import type { AdminParts } from '../caller/caller.ts';
import { aTenantId } from '../schema/grammar.ts';
import { component, nullable } from '../schema/keywords.ts';
import { listOf } from '../schema/resource-parts.ts';
import { Tenant } from '../schema/resources.ts';
import { closed, countedPage, forced, limitOrNull, metadata, oneOf, title } from '../schema/schemas.ts';
import { createTenant } from './create.ts';
import { getTenant, listTenantsPage } from './read.ts';
import { activateTenant, deleteTenant, suspendTenant, updateTenant } from './update.ts';

const settings = Type.Object(
  {
    default_model: Type.Optional(nullable(title(512))),
    max_tokens_per_request: Type.Optional(limitOrNull),
    rate_limit_rpm: Type.Optional(limitOrNull),
    timezone: Type.Optional(
      nullable(Type.String({ maxLength: 64, description: 'A name of the IANA time zone database.' })),
    ),
    allow_keys_without_expiry: Type.Optional(nullable(Type.Boolean())),
    require_stream_usage: Type.Optional(nullable(Type.Boolean())),
  },
  closed,
);

const quotas = Type.Object(
  {
    monthly_tokens: Type.Optional(limitOrNull),
    max_users: Type.Optional(limitOrNull),
    max_collections: Type.Optional(limitOrNull),
  },
  closed,
);

const newTenant = component(
  'NewTenant',
  Type.Object(
    {
      id: Type.String({ maxLength: 64, ...aTenantId }),
      name: title(200),
      settings: Type.Optional(settings),
      quotas: Type.Optional(quotas),
      metadata: Type.Optional(metadata),
    },
    {
      ...closed,
      examples: [{ id: 'acme', name: 'Acme', settings: { timezone: 'Europe/Berlin', max_tokens_per_request: 4096 } }],
    },
  ),
);

const changes = component(
  'TenantChanges',
  Type.Object(
    {
      name: Type.Optional(title(200)),
      settings: Type.Optional(settings),
      quotas: Type.Optional(quotas),
      metadata: Type.Optional(metadata),
    },
    { ...closed, examples: [{ settings: { timezone: 'Europe/Berlin', default_model: null } }] },
  ),
);

const listing = Type.Object(
  {
    ...countedPage,
    q: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'Any part of the name or id, in any case.' }),
    ),
    status: Type.Optional(oneOf('active', 'suspended')),
  },
  closed,
);

const TENANTS = '/v1/iam/tenants';
const TENANT = '/v1/iam/tenants/:id';

export function tenantEndpoints(parts: AdminParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'GET',
      path: TENANTS,
      operationId: 'listTenants',
      summary: 'List tenants.',
      permission: 'admin:tenants',
      body: NOTHING,
      query: listing,
      answers: shows('One page of tenants.', listOf(Tenant)),
      refusals: [],
      handler: async ({ caller, query }) => ({ status: 200, body: await listTenantsPage(parts, caller, query) }),
    }),
    callerEndpoint({
      method: 'POST',
      path: TENANTS,
      operationId: 'createTenant',
      summary: 'Create a tenant.',
      permission: 'admin:tenants',
      body: newTenant,
      query: NOTHING,
      answers: makes('The tenant.', Tenant),
      refusals: ['already_exists'],
      handler: async ({ caller, body }) => {
        const tenant = await createTenant(parts, caller, body);
        return { status: 201, body: tenant, headers: { location: `${TENANTS}/${tenant.id}` } };
      },
    }),
    callerEndpoint({
      method: 'GET',
      path: TENANT,
      operationId: 'getTenant',
      summary: 'Get a tenant. Platform administrators may get any tenant, other callers their own.',
      permission: 'use-case',
      needs: "`admin:tenants`; for one's own tenant `admin:users`",
      body: NOTHING,
      query: NOTHING,
      answers: shows('The tenant.', Tenant, TAGGED),
      refusals: ['not_found'],
      handler: async ({ caller, param }) => ({ status: 200, body: await getTenant(parts, caller, param('id')) }),
    }),
    callerEndpoint({
      method: 'PUT',
      path: TENANT,
      operationId: 'updateTenant',
      summary:
        'Update a tenant: the members that are present. `settings` and `quotas` are merged, and null removes a member.',
      permission: 'admin:tenants',
      body: changes,
      query: NOTHING,
      answers: shows('The updated tenant.', Tenant, TAGGED),
      refusals: ['not_found', 'precondition_failed'],
      handler: async ({ caller, param, body }) => ({
        status: 200,
        body: await updateTenant(parts, caller, param('id'), body),
      }),
    }),
    callerEndpoint({
      method: 'DELETE',
      path: TENANT,
      operationId: 'deleteTenant',
      summary: 'Delete a tenant that has no users and no active keys. Its id cannot be used again.',
      permission: 'admin:tenants',
      body: NOTHING,
      query: NOTHING,
      answers: DONE,
      refusals: ['not_found', 'in_use', 'precondition_failed'],
      handler: async ({ caller, param }) => {
        await deleteTenant(parts, caller, param('id'));
        return { status: 204 };
      },
    }),
    callerEndpoint({
      method: 'POST',
      path: `${TENANT}/suspend`,
      operationId: 'suspendTenant',
      summary: 'Suspend a tenant. The server denies its requests until it is activated.',
      permission: 'admin:tenants',
      body: NOTHING,
      query: forced,
      answers: shows('The updated tenant.', Tenant, TAGGED),
      refusals: ['not_found', 'in_use', 'last_admin', 'would_lock_out', 'precondition_failed'],
      handler: async ({ caller, param, query }) => ({
        status: 200,
        body: await suspendTenant(parts, caller, param('id'), query.force === true),
      }),
    }),
    callerEndpoint({
      method: 'POST',
      path: `${TENANT}/activate`,
      operationId: 'activateTenant',
      summary: 'Activate a tenant.',
      permission: 'admin:tenants',
      body: NOTHING,
      query: NOTHING,
      answers: shows('The updated tenant.', Tenant, TAGGED),
      refusals: ['not_found', 'precondition_failed'],
      handler: async ({ caller, param }) => ({ status: 200, body: await activateTenant(parts, caller, param('id')) }),
    }),
  ];
}
