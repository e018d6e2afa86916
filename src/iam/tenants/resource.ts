/** What the API shows of a tenant. */

import type { Metadata, TenantQuotas, TenantSettings } from '../../domain/records.ts';
import type { StoredTenant } from './queries.ts';

export interface TenantResource {
  readonly id: string;
  readonly name: string;
  readonly status: 'active' | 'suspended';
  readonly settings: TenantSettings;
  readonly quotas: TenantQuotas;
  readonly metadata: Metadata;
  readonly created_at: string;
  readonly updated_at: string;
}

export function tenantResource(tenant: StoredTenant): TenantResource {
  return {
    id: tenant.id,
    name: tenant.name,
    status: tenant.status,
    settings: tenant.settings,
    quotas: tenant.quotas,
    metadata: tenant.metadata,
    created_at: tenant.createdAt.toISOString(),
    updated_at: tenant.updatedAt.toISOString(),
  };
}
