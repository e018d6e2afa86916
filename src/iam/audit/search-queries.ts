/**
 * Searches the audit log by what its rows show: names and email addresses of actors and targets, and whole ids.
 *
 * A search first reads the next rows of the list, because the text of a busy actor fills a page among few rows. If they
 * do not fill it, the indexes of text find the users and keys, and the indexes of the log their rows. If too many users
 * and keys have the text, the page is short, and the next one begins after the last row that was read.
 */

import { type Page, type PageRows, scopeBinding, scopeCondition, type TenantScope } from '../../store/paging.ts';
import type { Queryable } from '../../store/queryable.ts';
import { type AuditFilter, afterCondition, auditRows, conditionsOf, ORDER, type StoredAudit } from './queries.ts';

export interface AuditSearch {
  /** Any part of a name or an email address, in any case; or a whole id, name of a target, or prefix of a key. */
  readonly text: string;
  /** The text as a target with its type, if it has that form. */
  readonly target: { readonly type: string; readonly id: string } | undefined;
}

/** Rows of the log that a search reads in the order of the list. */
const SCANNED = 5000;
/** Users and keys whose rows are read by the indexes of the log. */
const MAX_PRINCIPALS = 500;

const NAME_OF_USER = `lower(name || E'\\n' || coalesce(email, ''))`;
const NAME_OF_KEY = 'lower(coalesce(name, description))';
const hasText = (shown: string): string => `position((select lower(cast(:text as text))) in ${shown}) > 0`;

/** Users and keys whose rows one statement counts. */
const COUNTED_TOGETHER = 25;

/** @param page its position is the same as in `listAudit` */
export async function searchAudit(
  q: Queryable,
  scope: TenantScope,
  search: AuditSearch,
  filter: AuditFilter,
  page: Page,
): Promise<PageRows<StoredAudit>> {
  const conditions = [...conditionsOf(scope, filter), ...afterCondition(page)].join(' and ');
  const [micros = null, id = null] = page.after ?? [];
  const bindings = {
    ...bindingsOf(scope, search, filter),
    ...(micros === null || id === null ? {} : { micros, id }),
    take: page.take,
  };
  const scanned = await scan(q, scope, conditions, bindings);
  const isPage = scanned.ids.length === page.take;
  if (isPage || scanned.end === null) return rowsOf(q, scanned.ids, isPage, page);
  const principals = await principalsWith(q, scope, search.text);
  if (principals.length > MAX_PRINCIPALS) {
    const [end] = (await auditRows(q, [scanned.end], Number.MAX_SAFE_INTEGER)).rows;
    const found = await rowsOf(q, scanned.ids, true, page);
    // Rows that the page leaves out because of their size belong to the next page.
    return end === undefined || found.rows.length < scanned.ids.length ? found : { ...found, end };
  }
  const ids = await rowsOfPrincipals(q, conditions, [...principals, search.text], bindings);
  return rowsOf(q, ids, ids.length === page.take, page);
}

/**
 * Counts the rows of a search, up to `most`.
 * @returns undefined if too many users and keys have the text
 */
export async function countSearch(
  q: Queryable,
  scope: TenantScope,
  search: AuditSearch,
  filter: AuditFilter,
  most: number,
): Promise<number | undefined> {
  const principals = [search.text, ...(await principalsWith(q, scope, search.text))];
  if (principals.length > MAX_PRINCIPALS + 1) return undefined;
  const conditions = conditionsOf(scope, filter).join(' and ');
  const bindings = { ...bindingsOf(scope, search, filter), take: most };
  // A row is found by its actor and by its target. The next principals are read only if the former have few rows.
  const found = new Set<number>();
  for (let i = 0; i < principals.length && found.size < most; i += COUNTED_TOGETHER) {
    const ids = await rowsOfPrincipals(q, conditions, principals.slice(i, i + COUNTED_TOGETHER), bindings);
    for (const id of ids) found.add(id);
  }
  return Math.min(found.size, most);
}

function bindingsOf(scope: TenantScope, { text, target }: AuditSearch, filter: AuditFilter): Bindings {
  return {
    ...scopeBinding(scope),
    ...filter,
    text,
    targetType: target?.type ?? null,
    targetId: target?.id ?? null,
  };
}

async function rowsOf(
  q: Queryable,
  ids: readonly number[],
  more: boolean,
  { maxBytes = Number.MAX_SAFE_INTEGER }: Page,
): Promise<PageRows<StoredAudit>> {
  if (ids.length === 0) return { rows: [], more };
  const found = await auditRows(q, ids, maxBytes);
  return { rows: found.rows, more: more || found.more };
}

type Bindings = Readonly<Record<string, string | number | Date | null>>;

interface Scan {
  readonly ids: readonly number[];
  /** The id of the last row that was read; null: there are no more. */
  readonly end: number | null;
}

/** Finds rows among the next ones of the list. */
async function scan(q: Queryable, scope: TenantScope, conditions: string, bindings: Bindings): Promise<Scan> {
  const { rows } = await q.raw<{ rows: Scan[] }>(
    `with next as materialized (
       select id, time, actor_id, coalesce(actor_id, actor_type) as actor, target_type, target_id, request_id from audit_log where ${conditions} order by ${ORDER} limit :scanned
     ), principals as materialized (
       select actor_id as id from next where actor_id is not null
       union select target_id from next where target_type in ('user', 'api_key') and target_id is not null
     ), named as materialized (
       select id from users where id in (select id from principals) and ${scopeCondition(scope, 'tenant_id')} and ${hasText(NAME_OF_USER)}
       union all
       select id from api_keys where id in (select id from principals) and ${scopeCondition(scope, 'tenant_id')}
         and (${hasText(NAME_OF_KEY)} or prefix = :text)
     ), found as (
       select id, time from next
       where actor_id in (select id from named) or (target_type in ('user', 'api_key') and target_id in (select id from named))
         or :text in (actor, target_id, request_id)
         or (target_type = cast(:targetType as text) and target_id = cast(:targetId as text))
       order by ${ORDER} limit :take
     )
     select array(select id from found order by ${ORDER}) as ids,
       (select case when count(*) = :scanned then (select id from next order by time, id limit 1) end from next) as end`,
    { ...bindings, scanned: SCANNED },
  );
  const [found] = rows;
  return { ids: (found?.ids ?? []).map(Number), end: found?.end ?? null };
}

/** Finds the users and keys of the scope that have the text, at most one more than MAX_PRINCIPALS. */
async function principalsWith(q: Queryable, scope: TenantScope, text: string): Promise<readonly string[]> {
  const { tenant = null } = scopeBinding(scope);
  const within = scopeCondition(scope, 'tenant_id');
  const lexemes = 'select user_query(cast(:tenant as text), null, null, lower(cast(:text as text)))';
  const { rows } = await q.raw<{ rows: { id: string }[] }>(
    `(select id from users where user_lexemes(tenant_id, status, role_names, search_text) @@ (${lexemes})
        and (${within} and ${hasText(NAME_OF_USER)}) is true limit :most)
     union all
     (select id from api_keys where user_lexemes(tenant_id, coalesce(user_id, ''), '{}', search_text) @@ (${lexemes})
        and (${within} and ${hasText(NAME_OF_KEY)}) is true limit :most)
     union
     (select id from api_keys where prefix collate "C" = :text and (${within}) is true limit :most)`,
    { tenant, text, most: MAX_PRINCIPALS + 1 },
  );
  return rows.map(({ id }) => id);
}

/** Finds the first rows of each actor and target, and returns the ids of the first of them. */
async function rowsOfPrincipals(
  q: Queryable,
  conditions: string,
  principals: readonly string[],
  bindings: Bindings,
): Promise<readonly number[]> {
  const rowsWith = (condition: string): string =>
    `(select id, time from audit_log where ${condition} and ${conditions} order by ${ORDER} limit :take)`;
  const { rows } = await q.raw<{ rows: { id: number }[] }>(
    `select id from (
       select found.* from unnest(cast(:principals as text[])) as principal (id)
         cross join lateral ${rowsWith('coalesce(actor_id, actor_type) = principal.id')} found
       union
       select found.* from unnest(cast(:principals as text[])) as principal (id)
         cross join lateral ${rowsWith('target_id = principal.id')} found
       union ${rowsWith('request_id = :text')}
       union ${rowsWith('target_type = cast(:targetType as text) and target_id = cast(:targetId as text)')}
     ) found order by ${ORDER} limit :take`,
    { ...bindings, principals },
  );
  return rows.map(({ id }) => id);
}
