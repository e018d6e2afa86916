/** /v1/iam/tenants */

import { Type } from 'typebox';
import type { AdminParts } from '../../admin/caller.ts';
import { createTenant } from '../../admin/tenants/create.ts';
import { getTenant, listTenantsPage } from '../../admin/tenants/read.ts';
import { activateTenant, deleteTenant, suspendTenant, updateTenant } from '../../admin/tenants/update.ts';
import { callerRoute, NOTHING, type Route } from '../route.ts';
import { nullable } from '../validation.ts';
import { closed, forced, limitOrNull, page, title } from './schemas.ts';

const settings = Type.Object(
  {
    default_model: Type.Optional(nullable(title(512))),
    max_tokens_per_request: Type.Optional(limitOrNull),
    rate_limit_rpm: Type.Optional(limitOrNull),
    timezone: Type.Optional(nullable(Type.String({ maxLength: 64 }))),
    allow_keys_without_expiry: Type.Optional(nullable(Type.Boolean())),
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

const newTenant = Type.Object(
  {
    id: Type.String({ maxLength: 64 }),
    name: title(200),
    settings: Type.Optional(settings),
    quotas: Type.Optional(quotas),
  },
  closed,
);

const changes = Type.Object(
  { name: Type.Optional(title(200)), settings: Type.Optional(settings), quotas: Type.Optional(quotas) },
  closed,
);

const paging = Type.Object({ ...page }, closed);

const TENANTS = '/v1/iam/tenants';
const TENANT = '/v1/iam/tenants/:id';

export function tenantRoutes(parts: AdminParts): readonly Route[] {
  return [
    callerRoute({
      method: 'GET',
      path: TENANTS,
      summary: 'List tenants.',
      permission: 'admin:tenants',
      body: NOTHING,
      query: paging,
      handler: async ({ caller, query }) => ({ status: 200, body: await listTenantsPage(parts, caller, query) }),
    }),
    callerRoute({
      method: 'POST',
      path: TENANTS,
      summary: 'Make a tenant.',
      permission: 'admin:tenants',
      body: newTenant,
      query: NOTHING,
      handler: async ({ caller, body }) => {
        const tenant = await createTenant(parts, caller, body);
        return { status: 201, body: tenant, headers: { location: `${TENANTS}/${tenant.id}` } };
      },
    }),
    callerRoute({
      method: 'GET',
      path: TENANT,
      summary: 'Get a tenant: platform administrators any, others their own.',
      permission: 'use-case',
      body: NOTHING,
      query: NOTHING,
      handler: async ({ caller, param }) => ({ status: 200, body: await getTenant(parts, caller, param('id')) }),
    }),
    callerRoute({
      method: 'PUT',
      path: TENANT,
      summary: 'Change a tenant; settings and quotas merge, null removes.',
      permission: 'admin:tenants',
      body: changes,
      query: NOTHING,
      handler: async ({ caller, param, body }) => ({ status: 200, body: await updateTenant(parts, caller, param('id'), body) }),
    }),
    callerRoute({
      method: 'DELETE',
      path: TENANT,
      summary: 'Delete a tenant that has neither users nor active keys. Its id is never used again.',
      permission: 'admin:tenants',
      body: NOTHING,
      query: NOTHING,
      handler: async ({ caller, param }) => {
        await deleteTenant(parts, caller, param('id'));
        return { status: 204 };
      },
    }),
    callerRoute({
      method: 'POST',
      path: `${TENANT}/suspend`,
      summary: 'Suspend a tenant: its requests are refused until it is activated.',
      permission: 'admin:tenants',
      body: NOTHING,
      query: forced,
      handler: async ({ caller, param, query }) => ({
        status: 200,
        body: await suspendTenant(parts, caller, param('id'), query.force === true),
      }),
    }),
    callerRoute({
      method: 'POST',
      path: `${TENANT}/activate`,
      summary: 'Activate a tenant again.',
      permission: 'admin:tenants',
      body: NOTHING,
      query: NOTHING,
      handler: async ({ caller, param }) => ({ status: 200, body: await activateTenant(parts, caller, param('id')) }),
    }),
  ];
}
