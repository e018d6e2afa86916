import { type Given, oneOf, text } from '../../shell/search.ts';

export const TENANTS_STATUSES = ['active', 'suspended'] as const;

export interface TenantsSearch {
  readonly q?: string;
  readonly status?: (typeof TENANTS_STATUSES)[number];
  readonly open?: string;
}

export function tenantsSearch(given: Given): TenantsSearch {
  return { ...text(given, 'q'), ...oneOf(given, 'status', TENANTS_STATUSES), ...text(given, 'open') };
}
