/** Lists, searches and counts users. */

import type { RoleName, TenantId, UserId } from '../../domain/ids.ts';
import { present } from '../../domain/objects.ts';
import { type Page, type PageRows, scopeBinding, scopeCondition, type TenantScope } from '../../store/paging.ts';
import { countUpTo, type NamedQuery } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import { findSortedPage, type OrderedRows, type SortedRow, type SortedSearch } from '../../store/sorted-pages.ts';
import type { Sorting } from '../../store/sorting.ts';
import { LOCKED_USERS } from '../auth/failure-queries.ts';
import type { ListOrder } from '../list/sort.ts';
import type { UserFilters, UserRow } from './entity.ts';
import { USER } from './queries.ts';

/** The email address is in lower case. */
export interface UserFilter extends UserFilters {
  /** Only users that a change of several users would change. */
  readonly pending?: PendingChange;
}

/** A change of several users. */
export type PendingChange =
  | { readonly action: 'deactivate'; readonly role?: undefined }
  | { readonly action: 'add_role' | 'remove_role'; readonly role: RoleName };

export const USER_ORDERS = ['created_at', 'last_login_at', 'name'] as const;
export type UserOrder = ListOrder<(typeof USER_ORDERS)[number]>;
export const NEWEST_USERS_FIRST: UserOrder = { member: 'created_at', descending: true };

/** A user of a page, with its place in the order of the list. */
type ListedUser = UserRow & Pick<SortedRow<UserId>, 'position'>;

/**
 * Users that a search reads in the order of the list, in one scan after the other. If the last one does not fill a page
 * of 50 users, an index of the filter finds at most 1 user in 200.
 */
const SCANNED_USERS = [500, 2000, 10_000];

/** Returns one page of users. */
export async function listUsers(
  q: Queryable,
  scope: TenantScope,
  filter: UserFilter,
  page: Page,
  order: UserOrder = NEWEST_USERS_FIRST,
): Promise<PageRows<ListedUser>> {
  const found = await findSortedPage<UserId>(q, userSearch(scope, filter, order), page, SCANNED_USERS);
  const { rows } = await q.raw<{ rows: UserRow[] }>(
    `${USER} where ${scopeCondition(scope, 'u.tenant_id')} and u.id = any(:ids)`,
    { ...scopeBinding(scope), ids: found.map(({ id }) => id) },
  );
  const users = new Map(rows.map((row) => [row.id, row]));
  return {
    rows: found.flatMap(({ id, position }) => {
      const user = users.get(id);
      return user === undefined ? [] : [{ ...user, position }];
    }),
    // Users may have been deleted since their ids were read. Then the page is shorter, and is not the last one.
    more: found.length === page.take,
  };
}

/** Returns the ids of the newest `take` users of a tenant that the filter matches. */
export async function listUserIds(
  q: Queryable,
  tenant: TenantId,
  filter: UserFilter,
  take: number,
): Promise<readonly UserId[]> {
  const search = userSearch({ kind: 'one', tenant }, filter, NEWEST_USERS_FIRST);
  return (await findSortedPage<UserId>(q, search, { after: undefined, take }, SCANNED_USERS)).map(({ id }) => id);
}

/** Returns the tenant's users among these ids that match the filter, in the order of their ids. */
export async function findUsers(
  q: Queryable,
  tenant: TenantId,
  ids: readonly UserId[],
  filter: UserFilter,
): Promise<readonly UserRow[]> {
  const scope = { kind: 'one', tenant } as const;
  const conditions = [scopeCondition(scope, 'u.tenant_id'), 'u.id = any(:ids)', ...conditionsOf(filter)];
  const { rows } = await q.raw<{ rows: UserRow[] }>(`${USER} where ${conditions.join(' and ')} order by u.id`, {
    ...bindingsOf(scope, filter),
    ids,
  });
  return rows;
}

export async function countUsers(q: Queryable, scope: TenantScope, filter: UserFilters, most: number): Promise<number> {
  const { table, matching, bindings } = userSearch(scope, filter, NEWEST_USERS_FIRST);
  // Only a filter of role and status finds users by their role, and every holder matches it, except former ones in all tenants.
  return countUpTo(
    q,
    { sql: `select from ${table} where ${matching}`, bindings: { ...bindings, holders: most } },
    most,
  );
}

interface Ordered {
  readonly value: string;
  readonly kind: Sorting['kind'];
  /** The rows by the indexes of the order. */
  readonly rows: (scope: TenantScope) => readonly OrderedRows[];
}

const USERS = { id: 'u.id', from: 'users u' };
const ofTenant = (scope: TenantScope): string => scopeCondition(scope, 'u.tenant_id');

const LAST_LOGIN = '(select l.last_login_at from user_logins l where l.user_id = u.id)';

/**
 * As a value, so that PostgreSQL looks the login of one user up after the other, and expects that half of the users have
 * none: it then reads users in the order of an index, and stops at the end of the page.
 */
const NEVER_LOGGED_IN = 'not coalesce((select true from user_logins l where l.user_id = u.id), false)';

const ORDERS: Readonly<Record<UserOrder['member'], Ordered>> = {
  created_at: {
    value: 'u.created_at',
    kind: 'time',
    rows: (scope) => [{ ...USERS, value: 'u.created_at', where: ofTenant(scope) }],
  },
  name: {
    value: 'lower(u.name)',
    kind: 'text',
    rows: (scope) => [{ ...USERS, value: 'lower(u.name)', where: ofTenant(scope) }],
  },
  last_login_at: {
    value: LAST_LOGIN,
    kind: 'time',
    rows: (scope) => [
      {
        ...{ value: 'l.last_login_at', id: 'l.user_id', from: 'user_logins l' },
        where: scopeCondition(scope, 'l.tenant_id'),
      },
      {
        ...{ ...USERS, value: null },
        where: `${ofTenant(scope)} and ${NEVER_LOGGED_IN}`,
      },
    ],
  },
};

/** Returns the search of a list. */
export function userSearch(scope: TenantScope, filter: UserFilter, order: UserOrder): SortedSearch {
  const { value, kind, rows } = ORDERS[order.member];
  const conditions = conditionsOf(filter);
  return {
    ...{ kind, value, id: 'u.id', table: 'users u', descending: order.descending },
    ordered: isNarrow(filter) ? [] : rows(scope),
    filter: conditions.length === 0 ? undefined : conditions.map(hidden).join(' and '),
    matching: [indexedOf(scope, filter), ...[ofTenant(scope), ...conditions].map(hidden)].join(' and '),
    bindings: bindingsOf(scope, filter),
  };
}

/** Hides a condition from the planner, which would choose an index of it. */
const hidden = (condition: string): string => `(${condition}) is true`;

/**
 * Reports whether few users match one of the filters, so that all of them can be read: an address is that of one user
 * at most, and locked accounts and address conflicts are rare.
 */
function isNarrow({ email, locked, email_conflict }: UserFilter): boolean {
  return email !== undefined || locked === true || email_conflict === true;
}

/** A condition that all users of the filter meet, for an index. */
function indexedOf(scope: TenantScope, filter: UserFilter): string {
  const { role, status, directory_status: directory } = filter;
  if (filter.email !== undefined) return CONDITIONS.email;
  if (filter.locked === true) return CONDITIONS.locked;
  if (filter.email_conflict === true) return CONDITIONS.emailConflict;
  if (filter.q !== undefined) return BY_LEXEME;
  if (directory !== undefined) return `${ofTenant(scope)} and ${ofDirectory(directory)}`;
  if (role !== undefined) return holds(scope, status);
  return status === 'deactivated' ? `${ofTenant(scope)} and ${ofStatus(status)}` : ofTenant(scope);
}

/**
 * A condition on the users that hold the role of the filter, the first `:holders` of them. As an array, so that PostgreSQL
 * looks them up: it does not know how many hold a role, and would read all users.
 */
function holds(scope: TenantScope, status: UserFilter['status']): string {
  // The index of the holders in all tenants has no tenant. There, the filter alone leaves out former holders.
  const ofScope =
    scope.kind === 'every' ? 'true' : `${scopeCondition(scope, 'r.tenant_id')} and ${keeps('r.tenant_id', ':role')}`;
  // A user that holds it by hand and from the directory has two rows, which are neighbors in the index of a status.
  const ofOne = (one: string): string =>
    `(select distinct r.user_id as id from user_roles r
      where ${ofScope} and r.role_name = :role and r.status = '${one}')`;
  const held = (status === undefined ? STATUSES : [status]).map(ofOne).join(' union all ');
  return `u.id = any(array(select held.id from (${held}) held limit :holders))`;
}

/**
 * A condition on the tenants whose users have the role that their rows name. In the others, the role was deleted, and
 * upkeep still removes it from the rows. As an array, which PostgreSQL reads once.
 */
const keeps = (tenant: string, role: string): string =>
  `${tenant} <> all(array(select d.tenant_id from deleted_roles d where d.name = cast(${role} as text)))`;

const STATUSES = ['active', 'deactivated'] as const;
const ALL_HOLDERS = Number.MAX_SAFE_INTEGER;

/** Nearly all users are active, so that status is none of the lexemes that narrow the search. */
const BY_LEXEME = `user_lexemes(u.tenant_id, u.status, u.role_names, u.search_text) @@ (
    select user_query(cast(:tenantMark as text), cast(:statusMark as text), cast(:roleMark as text), lower(cast(:q as text)))
  )`;

const CONDITIONS = {
  email: 'u.email = :email',
  locked: `u.id = any(array(${LOCKED_USERS}))`,
  emailConflict: 'u.id = any(array(select id from users where email_conflict is not null))',
} as const;

// Part of the SQL text, because the plan depends on it: nearly all users are active.
const ofStatus = (status: UserRow['status']): string => `u.status = '${status}'`;

/** In the form of the partial indexes. */
const ofDirectory = (status: NonNullable<UserFilter['directory_status']>): string =>
  `u.source = 'ldap' and coalesce(u.directory_suspension, 'active') = '${status}'`;

const GIVEN = `(exists (select from user_roles g where g.user_id = u.id and g.role_name = :given and g.source = 'manual')
  and ${keeps('u.tenant_id', ':given')})`;
const PENDING: Readonly<Record<PendingChange['action'], string>> = {
  deactivate: ofStatus('active'),
  add_role: `not ${GIVEN}`,
  remove_role: GIVEN,
};

/** Every condition on `users u` except the scope's. */
function conditionsOf(filter: UserFilter): readonly string[] {
  const { status, directory_status: directory } = filter;
  return [
    ...(status === undefined ? [] : [ofStatus(status)]),
    ...(filter.email === undefined ? [] : [CONDITIONS.email]),
    ...(directory === undefined ? [] : [ofDirectory(directory)]),
    ...(filter.locked === undefined ? [] : [CONDITIONS.locked]),
    ...(filter.email_conflict === undefined ? [] : [CONDITIONS.emailConflict]),
    ...(filter.role === undefined ? [] : ['u.role_names @> array[cast(:role as text)]', keeps('u.tenant_id', ':role')]),
    ...(filter.pending === undefined ? [] : [PENDING[filter.pending.action]]),
    ...(filter.q === undefined ? [] : ['position((select lower(:q)) in u.search_text) > 0']),
  ];
}

function bindingsOf(scope: TenantScope, { role, email, q, status, pending }: UserFilter): NamedQuery['bindings'] {
  const marks = {
    tenantMark: scopeBinding(scope).tenant ?? null,
    statusMark: status === 'deactivated' ? status : null,
    roleMark: role ?? null,
  };
  return {
    ...scopeBinding(scope),
    ...present({ role, email, given: pending?.role }),
    holders: ALL_HOLDERS,
    ...(q === undefined ? {} : { q, ...marks }),
  };
}
