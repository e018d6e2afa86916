/** Looks users up: always in the effective tenant, so another tenant's answer exactly as missing ones do. */

import { parseId, type TenantId, type UserId } from '../../domain/ids.ts';
import { ADMIN } from '../../domain/roles.ts';
import { type DatabaseTime, databaseTime } from '../../store/time.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { notFound } from '../caller/refusals.ts';
import type { PolicyRow } from '../policies/entity.ts';
import { enabledAllowPolicies } from '../policies/queries.ts';
import { localAdministrators, lockAdministrators } from './administrator-queries.ts';
import { refuseWithoutAdministrator } from './administrators.ts';
import { findUser, lockUser, lockUserUnlessHolder, type StoredUser } from './queries.ts';

/** @throws Refusal `not_found` for any text that cannot be an id */
export function userIdOf(text: string): UserId {
  const id = parseId('usr', text);
  if (id === undefined) throw notFound('user');
  return id;
}

/** A user held for a change, with what was read along. */
export interface HeldUser {
  readonly user: StoredUser;
  /** Throws a Refusal `last_admin` unless the platform keeps an administrator without this user. */
  readonly refuseLastAdmin: () => void;
  /** The enabled allow policies of the user's tenant and the global ones. */
  readonly allowPolicies: readonly PolicyRow[];
  /** When the user was held. */
  readonly at: DatabaseTime;
}

/**
 * Locks a user until the transaction ends. Transactions on holders of `admin` run one after the other: of two administrators that strip each
 * other at once, the second sees what the first did.
 * @throws Refusal `not_found`
 */
export async function holdUser(trx: Transaction, caller: HeldCaller, text: string): Promise<HeldUser> {
  const id = userIdOf(text);
  const held = await read(trx, caller.tenant, id, lockUserUnlessHolder(trx, caller.tenant, id, ADMIN));
  // A user that became an administrator while this transaction waited for the row is locked as well. The wait below can then end in a
  // deadlock, after which the transaction runs again.
  if (held.locked && !isAdmin(held.user)) return { ...held, refuseLastAdmin: () => undefined };
  await lockAdministrators(trx);
  const admin = await read(trx, caller.tenant, id, lockUser(trx, caller.tenant, id, 'update'));
  const administrators = await localAdministrators(trx);
  const others = administrators.filter((administrator) => administrator.id !== id);
  return { ...admin, refuseLastAdmin: () => refuseWithoutAdministrator(administrators, others) };
}

/** Reads the user when the lock is held. @throws Refusal `not_found` */
async function read(
  trx: Transaction,
  tenant: TenantId,
  id: UserId,
  lock: Promise<boolean>,
): Promise<Omit<HeldUser, 'refuseLastAdmin'> & { readonly locked: boolean }> {
  const locked = await lock;
  const user = await existing(trx, tenant, id);
  const allowPolicies = await enabledAllowPolicies(trx, tenant);
  const at = await databaseTime(trx);
  return { locked, user, allowPolicies, at };
}

async function existing(trx: Transaction, tenant: TenantId, id: UserId): Promise<StoredUser> {
  const user = await findUser(trx, tenant, id);
  if (user === undefined) throw notFound('user');
  return user;
}

function isAdmin(user: StoredUser): boolean {
  return user.roles.includes(ADMIN);
}
