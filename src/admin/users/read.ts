/** Reading users. */

import type { UserFilter } from '../../store/queries/user-lists.ts';
import { countUsers, listUsers } from '../../store/queries/user-pages.ts';
import { findUser } from '../../store/queries/users.ts';
import type { AdminParts, Caller } from '../caller.ts';
import { type List, type ListQuery, paged, scopeOf } from '../list.ts';
import { notFound } from '../refusals.ts';
import { userIdOf } from './find.ts';
import { type UserResource, userResource } from './resource.ts';

export interface UserListQuery extends ListQuery, UserFilter {}

export async function listUsersPage(parts: AdminParts, caller: Caller, query: UserListQuery): Promise<List<UserResource>> {
  const { limit: _limit, cursor: _cursor, count: _count, ...filter } = query;
  const lowered = filter.email === undefined ? filter : { ...filter, email: filter.email.toLowerCase() };
  return paged(
    caller,
    'users',
    query,
    (page) => listUsers(parts.db.knex, scopeOf(caller), lowered, page),
    (user) => [user.id],
    userResource,
    (most) => countUsers(parts.db.knex, scopeOf(caller), lowered, most),
  );
}

export async function getUser(parts: AdminParts, caller: Caller, id: string): Promise<UserResource> {
  const user = await findUser(parts.db.knex, caller.tenant, userIdOf(id));
  if (user === undefined) throw notFound('user');
  return userResource(user);
}
