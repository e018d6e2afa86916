/**
 * Steps 8 to 10 of the decision for callers of the management API. The HTTP listener runs them, and the transaction of
 * a change repeats them.
 */

import type { InvalidReason, Principal, Snapshot } from '../../decision/model.ts';
import { effectiveTenant, isPlatformAdmin } from '../../decision/tenant.ts';
import { Refusal } from '../../domain/errors.ts';
import type { TenantId } from '../../domain/ids.ts';
import { mustExchange } from './refusals.ts';

/** Returns the refusal of a credential that proves no principal. Only the audit log has the reason. */
export function invalidCredential(reason?: InvalidReason): Refusal {
  return new Refusal('invalid_credential', 'The credential is not valid.', { reason });
}

/**
 * Returns the effective tenant, by steps 9 and 10. For a platform administrator, only the suspension of its own tenant
 * counts, so that it can activate the others.
 * @param tenant the tenant that the request names; default: the principal's own
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
  if (
    snapshot.own.status === 'suspended' ||
    (snapshot.effective.status === 'suspended' && !isPlatformAdmin(principal))
  ) {
    throw new Refusal('tenant_suspended', 'The tenant is suspended.');
  }
  return choice.id;
}

/**
 * Rejects changes with a token of another issuer. A token that is exchanged first has a session, which an administrator
 * can end.
 * @throws Refusal `insufficient_permission`
 */
export function refuseUnexchanged(principal: Principal): void {
  if (principal.provedBy !== undefined) throw mustExchange();
}

/**
 * Rejects changes with the old secret of a rotated key. In its grace period that secret may only read, so a leaked
 * secret cannot create access that outlives the rotation.
 * @throws Refusal `invalid_credential`
 */
export function refuseRotated(principal: Principal): void {
  if (principal.kind === 'api_key' && principal.rotated === true) {
    throw new Refusal('invalid_credential', 'This secret of the API key was rotated. Use the new secret for changes.');
  }
}
