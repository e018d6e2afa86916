/**
 * Searches API keys by text (`q`) and by prefix.
 *
 * The search first reads the next keys in the order of the list, because a page of a text that many keys have fills up among few keys. If
 * that does not fill the page and does not promise to, the search reads an index: that of lexemes for text, that of prefixes otherwise.
 * Both ways return the same keys.
 */

import type { KeyId } from '../../domain/ids.ts';
import { type Page, scopeBinding, type TenantScope } from '../../store/paging.ts';
import { type NamedQuery, runNamedQuery } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import { moreLooks } from '../users/search-queries.ts';
import { type KeyFilter, keyBindings, keyConditions, keyIdsInOrder, textConditions } from './list-queries.ts';

/** Keys that the first scan reads. */
const FIRST_LOOKS = 600;

/** Ids of one page, in order. @param filter with `q` or `prefix` */
export async function searchKeyIds(
  q: Queryable,
  scope: TenantScope,
  filter: KeyFilter,
  page: Page,
  now: Date,
): Promise<readonly KeyId[]> {
  const first = await scanNext(q, scope, filter, page, now, FIRST_LOOKS);
  if (first.complete) return first.ids;
  const more = isDear(filter) ? undefined : moreLooks(FIRST_LOOKS, first.ids.length, page.take);
  const next = more === undefined ? undefined : await scanNext(q, scope, filter, page, now, more);
  if (next?.complete) return next.ids;
  return (await runNamedQuery<{ id: KeyId }>(q, idsByIndex(scope, filter, page, now))).map((row) => row.id);
}

/** Reports whether the keys that a filter matches lie in so many months of expiry that the scan reads several times as many. */
function isDear({ status, expiresBefore }: KeyFilter): boolean {
  return (status !== undefined && status !== 'active') || expiresBefore !== undefined;
}

interface Scan {
  readonly ids: readonly KeyId[];
  /** The page is full, or there are no more keys. */
  readonly complete: boolean;
}

async function scanNext(
  q: Queryable,
  scope: TenantScope,
  filter: KeyFilter,
  page: Page,
  now: Date,
  looks: number,
): Promise<Scan> {
  const { q: _text, prefix: _prefix, ...others } = filter;
  const next = keyIdsInOrder(scope, others, { ...page, take: looks }, now);
  const sql = `with next as materialized (${next.sql})
    select array(
        select k.id from api_keys k where k.id = any(array(select id from next)) and ${textConditions(filter).join(' and ')}
        order by k.id limit :pageSize
      ) as ids,
      (select count(*) from next) < :take as at_end`;
  const bindings = { ...keyBindings(scope, filter, page, now), ...next.bindings, pageSize: page.take };
  const [row] = await runNamedQuery<{ ids: readonly KeyId[]; at_end: boolean }>(q, { sql, bindings });
  const ids = row?.ids ?? [];
  return { ids, complete: ids.length === page.take || row?.at_end === true };
}

function idsByIndex(scope: TenantScope, filter: KeyFilter, page: Page, now: Date): NamedQuery {
  const { sql, bindings } = keysByIndex(scope, filter, page, now);
  return { sql: `with found as materialized (${sql}) select id from found order by id limit :take`, bindings };
}

/**
 * A statement that gives `id`, in no order. All conditions except those of the index are hidden from the planner, which would walk through
 * whole tenants for them.
 */
export function keysByIndex(scope: TenantScope, filter: KeyFilter, page: Page, now: Date): NamedQuery {
  const others = keyConditions(scope, filter, page).map((condition) => `(${condition}) is true`);
  const texts = textConditions(filter);
  const bindings = keyBindings(scope, filter, page, now);
  if (filter.q === undefined) {
    return { sql: `select k.id from api_keys k where ${[...texts, ...others].join(' and ')}`, bindings };
  }
  const conditions = [
    `user_lexemes(k.tenant_id, coalesce(k.user_id, ''), '{}', k.search_text)
      @@ (select user_query(cast(:tenantMark as text), cast(:userMark as text), null, lower(cast(:q as text))))`,
    ...texts.map((condition) => `(${condition}) is true`),
    ...others,
  ];
  const marks = { tenantMark: scopeBinding(scope).tenant ?? null, userMark: filter.userId ?? null };
  return { sql: `select k.id from api_keys k where ${conditions.join(' and ')}`, bindings: { ...bindings, ...marks } };
}
