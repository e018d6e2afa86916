/** Reads the audit log in pages, newest first, and the state of its chain. */

import type { Static } from 'typebox';
import { isPlatformAdmin } from '../../decision/tenant.ts';
import { Refusal } from '../../domain/errors.ts';
import { hex } from '../../store/audit-chain.ts';
import { chainState } from '../../store/audit-seal-queries.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { AUDIT_TARGETS } from '../change/audit-row.ts';
import { type List, paged, scopeOf } from '../list/list.ts';
import { type AuditFilter, countAudit, listAudit, type StoredAudit } from './queries.ts';
import { type AuditChain, type AuditQuery, type AuditResource, MAX_UNSEALED } from './schemas.ts';

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

/** @throws Refusal `invalid_parameter` for a time that does not exist */
export function auditFilter({ actor, action, target, result, from, to, request_id }: AuditQuery): AuditFilter {
  return {
    ...(actor === undefined ? {} : { actor }),
    ...(action === undefined ? {} : { action }),
    ...(target === undefined ? {} : targetOf(target)),
    ...(result === undefined ? {} : { result }),
    ...(from === undefined ? {} : { from: timeOf('from', from) }),
    ...(to === undefined ? {} : { to: timeOf('to', to) }),
    ...(request_id === undefined ? {} : { request_id }),
  };
}

function targetOf(text: string): Pick<AuditFilter, 'target_type' | 'target_id'> {
  const slash = text.indexOf('/');
  const type = AUDIT_TARGETS.find((known) => known === text.slice(0, Math.max(0, slash)));
  return type === undefined ? { target_id: text } : { target_type: type, target_id: text.slice(slash + 1) };
}

function timeOf(param: 'from' | 'to', text: string): Date {
  const date = new Date(text);
  if (!Number.isNaN(date.getTime())) return date;
  const detail = `${param} must be an RFC 3339 time, such as 2026-11-30T12:00:00Z.`;
  throw new Refusal('invalid_parameter', detail, { param });
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
  const detail = 'The cursor does not belong to this list. Use next_cursor of the previous page.';
  throw new Refusal('invalid_parameter', detail, { param: 'cursor' });
}

/**
 * Returns the state of the chain according to the database. `postern verify-audit` verifies it.
 * @throws Refusal `insufficient_permission` unless the caller is a platform administrator, because all tenants share a
 *   chain
 */
export async function auditChain(parts: Pick<AdminParts, 'db'>, caller: Caller): Promise<Static<typeof AuditChain>> {
  if (!isPlatformAdmin(caller.principal)) {
    throw new Refusal('insufficient_permission', 'Only platform administrators may read the state of the audit chain.');
  }
  const { newest, ...counts } = await chainState(parts.db.knex, MAX_UNSEALED);
  const newest_seal =
    newest === undefined ? null : { number: newest.seq, hash: hex(newest.hash), time: newest.sealedAt };
  return { ...counts, newest_seal };
}
