/** `max_users` counts a tenant's active users. */

import { Refusal } from '../../domain/errors.ts';
import type { TenantId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import { tenantGone } from '../caller/refusals.ts';
import { lockPlaces, lockTenant } from '../tenants/queries.ts';
import { countActiveUsers } from './queries.ts';

/**
 * Takes a place for one more active user, until the transaction ends. It holds the tenant, so that its limit stays. If there is one, those
 * that take a place are served one after the other, so that one of two that take the last place at once is refused.
 * @throws Refusal `quota_exceeded`, or `tenant_mismatch` if the tenant is deleted
 */
export async function takePlace(trx: Transaction, tenant: TenantId): Promise<void> {
  const held = await lockTenant(trx, tenant, 'share');
  if (held === undefined) throw tenantGone();
  const limit = held.quotas.max_users;
  if (limit === undefined) return;
  await lockPlaces(trx, tenant);
  if ((await countActiveUsers(trx, tenant)) < limit) return;
  throw new Refusal(
    'quota_exceeded',
    `The tenant already has ${limit} active users, which is its limit. Deactivate or delete a user first.`,
  );
}
