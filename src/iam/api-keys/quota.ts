/** Limits of one owner: the number of active keys, and the number of new keys within a period. */

import { Refusal } from '../../domain/errors.ts';
import { makeId, type TenantId, type UserId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import { addToKeyCounts, countActiveKeys, countNewKeys, type KeysOwner, replaceKeyCounts } from './count-queries.ts';

/**
 * The largest number of active keys of one owner: those that are neither revoked nor expired. A disabled key counts,
 * because it can be enabled at any time. Any user may create keys of its own. Keys of the tenant itself require
 * `admin:keys`, and a tenant may have a key for each of its programs.
 */
export const MAX_ACTIVE_KEYS = { user: 1_000, tenant: 100_000 } as const;

/**
 * The largest number of new keys of one owner within a period. Revoked keys count, so that creating and revoking keys
 * cannot fill the database.
 */
const MAX_NEW_KEYS = {
  user: { most: 1_000, withinMs: 24 * 3_600_000 },
  tenant: { most: 10_000, withinMs: 3_600_000 },
} as const;

/** Reservations of active keys in one transaction. The keys of each owner are locked once. */
export class ActiveKeyReservations {
  readonly #trx: Transaction;
  readonly #atMost: number;
  readonly #active = new Map<TenantId | UserId, number>();

  /** @param atMost the most keys that the transaction adds to one owner */
  constructor(trx: Transaction, atMost: number) {
    this.#trx = trx;
    this.#atMost = atMost;
  }

  /** Locks the number of the owner's active keys until the transaction ends. */
  async lock(tenant: TenantId, owner: UserId | null): Promise<void> {
    await this.#activeOf(tenant, owner);
  }

  /** Like `reserveActiveKey`. @throws Refusal `quota_exceeded` */
  async reserve(tenant: TenantId, owner: UserId | null): Promise<void> {
    const active = await this.#activeOf(tenant, owner);
    refuseManyActive(owner, active);
    this.#active.set(owner ?? tenant, active + 1);
  }

  async #activeOf(tenant: TenantId, owner: UserId | null): Promise<number> {
    const known = this.#active.get(owner ?? tenant);
    if (known !== undefined) return known;
    const { active } = await addKeys(this.#trx, { tenant, user: owner }, this.#atMost);
    this.#active.set(owner ?? tenant, active);
    return active;
  }
}

/**
 * Locks the number of the owner's active keys until the transaction ends, so that of two concurrent callers that both
 * need the last free place one is rejected. Call it before a key becomes active.
 * @param owner null = the tenant itself
 * @throws Refusal `quota_exceeded`
 */
export async function reserveActiveKey(trx: Transaction, tenant: TenantId, owner: UserId | null): Promise<void> {
  const { active } = await addKeys(trx, { tenant, user: owner }, 1);
  refuseManyActive(owner, active);
}

/**
 * Like `reserveActiveKey`, for a new key.
 * @throws Refusal `quota_exceeded`, `rate_limit_exceeded`
 */
export async function reserveNewKey(
  trx: Transaction,
  tenant: TenantId,
  owner: UserId | null,
  nowMs: number,
): Promise<void> {
  const keys = { tenant, user: owner };
  const { active, created } = await addKeys(trx, keys, 1);
  refuseManyActive(owner, active);
  const { most, withinMs } = MAX_NEW_KEYS[kindOf(owner)];
  if (created !== null && created < most) return;
  const since = makeId('key', nowMs - withinMs, new Uint8Array(10));
  const { count, oldest_age_ms: ageMs } = await countNewKeys(trx, keys, most, since);
  const delayMs = count < most ? 0 : withinMs - (ageMs ?? withinMs);
  if (delayMs > 0)
    throw new Refusal(
      'rate_limit_exceeded',
      `${nameOf(owner)} has got ${most} new keys within ${withinMs / 3_600_000} h, which is the limit; revoked keys count. Try again later.`,
      { retryAfter: delayMs / 1000 },
    );
  await replaceKeyCounts(trx, keys, { created: count + 1 });
}

/**
 * Adds keys to the numbers of an owner, and returns the numbers without them: upper bounds, of which the number of
 * active keys is exact if it would exceed the limit.
 */
async function addKeys(trx: Transaction, owner: KeysOwner, added: number) {
  const { active, created } = await addToKeyCounts(trx, owner, added);
  const before = { created: created === null ? null : created - added };
  const most = MAX_ACTIVE_KEYS[kindOf(owner.user)];
  if (active !== null && active <= most) return { ...before, active: active - added };
  const counted = await countActiveKeys(trx, owner, most);
  await replaceKeyCounts(trx, owner, { active: counted + added });
  return { ...before, active: counted };
}

/** @throws Refusal `quota_exceeded` */
function refuseManyActive(owner: UserId | null, active: number): void {
  const most = MAX_ACTIVE_KEYS[kindOf(owner)];
  if (active < most) return;
  throw new Refusal(
    'quota_exceeded',
    `${nameOf(owner)} already owns ${most} active keys, which is the limit. Revoke a key first.`,
  );
}

function kindOf(owner: UserId | null): 'user' | 'tenant' {
  return owner === null ? 'tenant' : 'user';
}

function nameOf(owner: UserId | null): string {
  return owner === null ? 'The tenant itself' : 'The user';
}
