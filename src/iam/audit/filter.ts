/** The filters of the audit log, as they are asked for. */

import { Refusal } from '../../domain/errors.ts';
import { AUDIT_TARGETS } from '../change/audit-row.ts';
import type { AuditFilter } from './queries.ts';

export interface AuditFilterQuery {
  /** An id; `system` or `anonymous` for actors without one. */
  readonly actor?: string;
  readonly action?: string;
  /** An id or a name, or with its type before it: `role/auditor`. */
  readonly target?: string;
  readonly result?: 'success' | 'failure' | 'refused';
  /** RFC 3339: from then on. */
  readonly from?: string;
  /** RFC 3339: up to then, that instant left out. */
  readonly to?: string;
  readonly request_id?: string;
}

/** @throws Refusal `invalid_parameter` for an instant that does not exist */
export function auditFilter(query: AuditFilterQuery): AuditFilter {
  return {
    ...(query.actor === undefined ? {} : { actor: query.actor }),
    ...(query.action === undefined ? {} : { action: query.action }),
    ...(query.target === undefined ? {} : targetOf(query.target)),
    ...(query.result === undefined ? {} : { result: query.result }),
    ...(query.from === undefined ? {} : { from: instant('from', query.from) }),
    ...(query.to === undefined ? {} : { to: instant('to', query.to) }),
    ...(query.request_id === undefined ? {} : { requestId: query.request_id }),
  };
}

function targetOf(text: string): Pick<AuditFilter, 'targetType' | 'targetId'> {
  const slash = text.indexOf('/');
  const type = AUDIT_TARGETS.find((known) => known === text.slice(0, Math.max(0, slash)));
  return type === undefined ? { targetId: text } : { targetType: type, targetId: text.slice(slash + 1) };
}

function instant(param: 'from' | 'to', text: string): Date {
  const date = new Date(text);
  if (Number.isNaN(date.getTime()))
    throw new Refusal('invalid_parameter', `${param} must be an RFC 3339 time, such as 2026-11-30T12:00:00Z.`, {
      param,
    });
  return date;
}
