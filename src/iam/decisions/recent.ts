/** Recorded decisions of the last 24 hours in pages, newest first: of the effective tenant, or with `tenant_id=*` of all and of none. */

import { Refusal } from '../../domain/errors.ts';
import { parseId } from '../../domain/ids.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { type List, type ListQuery, paged, scopeOf } from '../list/list.ts';
import { instantIn } from './instant.ts';
import { countRecent, listRecent, type RecentFilter, type StoredDecision } from './recent-queries.ts';

export interface RecentQuery extends ListQuery {
  readonly outcome?: 'allow' | 'deny';
  readonly code?: string;
  readonly principal?: string;
  readonly route?: string;
  /** RFC 3339: from then on. */
  readonly from?: string;
  /** RFC 3339: up to then, that instant left out. */
  readonly to?: string;
}

export interface RecentResource {
  readonly request_id: string;
  readonly time: string;
  /** null if no tenant is known. */
  readonly tenant_id: string | null;
  readonly outcome: 'allow' | 'deny';
  readonly code: string;
  readonly detail: string;
  readonly principal: { readonly type: 'user' | 'api_key'; readonly id: string } | null;
  readonly method: string | null;
  readonly path: string | null;
  readonly route: string | null;
  readonly permission: string | null;
  readonly resources: readonly string[];
  readonly client_ip: string | null;
  readonly policy: string | null;
  readonly sampled: boolean;
}

export interface RecentList extends List<RecentResource> {
  /** A decision of this page is sampled. */
  readonly sampled: boolean;
}

/** @throws Refusal `invalid_parameter` */
export async function listRecentPage(
  parts: Pick<AdminParts, 'db'>,
  caller: Caller,
  query: RecentQuery,
): Promise<RecentList> {
  const filter = filterOf(query);
  const list = await paged(
    caller,
    'recent decisions',
    query,
    (page) => {
      if (page.after !== undefined && !isPosition(page.after)) {
        throw new Refusal(
          'invalid_parameter',
          'The cursor does not belong to this list. Use next_cursor of the previous page.',
          {
            param: 'cursor',
          },
        );
      }
      return listRecent(parts.db.knex, scopeOf(caller), filter, page, caller.nowMs);
    },
    (row) => [row.request_id],
    recentResource,
    (most) => countRecent(parts.db.knex, scopeOf(caller), filter, caller.nowMs, most),
  );
  return { ...list, sampled: list.data.some(({ sampled }) => sampled) };
}

/** Anybody can compute a cursor's check, so its position is read as strictly as all input. */
function isPosition(after: readonly string[]): boolean {
  const [id, ...more] = after;
  return id !== undefined && more.length === 0 && parseId('req', id) !== undefined;
}

function filterOf(query: RecentQuery): RecentFilter {
  const { outcome, code, principal, route, from, to } = query;
  return {
    ...(outcome === undefined ? {} : { outcome }),
    ...(code === undefined ? {} : { code }),
    ...(principal === undefined ? {} : { principal }),
    ...(route === undefined ? {} : { route }),
    ...(from === undefined ? {} : { fromMs: instantIn('from', from) }),
    ...(to === undefined ? {} : { toMs: instantIn('to', to) }),
  };
}

export function recentResource(row: StoredDecision): RecentResource {
  const { principal_type: type, principal_id: id } = row;
  return {
    request_id: row.request_id,
    time: row.time.toISOString(),
    tenant_id: row.tenant_id === '' ? null : row.tenant_id,
    outcome: row.outcome,
    code: row.code,
    detail: row.detail,
    principal: type === null || id === null ? null : { type, id },
    method: row.method,
    path: row.path,
    route: row.route,
    permission: row.permission,
    resources: row.resources,
    client_ip: row.client_ip,
    policy: row.policy,
    sampled: row.sampled,
  };
}
