/** Looks users up: always in the effective tenant, so another tenant's answer exactly as missing ones do. */

import { Fault } from '../../domain/errors.ts';
import { parseId, type TenantId, type UserId } from '../../domain/ids.ts';
import { ADMIN } from '../../domain/roles.ts';
import { enabledAllowPolicies, type StoredPolicy } from '../../store/queries/policies.ts';
import { type DatabaseTime, databaseTime } from '../../store/queries/time.ts';
import { findUser, lockLocalHolders, lockUser, lockUserUnlessHolder, type StoredUser } from '../../store/queries/users.ts';
import { sentTogether } from '../../store/together.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { HeldCaller } from '../hold-caller.ts';
import { notFound } from '../refusals.ts';

/** @throws Refusal `not_found` for any text that cannot be an id */
export function userIdOf(text: string): UserId {
  const id = parseId('usr', text);
  if (id === undefined) throw notFound('user');
  return id;
}

/** A user held for a change, with what was read along. */
export interface HeldUser {
  readonly user: StoredUser;
  /** True when no other active local user holds `admin`. */
  readonly lastAdmin: boolean;
  /** The enabled allow policies of the user's tenant and the global ones. */
  readonly allowPolicies: readonly StoredPolicy[];
  /** When the user was held. */
  readonly at: DatabaseTime;
}

/**
 * Holds a user until the transaction ends. Administrators are held together and first, in one order, so that two of them who strip
 * each other at once are served in turn and none waits for the other in a circle.
 * @throws Refusal `not_found`
 */
export async function holdUser(trx: Transaction, caller: HeldCaller, text: string): Promise<HeldUser> {
  const id = userIdOf(text);
  const held = await read(trx, caller.tenant, id, lockUserUnlessHolder(trx, caller.tenant, id, ADMIN));
  if (held.locked) {
    if (isAdmin(held.user)) throw new Fault('the user became an administrator meanwhile');
    return { ...held, lastAdmin: false };
  }
  const admins = await lockLocalHolders(trx, ADMIN);
  const admin = await read(trx, caller.tenant, id, lockUser(trx, caller.tenant, id, 'update'));
  return { ...admin, lastAdmin: isAdmin(admin.user) && admins.length === 1 && admins[0] === id };
}

/** All is read after the lock is asked for, and sent along with it. @throws Refusal `not_found` */
async function read(
  trx: Transaction,
  tenant: TenantId,
  id: UserId,
  lock: Promise<boolean>,
): Promise<Omit<HeldUser, 'lastAdmin'> & { readonly locked: boolean }> {
  const [locked, user, allowPolicies, at] = await sentTogether([
    lock,
    existing(trx, tenant, id),
    enabledAllowPolicies(trx, tenant),
    databaseTime(trx),
  ] as const);
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
