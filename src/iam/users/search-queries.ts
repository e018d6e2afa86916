/**
 * How users are searched for by text: statements, and which of them to ask.
 *
 * The next users in order are looked through first, because text that many have is found among few. What few have, the index of text
 * finds. In between, where about one in some hundred users has the text, the index finds thousands of whom a page shows the first: then
 * an interval of ids is laid over what it finds, so that only who comes next is read. What is found is the same either way.
 *
 * The figures are such that no way is much dearer than the cheapest at a million users.
 */

import { type Page, scopeBinding, type TenantScope } from '../../store/paging.ts';
import type { NamedQuery } from '../../store/prepared.ts';
import {
  bindingsOf,
  conditionsOf,
  holdersInOrder,
  roleCondition,
  textCondition,
  type UserFilter,
  usersInOrder,
} from './list-queries.ts';

/** Whom a search looks through: the holders of the role asked for, or users whatever their roles, of whom it takes the holders. */
export type Among = 'holders' | 'users';

/** How many are looked through to begin with: holders lie apart, and users of one status too, so that each is dearer to look at. */
export function firstLooks({ status }: UserFilter, among: Among): number {
  if (among === 'holders') return 150;
  return status === undefined ? 600 : 300;
}

/**
 * How many are then looked through in all, when among the first were so many that this promises a page.
 * @returns undefined when the index of text is to be asked
 */
export function moreLooks(first: number, found: number, take: number): number | undefined {
  return found ** 2 >= 2 * take ? Math.ceil((first * take * 1.5) / found) : undefined;
}

/** More are not worth telling from who comes behind them. */
const MAX_NEAR = 30_000;
/** So long a text is one lexeme, and to ask for it twice costs little. */
const ONE_LEXEME = 3;

/**
 * Among how many of the next users a page is to be expected, when so many were found among the first.
 * @returns undefined when all are to be read whom the index of text finds, because they seem to be few
 */
export function nearby({ q = '' }: UserFilter, first: number, found: number, take: number): number | undefined {
  if (found === 0) return undefined;
  const near = Math.ceil((first * take * 1.5) / found);
  // One alone may be there by chance.
  const isTold = found > 1 && near <= 2 * MAX_NEAR;
  return isTold || q.length === ONE_LEXEME ? Math.min(near, MAX_NEAR) : undefined;
}

/**
 * By what the index of text tells users apart beside their text: each null where no such filter is, or where at least a tenth of the
 * newest users have it, so that asking for it costs the index more than it spares.
 */
export interface Marks {
  readonly tenant: string | null;
  readonly status: string | null;
  readonly role: string | null;
}

/** What narrows the search by the index of text; what is found is the same with any of it. */
export interface Narrowing {
  readonly marks: Marks;
  /** An id: who comes up to it is looked for first. Null when all are at once. */
  readonly upTo: string | null;
}

/**
 * Gives one row: `ids` of those found among the next, `enough`: the page is full, or there is nobody else; and `start`: the id of the
 * first that was looked at.
 */
export function idsAmongNext(
  scope: TenantScope,
  filter: UserFilter,
  page: Page,
  among: Among,
  looks: number,
): NamedQuery {
  const next = (among === 'users' ? usersInOrder : holdersInOrder)(scope, filter, page, ':looks');
  const texts =
    among === 'users'
      ? usersInOrder(scope, filter, page, ':looks', 'u.id, u.search_text, u.role_names')
      : `select u.id, u.search_text, u.role_names from users u where u.id = any(array(${next}))`;
  const conditions = [...textCondition(filter), ...roleCondition(filter)].join(' and ');
  const sql = `with found as materialized (
      select array(select u.id from (${texts}) u where ${conditions} order by u.id limit :take) as ids
    )
    select ids, cardinality(ids) = :take or not exists (select from (${next}) next offset :looks - 1) as enough,
      (select id from (${next}) next limit 1) as start
    from found`;
  return { sql, bindings: { ...bindingsOf(scope, filter, page), looks } };
}

/** Users that are looked at to learn what is common. */
const SAMPLE = 200;

export function allMarks(scope: TenantScope, { status, role }: UserFilter): Marks {
  return { tenant: scopeBinding(scope).tenant ?? null, status: status ?? null, role: role ?? null };
}

const NO_MARK = 'cast(null as text)';

/** What `rareMarks` gives. */
export interface MarksRow {
  readonly tenant_mark: string | null;
  readonly status_mark: string | null;
  readonly role_mark: string | null;
}

export function toMarks(row: MarksRow): Marks {
  return { tenant: row.tenant_mark, status: row.status_mark, role: row.role_mark };
}

/** Gives MarksRow, in one row. @param when a condition; where it does not hold nobody is looked at, and what it gives means nothing */
export function rareMarks(scope: TenantScope, filter: UserFilter, when: string): string {
  const marks = allMarks(scope, filter);
  const rare = (name: keyof Marks, condition: string): string => {
    const mark = `case when count(*) filter (where ${condition}) < ${SAMPLE / 10} then cast(:${name} as text) end`;
    return `${marks[name] === null ? NO_MARK : mark} as ${name}_mark`;
  };
  const columns = [
    rare('tenant', 'tenant_id = :tenant'),
    rare('status', 'status = :status'),
    rare('role', 'role_names @> array[cast(:role as text)]'),
  ].join(', ');
  if (Object.values(marks).every((mark) => mark === null)) return `select ${columns}`;
  return `select ${columns} from (select tenant_id, status, role_names from users where ${when} order by id desc limit ${SAMPLE}) newest`;
}

/**
 * Gives `id`: to where about so many users reach, by PostgreSQL's own statistics. They may be old, which makes a search slower and
 * changes nothing else, or missing: then there is no row.
 */
export function idBehind(page: Page, near: number): NamedQuery {
  const sql = `with parts as materialized (
      select cast(cast(histogram_bounds as text) as text[]) as bounds,
        (select reltuples from pg_class where oid = cast('users' as regclass)) as users
      from pg_stats
      where tablename = 'users' and attname = 'id'
        and schemaname = (select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = cast('users' as regclass))
    )
    select later.id from parts cross join lateral (
      select id from unnest(parts.bounds) id where id > :after
      order by id offset floor(cast(:near as integer) / greatest(parts.users, 1) * cardinality(parts.bounds)) limit 1
    ) later`;
  return { sql, bindings: { near, after: afterOf(page) } };
}

/**
 * Gives `id`, in order. The plan is the same whatever the values: the index of text finds, and of all other conditions only an interval
 * of ids is left to an index. The others are hidden from the planner, which would walk through whole tenants for them.
 */
export function idsByText(scope: TenantScope, filter: UserFilter, page: Page, { marks, upTo }: Narrowing): NamedQuery {
  const matching = matchingByText(scope, filter, page);
  const asked = ASKED_TEXT;
  const all = `${matching} and (u.id > :after) is true`;
  const sql =
    upTo === null
      ? `with ${asked}, found as materialized (${all}) select id from found order by id limit :take`
      : `with ${asked}, near as materialized (${matching} and u.id > :after and u.id <= :upTo),
      number as materialized (select count(*) as near from near),
      found as materialized (${all} and (select near from number) < :take)
    select id from (select id from near where (select near from number) >= :take union all select id from found) ids
    order by id limit :take`;
  const { tenant: tenantMark, status: statusMark, role: roleMark } = marks;
  const bindings = { ...bindingsOf(scope, filter, page), after: afterOf(page), tenantMark, statusMark, roleMark };
  return { sql, bindings: upTo === null ? bindings : { ...bindings, upTo } };
}

const ASKED_TEXT = `asked as materialized (
      select user_query(cast(:tenantMark as text), cast(:statusMark as text), cast(:roleMark as text), lower(cast(:q as text))) as query,
        lower(cast(:q as text)) as needle
    )`;

function matchingByText(scope: TenantScope, filter: UserFilter, page: Page): string {
  const others = [...conditionsOf(scope, filter, { ...page, after: undefined }), ...roleCondition(filter)];
  return [
    `select u.id from users u where user_lexemes(u.tenant_id, u.status, u.role_names, u.search_text) @@ (select query from asked)`,
    'position((select needle from asked) in u.search_text) > 0',
    ...others.map((condition) => `(${condition}) is true`),
  ].join(' and ');
}

/** Gives a row for each user whom the index of text finds, in no order. */
export function usersInAnyOrder(scope: TenantScope, filter: UserFilter): NamedQuery {
  const { tenant: tenantMark, status: statusMark, role: roleMark } = allMarks(scope, filter);
  const page = { after: undefined, take: 0 };
  return {
    sql: `with ${ASKED_TEXT} ${matchingByText(scope, filter, page)}`,
    bindings: { ...bindingsOf(scope, filter, page), tenantMark, statusMark, roleMark },
  };
}

/** Every id comes behind the empty one. */
function afterOf(page: Page): string {
  return page.after?.[0] ?? '';
}
