/** Pages of users, of any filter, and by text. */

import { Fault } from '../../domain/errors.ts';
import { type Page, scopeCondition, type TenantScope } from '../../store/paging.ts';
import { countUpTo, type NamedQuery, runNamedQuery } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import { idsInOrder, isNarrow, type UserFilter } from './list-queries.ts';
import { type StoredUser, toUser, USER, type UserRow } from './queries.ts';
import {
  type Among,
  firstLooks,
  idBehind,
  idsAmongNext,
  idsByText,
  type Marks,
  type MarksRow,
  moreLooks,
  nearby,
  rareMarks,
  toMarks,
  usersInAnyOrder,
} from './search-queries.ts';

/** In the order in which they were made. */
export async function listUsers(
  q: Queryable,
  scope: TenantScope,
  filter: UserFilter,
  page: Page,
): Promise<readonly StoredUser[]> {
  if (filter.q === undefined || isNarrow(filter)) return usersOf(q, scope, idsInOrder(scope, filter, page));
  return search(q, scope, filter, page);
}

/** Counts the users of a list, up to `most`. */
export async function countUsers(q: Queryable, scope: TenantScope, filter: UserFilter, most: number): Promise<number> {
  const isSearch = filter.q !== undefined && !isNarrow(filter);
  const asking = isSearch
    ? usersInAnyOrder(scope, filter)
    : idsInOrder(scope, filter, { after: undefined, take: most });
  return countUpTo(q, asking, most);
}

async function search(
  q: Queryable,
  scope: TenantScope,
  filter: UserFilter,
  page: Page,
): Promise<readonly StoredUser[]> {
  const { role, directory_status: directoryStatus } = filter;
  // The holders of a role are not told apart by their directory.
  const among = role === undefined || directoryStatus !== undefined ? 'users' : 'holders';
  const first = await look(q, scope, filter, page, among);
  if (first.users !== undefined) return first.users;
  if (among === 'users' || first.marks.role !== null) return usersByText(q, scope, filter, page, first);
  // A role that many hold: users are dearer to find by it than to look through, from its first holder on.
  const rest = { ...page, after: first.start === null ? page.after : justBefore(first.start, page.after) };
  const again = await look(q, scope, filter, rest, 'users');
  return again.users ?? usersByText(q, scope, filter, rest, again);
}

/** A position that only few come between and the id, but never before the one given: an id cut short sorts just before it. */
function justBefore(id: string, after: Page['after']): Page['after'] {
  const cut = id.slice(0, -1);
  return after?.[0]?.startsWith(cut) ? after : [cut];
}

async function usersOf(q: Queryable, scope: TenantScope, asking: NamedQuery): Promise<readonly StoredUser[]> {
  return (await runNamedQuery<UserRow>(q, shown(scope, asking))).map(toUser);
}

/** Whose ids a statement gives, in the order of ids. */
function shown(scope: TenantScope, { sql, bindings }: NamedQuery): NamedQuery {
  return {
    sql: `${USER} where ${scopeCondition(scope, 'u.tenant_id')} and u.id = any(array(${sql})) order by u.id`,
    bindings,
  };
}

/** What a search saw among the next. */
interface Seen {
  readonly looks: number;
  readonly found: number;
  /** Who was looked at first; null where nobody was. */
  readonly start: string | null;
  /** Of the filter, for the index of text. */
  readonly marks: Marks;
  /** The page; undefined where what was found does not fill it and more may follow. */
  readonly users: readonly StoredUser[] | undefined;
}

interface SeenRow extends MarksRow, Partial<UserRow> {
  readonly enough: boolean;
  readonly found: number;
  readonly start: string | null;
}

/** Looks at the first, and on where that promises a page. */
async function look(q: Queryable, scope: TenantScope, filter: UserFilter, page: Page, among: Among): Promise<Seen> {
  const first = await lookAt(q, scope, filter, page, among, firstLooks(filter, among));
  const more = first.users === undefined ? moreLooks(first.looks, first.found, page.take) : undefined;
  return more === undefined ? first : lookAt(q, scope, filter, page, among, more);
}

async function lookAt(
  q: Queryable,
  scope: TenantScope,
  filter: UserFilter,
  page: Page,
  among: Among,
  looks: number,
): Promise<Seen> {
  const { sql, bindings } = idsAmongNext(scope, filter, page, among, looks);
  // One statement, so that nobody goes between being found and being read.
  const rows = await runNamedQuery<SeenRow>(q, {
    sql: `select page.enough, cardinality(page.ids) as found, page.start, marks.*, shown.* from (${sql}) page
     cross join lateral (${rareMarks(scope, filter, 'not page.enough')}) marks
     left join lateral (
       ${USER} where ${scopeCondition(scope, 'u.tenant_id')} and u.id = any(case when page.enough then page.ids else '{}' end)
     ) shown on true
     order by shown.id`,
    bindings,
  });
  const [first] = rows;
  if (first === undefined) throw new Fault('a search read no rows');
  const { found, start, enough } = first;
  return { looks, found, start, marks: toMarks(first), users: enough ? rows.filter(isUser).map(toUser) : undefined };
}

async function usersByText(
  q: Queryable,
  scope: TenantScope,
  filter: UserFilter,
  page: Page,
  { looks, found, marks }: Seen,
): Promise<readonly StoredUser[]> {
  // Who has a rare mark lies far apart.
  const hasMark = Object.values(marks).some((mark) => mark !== null);
  const near = hasMark ? undefined : nearby(filter, looks, found, page.take);
  const [behind] = near === undefined ? [] : await runNamedQuery<{ id: string }>(q, idBehind(page, near));
  return usersOf(q, scope, idsByText(scope, filter, page, { marks, upTo: behind?.id ?? null }));
}

function isUser<R extends Partial<UserRow>>(row: R): row is R & UserRow {
  return typeof row.id === 'string';
}
