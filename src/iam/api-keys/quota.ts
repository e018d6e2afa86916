/** How many keys one owner may have, and how many new ones within a time. */

import { Refusal } from '../../domain/errors.ts';
import { makeId, type TenantId, type UserId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import { countActiveKeys, holdKeysOf, newKeyDelayMs } from './queries.ts';

/**
 * Most active keys of one owner: those that are neither revoked nor expired. Any user makes keys of its own; keys of the tenant itself take
 * `admin:keys`, and a tenant may have a key for each of its programs.
 */
export const MAX_ACTIVE_KEYS = { user: 1_000, tenant: 100_000 } as const;

/** Most new keys of one owner within a time, revoked ones too: a caller that makes and revokes keys must not fill the database. */
const MAX_NEW_KEYS = {
  user: { most: 1_000, withinMs: 24 * 3_600_000 },
  tenant: { most: 10_000, withinMs: 3_600_000 },
} as const;

/**
 * Call it with the place of the key taken, so that callers at once are counted one after the other.
 * @param owner undefined = the tenant itself
 * @throws Refusal `rate_limit_exceeded`
 */
export async function refuseManyNewKeys(
  trx: Transaction,
  tenant: TenantId,
  owner: UserId | undefined,
  nowMs: number,
): Promise<void> {
  const { most, withinMs } = MAX_NEW_KEYS[owner === undefined ? 'tenant' : 'user'];
  const since = makeId('key', nowMs - withinMs, new Uint8Array(10));
  const delayMs = await newKeyDelayMs(trx, tenant, owner, { most, withinMs, since });
  if (delayMs === 0) return;
  const whose = owner === undefined ? 'The tenant itself' : 'The user';
  throw new Refusal(
    'rate_limit_exceeded',
    `${whose} has got ${most} new keys within ${withinMs / 3_600_000} h, which is the limit; revoked keys count. Try again later.`,
    { retryAfter: delayMs / 1000 },
  );
}

/**
 * Holds the number of the owner's active keys until the transaction ends, so that of two callers that take the last place at once one is
 * rejected. Call it before a key becomes active.
 * @param owner undefined = the tenant itself
 * @throws Refusal `quota_exceeded`
 */
export async function takeKeyPlace(trx: Transaction, tenant: TenantId, owner: UserId | undefined): Promise<void> {
  const most = MAX_ACTIVE_KEYS[owner === undefined ? 'tenant' : 'user'];
  // A statement of its own counts, so that it sees what the last holder of the lock did.
  await holdKeysOf(trx, tenant, owner);
  const count = await countActiveKeys(trx, tenant, owner, most);
  if (count < most) return;
  const whose = owner === undefined ? 'The tenant itself' : 'The user';
  throw new Refusal(
    'quota_exceeded',
    `${whose} already owns ${most} active keys, which is the limit. Revoke a key first.`,
  );
}
