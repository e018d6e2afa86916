import type { SearchText } from '../../api/search-text.ts';
import { type Given, oneOf, searched, text } from '../../shell/search.ts';

export const TENANTS_STATUSES = ['active', 'suspended'] as const;
/** `near`: near the limit of the month's tokens, or running out of them before the reset. */
export const TENANTS_SHOWN = [...TENANTS_STATUSES, 'near'] as const;
const MEMBERS = ['id', 'tokens', 'requests', 'denied', 'share'] as const;
export const TENANTS_SORTS = [...MEMBERS, ...MEMBERS.map((member) => `-${member}` as const)] as const;

export interface TenantsSearch {
  readonly q?: SearchText;
  readonly status?: (typeof TENANTS_SHOWN)[number];
  readonly sort?: (typeof TENANTS_SORTS)[number];
  readonly open?: string;
}

export function tenantsSearch(given: Given): TenantsSearch {
  return {
    ...searched(given),
    ...oneOf(given, 'status', TENANTS_SHOWN),
    ...oneOf(given, 'sort', TENANTS_SORTS),
    ...text(given, 'open'),
  };
}
