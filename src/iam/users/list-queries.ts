/**
 * Lists and searches users, in the order of their ids. An index has the users of every filter in that order, except
 * those of a search by text. A search first reads a bounded number of users in the order of the list, because a text
 * that many users have fills a page among few. If they do not fill the page, the index of lexemes finds the users.
 */

import type { Static } from 'typebox';
import type { UserId } from '../../domain/ids.ts';
import { type Page, type PageRows, scopeBinding, scopeCondition, type TenantScope } from '../../store/paging.ts';
import { countUpTo, type NamedQuery, runNamedQuery } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import { LOCKED_USERS } from '../auth/failure-queries.ts';
import type { directoryStatus, UserRow } from './entity.ts';
import { USER } from './queries.ts';

export interface UserFilter {
  readonly role?: string;
  readonly status?: UserRow['status'];
  /** In lower case. */
  readonly email?: string;
  /** Any part of name, email address or department, in any case. */
  readonly q?: string;
  /** Only users whose account is locked by failed logins now. */
  readonly locked?: true;
  /** Only users of directories whose directory last reported this. */
  readonly directory_status?: Static<typeof directoryStatus>;
  /** Only users of directories whose address another user has. */
  readonly email_conflict?: true;
}

/** Returns one page of users. */
export async function listUsers(
  q: Queryable,
  scope: TenantScope,
  filter: UserFilter,
  page: Page,
): Promise<PageRows<UserRow>> {
  const ids = isSearch(filter)
    ? await searchUserIds(q, scope, filter, page)
    : await idsOf(q, idsInOrder(scope, filter, page));
  const { rows } = await q.raw<{ rows: UserRow[] }>(
    `${USER} where ${scopeCondition(scope, 'u.tenant_id')} and u.id = any(:ids) order by u.id`,
    { ...scopeBinding(scope), ids },
  );
  // Users may have been deleted since their ids were read. Then the page is shorter, and is not the last one.
  return { rows, more: ids.length === page.take };
}

/** Counts the users of a list, up to `most`. */
export async function countUsers(q: Queryable, scope: TenantScope, filter: UserFilter, most: number): Promise<number> {
  const query = isSearch(filter)
    ? idsByText(scope, filter, { after: undefined, take: 0 })
    : idsInOrder(scope, filter, { after: undefined, take: most });
  return countUpTo(q, query, most);
}

async function idsOf(q: Queryable, query: NamedQuery): Promise<readonly UserId[]> {
  return (await runNamedQuery<Pick<UserRow, 'id'>>(q, query)).map(({ id }) => id);
}

/**
 * Reports whether few users match one of the filters, so that all of them can be read: an address is that of one user
 * at most, and locked accounts and address conflicts are rare.
 */
function isNarrow({ email, locked, email_conflict }: UserFilter): boolean {
  return email !== undefined || locked === true || email_conflict === true;
}

function isSearch(filter: UserFilter): boolean {
  return filter.q !== undefined && !isNarrow(filter);
}

/**
 * Users that a search reads in the order of the list, in its first and in its second scan. If the second one does not
 * fill a page of 50 users, the index finds at most 1 user in 200.
 */
const SCANS = [500, 10_000];

/** Returns the ids of one page for a filter with `q`. */
async function searchUserIds(
  q: Queryable,
  scope: TenantScope,
  filter: UserFilter,
  page: Page,
): Promise<readonly UserId[]> {
  const { q: _text, ...others } = filter;
  for (const take of SCANS) {
    const next = idsInOrder(scope, others, { ...page, take });
    const sql = `with next as materialized (${next.sql})
      select array(
          select u.id from users u where u.id = any(array(select id from next)) and ${textCondition(filter).join(' and ')}
          order by u.id limit :pageSize
        ) as ids,
        (select count(*) from next) < :take as at_end`;
    const bindings = { ...bindingsOf(scope, filter, page), ...next.bindings, pageSize: page.take };
    const [scanned] = await runNamedQuery<{ ids: readonly UserId[]; at_end: boolean }>(q, { sql, bindings });
    if (scanned !== undefined && (scanned.at_end || scanned.ids.length === page.take)) return scanned.ids;
  }
  const { sql, bindings } = idsByText(scope, filter, page);
  return idsOf(q, {
    sql: `with found as materialized (${sql}) select id from found order by id limit :take`,
    bindings,
  });
}

/**
 * Returns a query for the ids of a search, in no order, by the index of lexemes. All other conditions are hidden from
 * the planner, which would walk through whole tenants for them. Nearly all users are active, so that status is none of
 * the lexemes that narrow the search.
 */
export function idsByText(scope: TenantScope, filter: UserFilter, page: Page): NamedQuery {
  const others = [...conditionsOf(scope, filter, page), ...roleCondition(filter), ...textCondition(filter)];
  const marks = {
    tenantMark: scopeBinding(scope).tenant ?? null,
    statusMark: filter.status === 'deactivated' ? filter.status : null,
    roleMark: filter.role ?? null,
  };
  const sql = `select u.id from users u where user_lexemes(u.tenant_id, u.status, u.role_names, u.search_text) @@ (
      select user_query(cast(:tenantMark as text), cast(:statusMark as text), cast(:roleMark as text), lower(cast(:q as text)))
    ) and ${others.map((condition) => `(${condition}) is true`).join(' and ')}`;
  return { sql, bindings: { ...bindingsOf(scope, filter, page), ...marks } };
}

const STATUSES = ['active', 'deactivated'] as const;

/**
 * Returns a query for the ids of one page, in order, for every filter except `q`, which it applies together with a
 * narrow filter only.
 */
export function idsInOrder(scope: TenantScope, filter: UserFilter, page: Page): NamedQuery {
  const bindings = bindingsOf(scope, filter, page);
  const { role, directory_status: directoryStatus } = filter;
  if (role !== undefined && directoryStatus === undefined && !isNarrow(filter)) {
    return { sql: holdersInOrder(scope, filter, page), bindings };
  }
  const text = isNarrow(filter) ? textCondition(filter) : [];
  const conditions = [...conditionsOf(scope, filter, page), ...roleCondition(filter), ...text];
  return { sql: `select u.id from users u where ${conditions.join(' and ')} order by u.id limit :take`, bindings };
}

/** The holders of the filter's role. A user that holds it by hand and from the directory has two rows. */
function holdersInOrder(scope: TenantScope, filter: UserFilter, page: Page): string {
  const holders = (status: string): string =>
    `(select distinct r.user_id as id from user_roles r
      where ${scopeCondition(scope, 'r.tenant_id')} and r.role_name = :role and r.status = '${status}'
        ${page.after === undefined ? '' : 'and r.user_id > :after'}
      order by r.user_id limit :take)`;
  const statuses = filter.status === undefined ? STATUSES : [filter.status];
  return `select held.id from (${statuses.map(holders).join(' union all ')}) held order by held.id limit :take`;
}

function conditionsOf(scope: TenantScope, filter: UserFilter, page: Page): readonly string[] {
  return [
    scopeCondition(scope, 'u.tenant_id'),
    ...(page.after === undefined ? [] : ['u.id > :after']),
    // Part of the SQL text, because the plan depends on it: nearly all users are active.
    ...(filter.status === undefined ? [] : [`u.status = '${filter.status}'`]),
    ...(filter.email === undefined ? [] : ['u.email = :email']),
    // In the form of the partial indexes.
    ...(filter.directory_status === undefined
      ? []
      : [`u.source = 'ldap' and coalesce(u.directory_suspension, 'active') = '${filter.directory_status}'`]),
    ...(filter.locked === undefined ? [] : [`u.id = any(array(${LOCKED_USERS}))`]),
    ...(filter.email_conflict === undefined
      ? []
      : ['u.id = any(array(select id from users where email_conflict is not null))']),
  ];
}

function roleCondition(filter: UserFilter): readonly string[] {
  return filter.role === undefined ? [] : ['u.role_names @> array[cast(:role as text)]'];
}

function textCondition(filter: UserFilter): readonly string[] {
  return filter.q === undefined ? [] : ['position((select lower(:q)) in u.search_text) > 0'];
}

function bindingsOf(scope: TenantScope, filter: UserFilter, page: Page): NamedQuery['bindings'] {
  const { role, email, q } = filter;
  return {
    ...scopeBinding(scope),
    ...(role === undefined ? {} : { role }),
    ...(email === undefined ? {} : { email }),
    ...(q === undefined ? {} : { q }),
    ...(page.after === undefined ? {} : { after: page.after[0] ?? '' }),
    take: page.take,
  };
}
