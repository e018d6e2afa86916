/** Audit rows of logging in. They are written without `change`: nothing that a replica caches hangs on a failed login. */

import type { SessionId, TenantId, UserId } from '../../domain/ids.ts';
import { type AuditRow, insertAudit } from '../../store/audit-rows.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { Provenance } from './parts.ts';

export interface AuthEvent {
  readonly action:
    | 'auth.login'
    | 'auth.logout'
    /** Refused by the user's directory; one that succeeds is not written down. */
    | 'auth.refresh'
    | 'auth.refresh_reuse'
    | 'auth.password_change'
    | 'auth.password_setup'
    /** A wrong current password. A right one is not recorded: the change that it was for has its own row. */
    | 'auth.reauthenticate';
  /** Undefined while nobody is proved: the actor is anonymous then, whatever name was given. */
  readonly actor: UserId | undefined;
  readonly tenant: TenantId | undefined;
  readonly target:
    | { readonly type: 'user'; readonly id: string }
    | { readonly type: 'session'; readonly id: SessionId };
  readonly result: 'success' | 'failure' | 'refused';
  /** What else is worth knowing, without secrets. */
  readonly after?: Readonly<Record<string, string | number>>;
}

/** One statement, so it needs no transaction where nothing else is written. */
export async function record(trx: Queryable, from: Provenance, event: AuthEvent): Promise<void> {
  await insertAudit(trx, auditRow(from, event));
}

export function auditRow(from: Provenance, event: AuthEvent): AuditRow {
  return {
    actorType: event.actor === undefined ? 'anonymous' : 'user',
    actorId: event.actor,
    tenantId: event.tenant,
    address: from.address,
    action: event.action,
    targetType: event.target.type,
    targetId: event.target.id,
    result: event.result,
    before: undefined,
    after: event.after,
    requestId: from.requestId,
  };
}
