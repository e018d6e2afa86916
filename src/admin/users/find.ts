/** Looks users up: always in the effective tenant, so another tenant's answer exactly as missing ones do. */

import { Fault } from '../../domain/errors.ts';
import { parseId, type TenantId, type UserId } from '../../domain/ids.ts';
import { ADMIN } from '../../domain/roles.ts';
import { findUser, holdsByHand, lockLocalHolders, lockUser, type StoredUser } from '../../store/queries/users.ts';
import { sentTogether } from '../../store/together.ts';
import type { Caller } from '../caller.ts';
import type { Transaction } from '../change.ts';
import { notFound } from '../refusals.ts';

/** @throws Refusal `not_found` for any text that cannot be an id */
export function userIdOf(text: string): UserId {
  const id = parseId('usr', text);
  if (id === undefined) throw notFound('user');
  return id;
}

/** A user held for a change, with the administrators who hold `admin` where the user is one of them. */
export interface HeldUser {
  readonly user: StoredUser;
  /** True when no other active local user holds `admin`. */
  readonly lastAdmin: boolean;
}

/**
 * Holds a user until the transaction ends. Administrators are held together and first, in one order, so that two of them who strip
 * each other at once are served in turn and none waits for the other in a circle.
 * @throws Refusal `not_found`
 */
export async function holdUser(trx: Transaction, caller: Caller, text: string): Promise<HeldUser> {
  const id = userIdOf(text);
  const admins = (await holdsByHand(trx, caller.tenant, id, ADMIN)) ? await lockLocalHolders(trx, ADMIN) : undefined;
  // Read after it is held, and sent along.
  const [, user] = await sentTogether([lockUser(trx, caller.tenant, id, 'update'), existing(trx, caller.tenant, id)] as const);
  if (isAdmin(user) && admins === undefined) throw new Fault('the user became an administrator meanwhile');
  return { user, lastAdmin: admins !== undefined && admins.length === 1 && admins[0] === id };
}

async function existing(trx: Transaction, tenant: TenantId, id: UserId): Promise<StoredUser> {
  const user = await findUser(trx, tenant, id);
  if (user === undefined) throw notFound('user');
  return user;
}

function isAdmin(user: StoredUser): boolean {
  return user.roles.includes(ADMIN);
}
