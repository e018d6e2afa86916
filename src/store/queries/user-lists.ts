/**
 * Which users a list shows: statements that give their ids. Every filter is answered by an index that has its users in the order of the
 * list, but for a search.
 *
 * A search looks at the next users in order first, because text that many have is found among few. When few of them have it, or when
 * they lie far apart so that looking is dear, the index of text finds who has it. Either costs most where about one in two hundred has
 * the text: then it reads some thousand rows.
 */

import { type Page, scopeBinding, scopeCondition, type TenantScope } from './rows.ts';

export interface UserFilter {
  readonly role?: string;
  readonly status?: 'active' | 'deactivated';
  /** In lower case. */
  readonly email?: string;
  /** Any part of name, e-mail or department, whatever its case. */
  readonly q?: string;
}

/** A statement with named bindings. */
export interface Asking {
  readonly sql: string;
  readonly bindings: Readonly<Record<string, string | number | null>>;
}

/** How many users a search looks at to begin with. Those of one role or status are scattered among all, and dearer to look at. */
export function firstLooks(filter: UserFilter): number {
  return filter.role === undefined && filter.status === undefined ? 2000 : 500;
}

/** What a search saw among the next users in order. */
export interface Seen {
  /** Whether the page is full, or there is nobody else. */
  readonly enough: boolean;
  readonly found: number;
  /** Whether those looked at are at least a tenth of the users around them. */
  readonly dense: boolean;
  readonly marks: Marks;
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

/** Users that are looked at to learn what is common. */
const SAMPLE = 200;

/**
 * How many it then looks at in all, when among the first were enough that this many promise a page: the square root of a page is about
 * where looking on and asking the index of text cost the same, at a million users.
 * @returns undefined when the index of text is to be asked
 */
export function moreLooks(filter: UserFilter, { found, dense }: Seen, take: number): number | undefined {
  const root = Math.sqrt(take);
  return dense && found >= root ? Math.ceil(firstLooks(filter) * root * 1.5) : undefined;
}

const STATUSES = ['active', 'deactivated'] as const;

/** Gives `id`, in order: for every filter but `q`, which counts beside `email` alone. */
export function idsInOrder(scope: TenantScope, filter: UserFilter, page: Page): Asking {
  const bindings = bindingsOf(scope, filter, page);
  if (filter.email === undefined) return { sql: inOrder(scope, filter, page, ':take'), bindings };
  // An e-mail address is one user's at most.
  const conditions = [...conditionsOf(scope, filter, page), ...roleCondition(filter), ...textCondition(filter)];
  return { sql: `select u.id from users u where ${conditions.join(' and ')}`, bindings };
}

/** Gives one row: `ids` of those found among the next users in order, with the members of Seen but `found`. */
export function idsAmongNext(scope: TenantScope, filter: UserFilter, page: Page, looks: number): Asking {
  const next = inOrder(scope, filter, page, ':looks');
  const texts =
    filter.role === undefined
      ? inOrder(scope, filter, page, ':looks', 'u.id, u.search_text')
      : `select one.id, u.search_text from (${next}) one cross join lateral (select search_text from users where id = one.id offset 0) u`;
  const around = conditionsOf(scope, {}, page).join(' and ');
  const sql = `with found as materialized (
      select array(select u.id from (${texts}) u where ${textCondition(filter).join()} order by u.id limit :take) as ids
    ), looked as materialized (
      select count(*) as number, max(id) as last from (${next}) next where (select cardinality(ids) from found) < :take
    )
    select ids, cardinality(ids) = :take or looked.number < :looks as enough,
      (select jsonb_build_object(
          'tenant', case when count(*) filter (where s.tenant_id = :tenantMark) < :common then cast(:tenantMark as text) end,
          'status', case when count(*) filter (where s.status = :statusMark) < :common then cast(:statusMark as text) end,
          'role', case when count(*) filter (where s.role_names @> array[cast(:roleMark as text)]) < :common then cast(:roleMark as text) end)
        from (select tenant_id, status, role_names from users order by id desc limit :sample) s) as marks,
      (select count(*) from (select from users u where ${around} and u.id <= looked.last limit :around) passed) < :around as dense
    from found cross join looked`;
  const { tenant: tenantMark, status: statusMark, role: roleMark } = allMarks(scope, filter);
  const sampled = { tenantMark, statusMark, roleMark, sample: SAMPLE, common: SAMPLE / 10 };
  return { sql, bindings: { ...bindingsOf(scope, filter, page), ...sampled, looks, around: 10 * looks } };
}

export function allMarks(scope: TenantScope, { status, role }: UserFilter): Marks {
  return { tenant: scopeBinding(scope).tenant ?? null, status: status ?? null, role: role ?? null };
}

/** Gives `id`, in order. @param marks those that narrow the search; what is found is the same with any of them */
export function idsByText(scope: TenantScope, filter: UserFilter, page: Page, marks: Marks): Asking {
  const conditions = [...conditionsOf(scope, filter, page), ...roleCondition(filter), ...textCondition(filter)];
  const sql = `with found as materialized (
      select u.id from users u
      where user_lexemes(u.tenant_id, u.status, u.role_names, u.search_text)
            @@ user_query(cast(:tenantMark as text), cast(:statusMark as text), cast(:roleMark as text), lower(:q)) and ${conditions.join(' and ')}
    )
    select id from found order by id limit :take`;
  const { tenant: tenantMark, status: statusMark, role: roleMark } = marks;
  return { sql, bindings: { ...bindingsOf(scope, filter, page), tenantMark, statusMark, roleMark } };
}

/** @param columns of `users u`, where no role is asked for */
function inOrder(scope: TenantScope, filter: UserFilter, page: Page, limit: ':take' | ':looks', columns = 'u.id'): string {
  if (filter.role === undefined) {
    return `select ${columns} from users u where ${conditionsOf(scope, filter, page).join(' and ')} order by u.id limit ${limit}`;
  }
  // Who holds a role by hand and by the directory is there twice.
  const holders = (status: string): string =>
    `(select distinct r.user_id as id from user_roles r
      where ${scopeCondition(scope, 'r.tenant_id')} and r.role_name = :role and r.status = '${status}'
        ${page.after === undefined ? '' : 'and r.user_id > :after'}
      order by r.user_id limit ${limit})`;
  const statuses = filter.status === undefined ? STATUSES : [filter.status];
  return `select held.id from (${statuses.map(holders).join(' union all ')}) held order by held.id limit ${limit}`;
}

function conditionsOf(scope: TenantScope, filter: UserFilter, page: Page): readonly string[] {
  return [
    scopeCondition(scope, 'u.tenant_id'),
    ...(page.after === undefined ? [] : ['u.id > :after']),
    ...(filter.status === undefined ? [] : ['u.status = :status']),
    ...(filter.email === undefined ? [] : ['u.email = :email']),
  ];
}

function roleCondition(filter: UserFilter): readonly string[] {
  return filter.role === undefined ? [] : ['u.role_names @> array[cast(:role as text)]'];
}

function textCondition(filter: UserFilter): readonly string[] {
  return filter.q === undefined ? [] : ['position(lower(:q) in u.search_text) > 0'];
}

function bindingsOf(scope: TenantScope, filter: UserFilter, page: Page): Asking['bindings'] {
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
