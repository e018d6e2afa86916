/**
 * Which users a list shows: statements that give their ids. Every filter is answered by an index that has its users in the order of the
 * list, but for a search by text, which user-search.ts does.
 */

import type { DirectorySuspension } from '../../domain/records.ts';
import { type Page, scopeBinding, scopeCondition, type TenantScope } from '../../store/paging.ts';
import type { NamedQuery } from '../../store/prepared.ts';
import { LOCKED_USERS } from '../auth/failure-queries.ts';

export interface UserFilter {
  readonly role?: string;
  readonly status?: 'active' | 'deactivated';
  /** In lower case. */
  readonly email?: string;
  /** Any part of name, e-mail or department, whatever its case. */
  readonly q?: string;
  /** Only users whose account failed logins lock now. */
  readonly locked?: true;
  /** Only users of directories whose directory last reported this. */
  readonly directory_status?: 'active' | DirectorySuspension;
  /** Only users of directories whose address another user has. */
  readonly email_conflict?: true;
}

/**
 * Reports whether so few users pass one of the filters that all of them can be read: one address is one user's at most, and locked accounts
 * and address conflicts are rare.
 */
export function isNarrow({ email, locked, email_conflict }: UserFilter): boolean {
  return email !== undefined || locked === true || email_conflict === true;
}

/** A binding. */
type Limit = ':take' | ':looks';

const STATUSES = ['active', 'deactivated'] as const;

/** Gives `id`, in order: for every filter except `q`, which it reads only beside a narrow filter. */
export function idsInOrder(scope: TenantScope, filter: UserFilter, page: Page): NamedQuery {
  const bindings = bindingsOf(scope, filter, page);
  if (!isNarrow(filter)) return { sql: inOrder(scope, filter, page, ':take'), bindings };
  const conditions = [...conditionsOf(scope, filter, page), ...roleCondition(filter), ...textCondition(filter)];
  return { sql: `select u.id from users u where ${conditions.join(' and ')} order by u.id limit :take`, bindings };
}

function inOrder(scope: TenantScope, filter: UserFilter, page: Page, limit: Limit): string {
  if (filter.role === undefined) return usersInOrder(scope, filter, page, limit);
  if (filter.directory_status === undefined) return holdersInOrder(scope, filter, page, limit);
  const conditions = [...conditionsOf(scope, filter, page), ...roleCondition(filter)].join(' and ');
  return `select u.id from users u where ${conditions} order by u.id limit ${limit}`;
}

/** Whatever their roles. @param columns of `users u` */
export function usersInOrder(
  scope: TenantScope,
  filter: UserFilter,
  page: Page,
  limit: Limit,
  columns = 'u.id',
): string {
  return `select ${columns} from users u where ${conditionsOf(scope, filter, page).join(' and ')} order by u.id limit ${limit}`;
}

/** Who holds the filter's role. */
export function holdersInOrder(scope: TenantScope, filter: UserFilter, page: Page, limit: Limit): string {
  // Who holds a role by hand and by the directory is there twice.
  const holders = (status: string): string =>
    `(select distinct r.user_id as id from user_roles r
      where ${scopeCondition(scope, 'r.tenant_id')} and r.role_name = :role and r.status = '${status}'
        ${page.after === undefined ? '' : 'and r.user_id > :after'}
      order by r.user_id limit ${limit})`;
  const statuses = filter.status === undefined ? STATUSES : [filter.status];
  return `select held.id from (${statuses.map(holders).join(' union all ')}) held order by held.id limit ${limit}`;
}

export function conditionsOf(scope: TenantScope, filter: UserFilter, page: Page): readonly string[] {
  return [
    scopeCondition(scope, 'u.tenant_id'),
    ...(page.after === undefined ? [] : ['u.id > :after']),
    // In the text, for the plan depends on it: nearly all are active.
    ...(filter.status === undefined ? [] : [`u.status = '${filter.status}'`]),
    ...(filter.email === undefined ? [] : ['u.email = :email']),
    // In the words of the indexes, and in the text, as a status is.
    ...(filter.directory_status === undefined
      ? []
      : [`u.source = 'ldap' and coalesce(u.directory_suspension, 'active') = '${filter.directory_status}'`]),
    ...(filter.locked === undefined ? [] : [`u.id = any(array(${LOCKED_USERS}))`]),
    ...(filter.email_conflict === undefined
      ? []
      : ['u.id = any(array(select id from users where email_conflict is not null))']),
  ];
}

export function roleCondition(filter: UserFilter): readonly string[] {
  return filter.role === undefined ? [] : ['u.role_names @> array[cast(:role as text)]'];
}

export function textCondition(filter: UserFilter): readonly string[] {
  return filter.q === undefined ? [] : ['position((select lower(:q)) in u.search_text) > 0'];
}

export function bindingsOf(scope: TenantScope, filter: UserFilter, page: Page): NamedQuery['bindings'] {
  const { role, status, email, q } = filter;
  return {
    ...scopeBinding(scope),
    ...(role === undefined ? {} : { role }),
    ...(status === undefined ? {} : { status }),
    ...(email === undefined ? {} : { email }),
    ...(q === undefined ? {} : { q }),
    ...(page.after === undefined ? {} : { after: page.after[0] ?? '' }),
    take: page.take,
  };
}
