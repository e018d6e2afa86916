/** `max_users` counts a tenant's active users. */

import { Refusal } from '../../domain/errors.ts';
import type { TenantId } from '../../domain/ids.ts';
import { lockTenant } from '../../store/queries/tenants.ts';
import { countActiveUsers } from '../../store/queries/users.ts';
import type { Transaction } from '../change.ts';

/**
 * Holds the tenant, so that of two who take the last place at once one is refused.
 * @throws Refusal `quota_exceeded`, or `tenant_mismatch` when the tenant was deleted meanwhile
 */
export async function takePlace(trx: Transaction, tenant: TenantId): Promise<void> {
  const held = await lockTenant(trx, tenant, 'update');
  if (held === undefined) throw new Refusal('tenant_mismatch', 'There is no such tenant.');
  const limit = held.quotas.max_users;
  if (limit === undefined || (await countActiveUsers(trx, tenant)) < limit) return;
  throw new Refusal('quota_exceeded', `The tenant may have ${limit} active users, and has them.`);
}
