/** Reads users of the effective tenant. A user of another tenant is reported like one that does not exist. */

import type { TenantId, UserId } from '../../domain/ids.ts';
import { ADMIN } from '../../domain/roles.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { orNotFound, requestedId } from '../caller/refusals.ts';
import { filterOf, type List, type ListQuery, paged, scopeOf } from '../list/list.ts';
import { ordersBy } from '../list/sort.ts';
import { localAdministrators, lockAdministrators } from './administrator-queries.ts';
import { refuseWithoutAdministrator } from './checks.ts';
import { type UserResource, type UserRow, userResource } from './entity.ts';
import { countUsers, listUsers, USER_ORDERS, type UserFilter } from './list-queries.ts';
import { findUser, lockUser, lockUserUnlessHolder } from './queries.ts';

export const userOrders = ordersBy(USER_ORDERS, '-created_at');

export async function listUsersPage(
  parts: AdminParts,
  caller: Caller,
  query: ListQuery & UserFilter & { readonly sort?: string },
): Promise<List<UserResource>> {
  const { sort: _sort, ...filter } = filterOf(query);
  const order = userOrders.orderOf(query);
  const lowered = filter.email === undefined ? filter : { ...filter, email: filter.email.toLowerCase() };
  return paged(
    caller,
    'users',
    userOrders.inOrder(query),
    (page) => listUsers(parts.db.knex, scopeOf(caller), lowered, page, order),
    (user) => user.position,
    userResource,
    (most) => countUsers(parts.db.knex, scopeOf(caller), lowered, most),
  );
}

/** @throws Refusal `not_found` */
export async function getUser(parts: AdminParts, caller: Caller, id: string): Promise<UserResource> {
  return userResource(await existing(parts.db.knex, caller.tenant, requestedId('usr', id)));
}

/** A user that is locked for a change. */
interface HeldUser {
  readonly user: UserRow;
  /** Throws a Refusal `last_admin` unless the platform keeps an administrator without this user. */
  readonly refuseLastAdmin: () => void;
}

/**
 * Locks a user until the transaction ends. Transactions on holders of `admin` run one after the other: of two
 * administrators that strip each other at once, the second sees what the first did.
 * @throws Refusal `not_found`
 */
export async function holdUser(trx: Transaction, { tenant }: HeldCaller, text: string): Promise<HeldUser> {
  const id = requestedId('usr', text);
  const locked = await lockUserUnlessHolder(trx, tenant, id, ADMIN);
  const user = await existing(trx, tenant, id);
  // A user that became an administrator while this transaction waited for the row is locked as well. The wait below can
  // then end in a deadlock, after which the transaction runs again.
  if (locked && !user.roles.includes(ADMIN)) return { user, refuseLastAdmin: () => undefined };
  await lockAdministrators(trx);
  await lockUser(trx, tenant, id, 'update');
  const admin = await existing(trx, tenant, id);
  const administrators = await localAdministrators(trx);
  const others = administrators.filter((administrator) => administrator.id !== id);
  return { user: admin, refuseLastAdmin: () => refuseWithoutAdministrator(administrators, others) };
}

async function existing(q: Queryable, tenant: TenantId, id: UserId): Promise<UserRow> {
  return orNotFound(await findUser(q, tenant, id), 'user');
}
