/** The decision of the management API: steps 10 and 12 to 14 for one permission, without resources. */

import { INVALID_CREDENTIAL, permissionDeny, policyDeny, SUSPENDED } from './decide.ts';
import type { Deny, Principal, Snapshot } from './model.ts';
import { permissionOf } from './permissions.ts';
import { accessQuery, denied, isSpent, permitted } from './permitted.ts';
import { isPlatformAdmin, OTHER_TENANT } from './tenant.ts';

/** The permissions of `/v1/iam`; `admin:tenants` works for platform administrators only. */
export const MANAGEMENT_PERMISSIONS = [
  'admin:users',
  'admin:roles',
  'admin:policies',
  'admin:tenants',
  'admin:keys',
  'admin:issuers',
  'admin:budgets',
  'admin:webhooks',
  'audit:read',
  'usage:read',
  'usage:write',
] as const;

interface ManagementQuery {
  /** The permission of the endpoint; `self` if it has none, which only a deny on `*` matches. */
  readonly permission: string;
  /** True if the principal acts on itself and needs no grant. A deny still applies. */
  readonly self: boolean;
  readonly principal: Principal;
  readonly snapshot: Snapshot;
  readonly clientAddress: string | undefined;
  readonly nowMs: number;
}

const ALLOW: { readonly kind: 'allow' } = Object.freeze({ kind: 'allow' });

/**
 * Platform administrators may manage a suspended tenant, unless it is their own. The policies of a tenant never apply
 * to them, so no tenant can lock them out.
 */
export function decideManagement(q: ManagementQuery): { readonly kind: 'allow' } | Deny {
  const { principal, snapshot, clientAddress, nowMs } = q;
  const { own, effective, global, builtinRoles } = snapshot;
  const deny = (code: Deny['code'], detail: string): Deny => ({ kind: 'deny', code, detail, principal });
  if (own === undefined || own.id !== principal.tenantId) return deny('invalid_credential', INVALID_CREDENTIAL);
  const platformAdmin = isPlatformAdmin(principal);
  if (effective === undefined || (effective.id !== own.id && !platformAdmin))
    return deny('tenant_mismatch', OTHER_TENANT);
  if (own.status !== 'active') return deny('tenant_suspended', SUSPENDED);

  const permissions = [permissionOf(q.permission)];
  const query = accessQuery({
    principal,
    permissions,
    resources: [],
    own,
    effective,
    tenantPoliciesApply: !platformAdmin,
    global,
    builtinRoles,
    clientAddress,
    nowMs,
  });
  const policy = denied(query);
  if (policy !== undefined) return policyDeny(policy, query);
  const isPermitted = q.self || permitted(query) === 'permitted';
  return isPermitted && !isSpent(query) ? ALLOW : permissionDeny(query);
}
