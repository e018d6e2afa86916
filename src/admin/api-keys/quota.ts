/** How many keys one owner may have. */

import { Refusal } from '../../domain/errors.ts';
import type { TenantId, UserId } from '../../domain/ids.ts';
import { countActiveKeys, holdKeysOf } from '../../store/queries/api-keys.ts';
import { sentTogether } from '../../store/together.ts';
import type { Transaction } from '../../store/transaction.ts';

/**
 * Most active keys of one owner: those that are neither revoked nor expired. Any user makes keys of its own; keys of the tenant itself take
 * `admin:keys`, and a tenant may have a key for each of its programs.
 */
export const MAX_ACTIVE_KEYS = { user: 1_000, tenant: 100_000 } as const;

/**
 * Holds the number of the owner's active keys until the transaction ends, so that of two callers that take the last place at once one is
 * rejected. Call it before a key becomes active.
 * @param owner undefined = the tenant itself
 * @throws Refusal `quota_exceeded`
 */
export async function takeKeyPlace(trx: Transaction, tenant: TenantId, owner: UserId | undefined): Promise<void> {
  const most = MAX_ACTIVE_KEYS[owner === undefined ? 'tenant' : 'user'];
  // A statement of its own counts, so that it sees what the last holder of the lock did.
  const [, count] = await sentTogether([holdKeysOf(trx, tenant, owner), countActiveKeys(trx, tenant, owner, most)]);
  if (count < most) return;
  const whose = owner === undefined ? 'The tenant itself' : 'The user';
  throw new Refusal('quota_exceeded', `${whose} already owns ${most} active keys, which is the limit. Revoke a key first.`);
}
