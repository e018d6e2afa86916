/** Reading users. */

import type { AdminParts, Caller } from '../caller/caller.ts';
import { notFound } from '../caller/refusals.ts';
import { type List, type ListQuery, paged, scopeOf } from '../list/list.ts';
import { userIdOf } from './find.ts';
import type { UserFilter } from './list-queries.ts';
import { countUsers, listUsers } from './page-queries.ts';
import { findUser } from './queries.ts';
import { type UserResource, userResource } from './resource.ts';

export interface UserListQuery extends ListQuery, UserFilter {}

export async function listUsersPage(
  parts: AdminParts,
  caller: Caller,
  query: UserListQuery,
): Promise<List<UserResource>> {
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
