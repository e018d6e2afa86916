/** Audit rows of logins. They are written without `change`, because no cached data depends on a failed login. */

import type { Refusal } from '../../domain/errors.ts';
import { type KeyId, parseId, type SessionId, type TenantId, type UserId } from '../../domain/ids.ts';
import { type AuditRow, insertAudit } from '../../store/audit-rows.ts';
import type { Queryable } from '../../store/queryable.ts';
import { claimOne } from './failure-queries.ts';
import type { Provenance } from './parts.ts';
import { attemptAt } from './throttle.ts';

export interface AuthEvent {
  readonly action:
    | 'auth.login'
    /** A token of an issuer was exchanged for an access token, or was refused. */
    | 'auth.exchange'
    | 'auth.logout'
    /** A refresh that the user's directory rejected. A successful refresh has no row. */
    | 'auth.refresh'
    | 'auth.refresh_reuse'
    | 'auth.password_change'
    | 'auth.password_setup'
    /** A wrong current password. A correct one has no row, because the change that required it has its own. */
    | 'auth.reauthenticate'
    /** Failed logins have locked the account, for all addresses or for one. */
    | 'user.lock';
  /** Undefined if no principal was proved. The actor is then anonymous, also if the request named an account. */
  readonly actor?: UserId | KeyId | undefined;
  readonly tenant: TenantId | undefined;
  readonly target:
    | { readonly type: 'user' | 'api_key'; readonly id: string }
    | { readonly type: 'session'; readonly id: SessionId }
    /** The id of an issuer, or the value of `iss` of an unknown one, which may be any text. */
    | { readonly type: 'issuer'; readonly id: string };
  readonly result: 'success' | 'failure' | 'refused';
  /** Further facts, without secrets. */
  readonly after?: Readonly<Record<string, string | number>>;
}

/** One statement, so it needs no transaction if nothing else is written. */
export async function record(trx: Queryable, from: Provenance, event: AuthEvent): Promise<void> {
  await insertAudit(trx, authAuditRow(from, event));
}

/** The rows of refusals of one target. */
const REFUSAL_ROWS = { limit: 10, windowMs: 60_000 };

/**
 * Writes the row of a refused request whose password or token is right, so that no limit of failures bounds it: at most
 * 10 rows a minute for one target. The samples of rejected requests count the others.
 * @returns the refusal
 */
export async function recordRefusal(
  q: Queryable,
  from: Provenance,
  event: Omit<AuthEvent, 'result'>,
  refusal: Refusal,
): Promise<Refusal> {
  const rows = attemptAt(`refused:${event.target.id}`, undefined);
  if (!(await claimOne(q, 'pair', rows, REFUSAL_ROWS))) return refusal;
  await record(q, from, { ...event, result: 'refused' });
  return refusal.asAudited();
}

/** For a statement that writes the row together with its own change. */
export function authAuditRow(from: Provenance, event: AuthEvent): AuditRow {
  return {
    actorType: actorTypeOf(event.actor),
    actorId: event.actor,
    tenantId: event.tenant,
    address: from.address,
    action: event.action,
    targetType: event.target.type,
    targetId: event.target.id,
    result: event.result,
    after: event.after,
    requestId: from.requestId,
  };
}

function actorTypeOf(actor: AuthEvent['actor']): AuditRow['actorType'] {
  if (actor === undefined) return 'anonymous';
  return parseId('key', actor) === undefined ? 'user' : 'api_key';
}
