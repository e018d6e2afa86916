/** The platform always keeps an administrator that can log in. */

import { lastAdminRefusal } from '../caller/refusals.ts';
import type { Administrator } from './administrator-queries.ts';

type Counted = Pick<Administrator, 'tenantActive' | 'hasPassword'>;

/**
 * Compares the administrators before and after a change. Administrators of suspended tenants do not count. If there was
 * an administrator with a password, administrators without one do not count either: they cannot log in, and their
 * one-time tokens are rejected after the removal of the tokens' makers.
 * @throws Refusal `last_admin` when the change removes the last one
 */
export function refuseWithoutAdministrator(before: readonly Counted[], after: readonly Counted[]): void {
  if (before.some(isReachable) && !after.some(isReachable)) throw lastAdminRefusal();
  if (before.some(canLogIn) && !after.some(canLogIn)) throw lastAdminRefusal();
}

function isReachable({ tenantActive }: Counted): boolean {
  return tenantActive;
}

function canLogIn({ tenantActive, hasPassword }: Counted): boolean {
  return tenantActive && hasPassword;
}
