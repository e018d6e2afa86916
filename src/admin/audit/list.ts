/** The audit log in pages, newest first: of the effective tenant, or with `tenant_id=*` of all and of the platform itself. */

import { Refusal } from '../../domain/errors.ts';
import { listAudit, type StoredAudit } from '../../store/queries/audit-log.ts';
import type { AdminParts, Caller } from '../caller.ts';
import { type List, type ListQuery, paged, scopeOf } from '../list.ts';
import { type AuditFilterQuery, auditFilter } from './filter.ts';
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
    (page) => {
      if (page.after !== undefined && !isPosition(page.after)) throw badCursor();
      return listAudit(parts.db.knex, scopeOf(caller), filter, page);
    },
    positionOf,
    auditResource,
  );
}

export function positionOf(row: StoredAudit): readonly [string, string] {
  return [String(row.timeMicros), String(row.id)];
}

const DIGITS = /^\d{1,16}$/;

/** As `positionOf` makes them: a cursor that somebody made up may say anything. */
function isPosition(after: readonly string[]): boolean {
  return after.length === 2 && after.every((digits) => DIGITS.test(digits));
}

function badCursor(): Refusal {
  return new Refusal('invalid_parameter', 'The cursor does not belong to this list.', { param: 'cursor' });
}
