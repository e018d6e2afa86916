/** The platform is never without an administrator that can log in. */

import { lastAdminRefusal } from '../caller/refusals.ts';
import type { Administrator } from './administrator-queries.ts';

type Counted = Pick<Administrator, 'tenantActive' | 'hasPassword'>;

/**
 * Compares the administrators before and after a change. Those of suspended tenants count for nothing. While an administrator with a
 * password remains to be lost, those without one count for nothing either: they cannot log in, and a one-time token of theirs is refused
 * when its maker is removed.
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
