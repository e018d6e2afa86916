/** Limits of one owner: the number of active keys, and the number of new keys within a period. */

import { Refusal } from '../../domain/errors.ts';
import { makeId, type TenantId, type UserId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import { countActiveKeys, lockActiveKeys, newKeyDelayMs } from './queries.ts';

/**
 * Most active keys of one owner: those that are neither revoked nor expired. Any user may create keys of its own. Keys
 * of the tenant itself require `admin:keys`, and a tenant may have a key for each of its programs.
 */
export const MAX_ACTIVE_KEYS = { user: 1_000, tenant: 100_000 } as const;

/**
 * Most new keys of one owner within a period. Revoked keys count, so that creating and revoking keys cannot fill the
 * database.
 */
const MAX_NEW_KEYS = {
  user: { most: 1_000, withinMs: 24 * 3_600_000 },
  tenant: { most: 10_000, withinMs: 3_600_000 },
} as const;

/**
 * Call it after `reserveActiveKey`, which makes concurrent callers wait for each other.
 * @param owner null = the tenant itself
 * @throws Refusal `rate_limit_exceeded`
 */
export async function refuseManyNewKeys(
  trx: Transaction,
  tenant: TenantId,
  owner: UserId | null,
  nowMs: number,
): Promise<void> {
  const { most, withinMs } = MAX_NEW_KEYS[owner === null ? 'tenant' : 'user'];
  const since = makeId('key', nowMs - withinMs, new Uint8Array(10));
  const delayMs = await newKeyDelayMs(trx, tenant, owner, { most, withinMs, since });
  if (delayMs === 0) return;
  throw new Refusal(
    'rate_limit_exceeded',
    `${nameOf(owner)} has got ${most} new keys within ${withinMs / 3_600_000} h, which is the limit; revoked keys count. Try again later.`,
    { retryAfter: delayMs / 1000 },
  );
}

/** Reservations of active keys in one transaction. Each owner's keys are locked and counted once. */
export class ActiveKeyReservations {
  readonly #trx: Transaction;
  readonly #active = new Map<TenantId | UserId, number>();

  constructor(trx: Transaction) {
    this.#trx = trx;
  }

  /** Like `reserveActiveKey`. @throws Refusal `quota_exceeded` */
  async reserve(tenant: TenantId, owner: UserId | null): Promise<void> {
    const most = MAX_ACTIVE_KEYS[owner === null ? 'tenant' : 'user'];
    const active = this.#active.get(owner ?? tenant) ?? (await this.#count(tenant, owner, most));
    if (active >= most) {
      throw new Refusal(
        'quota_exceeded',
        `${nameOf(owner)} already owns ${most} active keys, which is the limit. Revoke a key first.`,
      );
    }
    this.#active.set(owner ?? tenant, active + 1);
  }

  /** The count is a statement of its own, so that it sees what the previous holder of the lock wrote. */
  async #count(tenant: TenantId, owner: UserId | null, most: number): Promise<number> {
    await lockActiveKeys(this.#trx, tenant, owner);
    return countActiveKeys(this.#trx, tenant, owner, most);
  }
}

/**
 * Locks the number of the owner's active keys until the transaction ends, so that of two concurrent callers that both
 * need the last free place one is rejected. Call it before a key becomes active.
 * @param owner null = the tenant itself
 * @throws Refusal `quota_exceeded`
 */
export async function reserveActiveKey(trx: Transaction, tenant: TenantId, owner: UserId | null): Promise<void> {
  await new ActiveKeyReservations(trx).reserve(tenant, owner);
}

function nameOf(owner: UserId | null): string {
  return owner === null ? 'The tenant itself' : 'The user';
}
