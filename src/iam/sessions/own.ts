/**
 * A user ends its own sessions. These requests require an access token, so that a leaked key gives no access
 * to the account of its owner. Sessions of other users do not exist here, also for administrators: those use
 * `/v1/iam/users`.
 */

import { Refusal } from '../../domain/errors.ts';
import type { SessionId, TenantId, UserId } from '../../domain/ids.ts';
import type { AuthParts } from '../auth/parts.ts';
import type { Caller } from '../caller/caller.ts';
import { mustExchange } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { endSessionOf } from './active.ts';
import { endSessions } from './queries.ts';

interface OwnSession {
  readonly userId: UserId;
  /** The user's own tenant, whichever tenant the caller acts in. */
  readonly tenantId: TenantId;
  /** The session of the request's access token. */
  readonly sessionId: SessionId;
}

/** @throws Refusal `insufficient_permission` for API keys, tokens of other issuers and narrowed sessions */
export function ownSession({ principal }: Caller): OwnSession {
  if (principal.kind !== 'user') {
    throw new Refusal(
      'insufficient_permission',
      'This request requires an access token, because an API key has no sessions and no password. Log in and send the access token.',
    );
  }
  if (principal.scope !== undefined) {
    throw new Refusal(
      'insufficient_permission',
      'This request requires an access token without a scope. Exchange the token again without a scope, or log in.',
    );
  }
  if (principal.sessionId === undefined) throw mustExchange();
  return { userId: principal.id, tenantId: principal.tenantId, sessionId: principal.sessionId };
}

/**
 * Ends one session, which may be the caller's own.
 * @throws Refusal `insufficient_permission` for keys, `not_found`
 */
export async function endOwnSession(parts: AuthParts, caller: Caller, id: string): Promise<void> {
  const { userId, tenantId } = ownSession(caller);
  const entry = { action: 'auth.end_session', target: { type: 'session', id }, existing: true } as const;
  await change(parts, caller, entry, async (work) => {
    work.audit.tenant = tenantId;
    await endSessionOf(parts, work, userId, id);
  });
}

/**
 * Ends all sessions of the caller, without the current one unless `own` is true.
 * @throws Refusal `insufficient_permission` for keys
 */
export async function endOwnSessions(
  parts: AuthParts,
  caller: Caller,
  { own }: { readonly own: boolean },
): Promise<void> {
  const { userId, tenantId, sessionId } = ownSession(caller);
  const entry = { action: 'auth.end_sessions', target: { type: 'user', id: userId }, existing: true } as const;
  await change(parts, caller, entry, async ({ trx, audit }) => {
    audit.tenant = tenantId;
    audit.after = { sessions_ended: await endSessions(trx, { user_id: userId }, own ? undefined : sessionId) };
  });
}
