/** The tenant that a request acts in. */

import { parseTenantId, type RoleName, type TenantId, type UserId } from '../domain/ids.ts';
import { ADMIN } from '../domain/roles.ts';
import { type HeaderValue, type Principal, REPEATED, type UserPrincipal } from './model.ts';

type EffectiveTenant =
  | { readonly kind: 'tenant'; readonly id: TenantId }
  | { readonly kind: 'deny'; readonly code: 'invalid_tenant' | 'tenant_mismatch'; readonly detail: string };

const REPEATED_HEADER: EffectiveTenant = {
  kind: 'deny',
  code: 'invalid_tenant',
  detail: 'X-Tenant-ID was sent more than once. Send it once or omit it.',
};
const MALFORMED: EffectiveTenant = {
  kind: 'deny',
  code: 'invalid_tenant',
  detail: 'X-Tenant-ID must be 1 to 63 lowercase letters, digits or hyphens, and must start with a letter or digit.',
};

export const OTHER_TENANT =
  'This credential may not act in the tenant that X-Tenant-ID names. Omit the header, or use a credential of that tenant.';
const MISMATCH: EffectiveTenant = { kind: 'deny', code: 'tenant_mismatch', detail: OTHER_TENANT };

export function isPlatformAdmin(principal: Principal): boolean {
  return principal.kind === 'user' && principal.platformAdmin;
}

/** Returns a user outside of any session. */
export function userWithRoles(id: UserId, tenantId: TenantId, roles: readonly RoleName[]): UserPrincipal {
  return { kind: 'user', id, tenantId, roles, platformAdmin: roles.includes(ADMIN), sessionId: undefined };
}

/**
 * Returns the tenant of the header, or the principal's own without one. Platform administrators may name any tenant
 * (the snapshot shows whether it exists). All other users and all keys may name only their own.
 */
export function effectiveTenant(principal: Principal, header: HeaderValue): EffectiveTenant {
  if (header === undefined) return { kind: 'tenant', id: principal.tenantId };
  if (header === REPEATED) return REPEATED_HEADER;
  const id = parseTenantId(header);
  if (id === undefined) return MALFORMED;
  return id === principal.tenantId || isPlatformAdmin(principal) ? { kind: 'tenant', id } : MISMATCH;
}
