/** `max_users` counts a tenant's active users. */

import { Refusal } from '../../domain/errors.ts';
import type { TenantId } from '../../domain/ids.ts';
import { lockTenant, type StoredTenant, shareUnlimitedTenant } from '../../store/queries/tenants.ts';
import { countActiveUsers } from '../../store/queries/users.ts';
import type { Transaction } from '../../store/transaction.ts';
import { tenantGone } from '../refusals.ts';

/**
 * Holds the tenant where it has a limit, so that of two who take the last place at once one is refused; where it has none, so that it
 * gets none meanwhile.
 * @throws Refusal `quota_exceeded`, or `tenant_mismatch` when the tenant was deleted meanwhile
 */
export async function takePlace(trx: Transaction, tenant: TenantId): Promise<void> {
  const limit = (await holdLimited(trx, tenant)).quotas.max_users;
  if (limit === undefined || (await countActiveUsers(trx, tenant)) < limit) return;
  throw new Refusal('quota_exceeded', `The tenant may have ${limit} active users, and has them.`);
}

/** Those who find a limit are served one after the other, and nobody else waits. */
async function holdLimited(trx: Transaction, tenant: TenantId): Promise<StoredTenant> {
  const held = (await shareUnlimitedTenant(trx, tenant)) ?? (await lockTenant(trx, tenant, 'update'));
  if (held === undefined) throw tenantGone();
  return held;
}
