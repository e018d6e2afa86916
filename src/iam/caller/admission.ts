/** Steps 8 to 10 of the decision for callers of the management API: at the HTTP listener, and again inside the transaction of a change. */

import type { Principal, Snapshot } from '../../decision/model.ts';
import { effectiveTenant } from '../../decision/tenant.ts';
import { Refusal, type RefusalExtras } from '../../domain/errors.ts';
import type { TenantId } from '../../domain/ids.ts';

/** One answer for every reason for which a credential proves no principal. */
export function invalidCredential(extras: Pick<RefusalExtras, 'otherScheme'> = {}): Refusal {
  return new Refusal('invalid_credential', 'The credential is not valid.', extras);
}

/**
 * Steps 9 and 10. A platform administrator is stopped only by the suspension of its own tenant, so that it can lift the others.
 * @param tenant the effective tenant that the request asks for, undefined = the principal's own
 * @throws Refusal of the step that applies
 */
export function admittedTenant(
  principal: Principal,
  snapshot: Snapshot,
  tenant: Parameters<typeof effectiveTenant>[1],
): TenantId {
  const choice = effectiveTenant(principal, tenant);
  if (choice.kind === 'deny') throw new Refusal(choice.code, choice.detail);
  if (snapshot.own === undefined) throw invalidCredential();
  if (snapshot.effective === undefined) {
    throw new Refusal('tenant_mismatch', 'The tenant does not exist, or this credential may not act in it.');
  }
  const platformAdmin = principal.kind === 'user' && principal.platformAdmin;
  if (snapshot.own.status === 'suspended' || (snapshot.effective.status === 'suspended' && !platformAdmin)) {
    throw new Refusal('tenant_suspended', 'The tenant is suspended.');
  }
  return choice.id;
}

/**
 * The old secret of a rotated key works in its grace, but only to read: the holder of a secret that leaked must not be able to outlive
 * its rotation.
 * @throws Refusal `invalid_credential` that says so
 */
export function refuseRotated(principal: Principal): void {
  if (principal.kind === 'api_key' && principal.rotated === true) {
    throw new Refusal('invalid_credential', 'This secret of the API key was rotated. Use the new secret for changes.');
  }
}
