/**
 * A user lists and ends its own sessions. These requests require an access token, so that a leaked key gives no access
 * to the account of its owner. Sessions of other users do not exist here, also for administrators: those use
 * `/v1/iam/users`.
 */

import { Refusal } from '../../domain/errors.ts';
import type { SessionId, TenantId, UserId } from '../../domain/ids.ts';
import type { AuthParts } from '../auth/parts.ts';
import type { Caller } from '../caller/caller.ts';
import { mustExchange, orNotFound, requestedId } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { type List, type ListQuery, paged } from '../list/list.ts';
import { idleMs, type SessionResource, sessionResource } from './entity.ts';
import { countActiveSessions, findActiveSession, listActiveSessions } from './list-queries.ts';
import { endSession, endSessionsOfUser } from './queries.ts';

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

/** @throws Refusal `insufficient_permission` for keys, `invalid_parameter` for a cursor of another list */
export async function listSessions(parts: AuthParts, caller: Caller, query: ListQuery): Promise<List<SessionResource>> {
  const { userId, sessionId } = ownSession(caller);
  return paged(
    caller,
    `sessions of ${userId}`,
    query,
    (page) => listActiveSessions(parts.db.knex, userId, idleMs(parts), page),
    (session) => [session.id],
    (session) => sessionResource(session, sessionId),
    (most) => countActiveSessions(parts.db.knex, userId, idleMs(parts), most),
  );
}

/** @throws Refusal `insufficient_permission` for keys, `not_found` */
export async function getSession(parts: AuthParts, caller: Caller, text: string): Promise<SessionResource> {
  const { userId, sessionId } = ownSession(caller);
  const session = orNotFound(
    await findActiveSession(parts.db.knex, userId, requestedId('ses', text), idleMs(parts), 'read'),
    'session',
  );
  return sessionResource(session, sessionId);
}

/**
 * Ends one session, which may be the caller's own. After the commit, its refresh token and its access tokens are no
 * longer valid.
 * @throws Refusal `insufficient_permission` for keys, `not_found`
 */
export async function endOwnSession(parts: AuthParts, caller: Caller, text: string): Promise<void> {
  const { userId, tenantId, sessionId } = ownSession(caller);
  const id = requestedId('ses', text);
  const entry = { action: 'auth.end_session', target: { type: 'session', id }, existing: true } as const;
  await change(parts, caller, entry, async ({ trx, audit, checkPreconditions }) => {
    audit.tenant = tenantId;
    const session = orNotFound(await findActiveSession(trx, userId, id, idleMs(parts), 'update'), 'session');
    checkPreconditions(sessionResource(session, sessionId));
    await endSession(trx, id);
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
    audit.after = { sessions_ended: await endSessionsOfUser(trx, userId, own ? undefined : sessionId) };
  });
}
