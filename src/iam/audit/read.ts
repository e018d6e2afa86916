/** Reads the audit log in pages, newest first, and the state of its chain. */

import type { Static } from 'typebox';
import { present } from '../../domain/objects.ts';
import { hex } from '../../store/audit-chain.ts';
import { chainState } from '../../store/audit-seal-queries.ts';
import type { Page, PageRows, TenantScope } from '../../store/paging.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { AUDIT_TARGETS } from '../change/audit-row.ts';
import { badCursor, type List, MAX_PAGE_BYTES, paged, scopeOf } from '../list/list.ts';
import { fetchMatching, type Matching } from '../list/matching.ts';
import { type NamedId, readNames } from '../list/names.ts';
import { type AuditFilter, countAudit, listAudit, type StoredAudit } from './queries.ts';
import { type AuditChain, type AuditQuery, type AuditResource, MAX_UNSEALED } from './schemas.ts';
import { type AuditSearch, countSearch, searchAudit } from './search-queries.ts';

/**
 * Returns a page of the effective tenant's rows. With `tenant_id=*`, it has the rows of all tenants and of the
 * platform.
 * @throws Refusal `invalid_parameter`
 */
export async function listAuditPage(
  parts: Pick<AdminParts, 'db'>,
  caller: Caller,
  query: AuditQuery,
): Promise<List<AuditResource>> {
  const { knex } = parts.db;
  const filter = auditFilter(query);
  const list = await paged(
    caller,
    'audit',
    query,
    (page) => fetchAudit(knex, scopeOf(caller), query, filter, page),
    positionOf,
    auditResource,
    (most) => {
      const search = searchOf(query);
      return search === undefined
        ? countAudit(knex, scopeOf(caller), filter, most)
        : countSearch(knex, scopeOf(caller), search, filter, most);
    },
  );
  return query.include === 'names' ? { ...list, data: await withNames(parts, caller, list.data) } : list;
}

/** Fetches a page of the rows of a query. */
export function fetchAudit(
  q: Queryable,
  scope: TenantScope,
  query: AuditQuery,
  filter: AuditFilter,
  page: Page,
): Promise<PageRows<StoredAudit>> {
  const at = { ...page, after: positionIn(page.after) };
  const search = searchOf(query);
  return search === undefined ? listAudit(q, scope, filter, at) : searchAudit(q, scope, search, filter, at);
}

function searchOf({ q: text }: AuditQuery): AuditSearch | undefined {
  if (text === undefined) return undefined;
  const { target_type: type, target_id: id } = targetOf(text);
  return { text, target: type === undefined || id === undefined ? undefined : { type, id } };
}

/** Rows among which `listChanges` finds changes: logins are many. */
const MOST_EXAMINED = 1000;
/** Resources whose changes `listChanges` has. */
const CHANGED: ReadonlySet<string | null> = new Set(['user', 'role', 'policy', 'tenant', 'api_key']);

/** Returns the latest changes of users, roles, policies, tenants and keys, with names. */
export async function listChanges(
  parts: Pick<AdminParts, 'db'>,
  caller: Caller,
  take: number,
): Promise<readonly AuditResource[]> {
  const list: Matching<StoredAudit> = {
    fetch: (page) =>
      listAudit(parts.db.knex, scopeOf(caller), { result: 'success' }, { ...page, after: positionIn(page.after) }),
    matches: ({ action, target_type: type, target_id: id }) =>
      !action.startsWith('auth.') && CHANGED.has(type) && id !== null,
    position: positionOf,
  };
  const { rows } = await fetchMatching(list, { after: undefined, take, maxBytes: MAX_PAGE_BYTES }, MOST_EXAMINED);
  return withNames(parts, caller, rows.map(auditResource));
}

/** Adds the names of actors and targets. */
export async function withNames(
  parts: Pick<AdminParts, 'db'>,
  caller: Caller,
  rows: readonly AuditResource[],
): Promise<readonly AuditResource[]> {
  const namedIn = ({ type, id }: AuditResource['actor'] | AuditResource['target']): readonly NamedId[] =>
    (type === 'user' || type === 'api_key') && id !== null ? [{ kind: type, id }] : [];
  const nameOf = await readNames(
    parts,
    caller,
    rows.flatMap(({ actor, target }) => [...namedIn(actor), ...namedIn(target)]),
  );
  const named = <P extends AuditResource['actor'] | AuditResource['target']>(part: P): P => {
    const [id] = namedIn(part);
    return { ...part, name: id === undefined ? null : nameOf(id) };
  };
  return rows.map((row) => ({ ...row, actor: named(row.actor), target: named(row.target) }));
}

export function auditResource(row: StoredAudit): AuditResource {
  const { id, time, actor_type, actor_id, tenant_id, address, action, target_type, target_id, result } = row;
  return {
    id: String(id),
    time,
    actor: { type: actor_type, id: actor_id },
    tenant_id,
    address,
    action,
    target: { type: target_type, id: target_id },
    result,
    before: row.before,
    after: row.after,
    request_id: row.request_id,
  };
}

export function auditFilter({ actor, action, target, result, from, to, request_id }: AuditQuery): AuditFilter {
  const dateOf = (time: string | undefined): Date | undefined => (time === undefined ? undefined : new Date(time));
  const named = present({ actor, action, result, from: dateOf(from), to: dateOf(to), request_id });
  return target === undefined ? named : { ...named, ...targetOf(target) };
}

function targetOf(text: string): Pick<AuditFilter, 'target_type' | 'target_id'> {
  const slash = text.indexOf('/');
  const type = AUDIT_TARGETS.find((known) => known === text.slice(0, Math.max(0, slash)));
  return type === undefined ? { target_id: text } : { target_type: type, target_id: text.slice(slash + 1) };
}

export function positionOf(row: StoredAudit): readonly [string, string] {
  return [String(row.time_micros), String(row.id)];
}

const DIGITS = /^\d{1,16}$/;

/**
 * Returns the position that a cursor names.
 * @throws Refusal `invalid_parameter` for a position that `positionOf` does not return, because a client can forge
 *   cursors
 */
export function positionIn(after: readonly string[] | undefined): readonly string[] | undefined {
  if (after === undefined || (after.length === 2 && after.every((digits) => DIGITS.test(digits)))) return after;
  throw badCursor();
}

/** Returns the state of the chain according to the database. `postern verify-audit` verifies it. */
export async function auditChain(parts: Pick<AdminParts, 'db'>): Promise<Static<typeof AuditChain>> {
  const { newest, ...counts } = await chainState(parts.db.knex, MAX_UNSEALED);
  const newest_seal =
    newest === undefined ? null : { number: newest.seq, hash: hex(newest.hash), time: newest.sealedAt };
  return { ...counts, newest_seal };
}
