/** The right to use a management endpoint, by the same decision as the data plane. */

import { decideManagement, type MANAGEMENT_PERMISSIONS } from '../../decision/management.ts';
import { isPlatformAdmin } from '../../decision/tenant.ts';
import { Refusal, type RefusalExtras } from '../../domain/errors.ts';
import type { Caller } from './caller.ts';

export type ManagementPermission = (typeof MANAGEMENT_PERMISSIONS)[number];

/**
 * The permission that an endpoint requires. `self`: none, because it concerns the caller's own account; only a deny on
 * `*` applies. `use-case`: the use case decides, for example because callers may act on themselves. `any`: none.
 */
export type Access = ManagementPermission | 'self' | 'use-case' | 'any';

interface AuthorizeOptions {
  /** The caller acts on itself (`selfId`). Then it needs no grant, but a policy may still deny. */
  readonly self?: boolean;
}

/** @throws Refusal with the code of the step that denies: `denied_by_policy` or `insufficient_permission` */
export function authorize(
  caller: Caller,
  permission: ManagementPermission | 'self',
  options: AuthorizeOptions = {},
): void {
  // The endpoints of the account themselves reject keys.
  const self = permission === 'self' || (options.self === true && caller.principal.kind === 'user');
  const decision = decideManagement({
    permission,
    self,
    principal: caller.principal,
    snapshot: caller.snapshot,
    clientAddress: caller.address,
    nowMs: caller.nowMs,
  });
  if (decision.kind === 'deny') {
    const extras: RefusalExtras = {
      ...(decision.policy === undefined ? {} : { policy: decision.policy }),
      ...(decision.permission === undefined ? {} : { scope: decision.permission }),
    };
    throw new Refusal(decision.code, decision.detail, extras);
  }
  if (permission === 'admin:tenants' && !isPlatformAdmin(caller.principal)) {
    throw new Refusal('insufficient_permission', 'Only platform administrators may use admin:tenants.', {
      scope: permission,
    });
  }
}

/** Reports whether `authorize` admits the caller. */
export function isAuthorized(
  caller: Caller,
  permission: ManagementPermission,
  options: AuthorizeOptions = {},
): boolean {
  try {
    authorize(caller, permission, options);
    return true;
  } catch (error) {
    if (error instanceof Refusal) return false;
    throw error;
  }
}
