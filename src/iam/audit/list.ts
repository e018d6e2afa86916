/** The audit log in pages, newest first: of the effective tenant, or with `tenant_id=*` of all and of the platform itself. */

import { Refusal } from '../../domain/errors.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { type List, type ListQuery, paged, scopeOf } from '../list/list.ts';
import { type AuditFilterQuery, auditFilter } from './filter.ts';
import { countAudit, listAudit, type StoredAudit } from './queries.ts';
import { type AuditResource, auditResource } from './resource.ts';

export interface AuditListQuery extends ListQuery, AuditFilterQuery {}

/** @throws Refusal `invalid_parameter` */
export async function listAuditPage(
  parts: Pick<AdminParts, 'db'>,
  caller: Caller,
  query: AuditListQuery,
): Promise<List<AuditResource>> {
  const filter = auditFilter(query);
  return paged(
    caller,
    'audit',
    query,
    (page) => listAudit(parts.db.knex, scopeOf(caller), filter, { ...page, after: positionIn(page.after) }),
    positionOf,
    auditResource,
    (most) => countAudit(parts.db.knex, scopeOf(caller), filter, most),
  );
}

export function positionOf(row: StoredAudit): readonly [string, string] {
  return [String(row.timeMicros), String(row.id)];
}

const DIGITS = /^\d{1,16}$/;

/**
 * The position that a cursor names.
 * @throws Refusal `invalid_parameter` for one that `positionOf` does not make: a cursor that somebody made up may say anything
 */
export function positionIn(after: readonly string[] | undefined): readonly string[] | undefined {
  if (after === undefined || (after.length === 2 && after.every((digits) => DIGITS.test(digits)))) return after;
  throw new Refusal(
    'invalid_parameter',
    'The cursor does not belong to this list. Use next_cursor of the previous page.',
    {
      param: 'cursor',
    },
  );
}
