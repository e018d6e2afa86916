import type { SearchText } from '../../api/search-text.ts';
import { type Given, oneOf, searched, text } from '../../shell/search.ts';

export const TENANTS_STATUSES = ['active', 'suspended'] as const;

export interface TenantsSearch {
  readonly q?: SearchText;
  readonly status?: (typeof TENANTS_STATUSES)[number];
  readonly open?: string;
}

export function tenantsSearch(given: Given): TenantsSearch {
  return { ...searched(given), ...oneOf(given, 'status', TENANTS_STATUSES), ...text(given, 'open') };
}
