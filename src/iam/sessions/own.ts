/** One's own sessions: seen and ended. Another user's are answered as missing ones are, to administrators too: those have `/v1/iam/users`. */

import type { AuthParts } from '../auth/parts.ts';
import type { Caller } from '../caller/caller.ts';
import { notFound } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { type List, type ListQuery, paged } from '../list/list.ts';
import { countActiveSessions, findActiveSession, listActiveSessions, lockActiveSession } from './list-queries.ts';
import { endSession, endSessionsOfUser } from './queries.ts';
import { idleMs, type SessionResource, sessionIdOf, sessionResource } from './resource.ts';
import { ownSession } from './revoke-own.ts';

/** @throws Refusal `insufficient_permission` for keys, `invalid_parameter` for a cursor that is not of this user's sessions */
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
  const session = await findActiveSession(parts.db.knex, userId, sessionIdOf(text), idleMs(parts));
  if (session === undefined) throw notFound('session');
  return sessionResource(session, sessionId);
}

/**
 * Ends one session, which may be the caller's own: its refresh token and its access tokens prove nothing from now on.
 * @throws Refusal `insufficient_permission` for keys, `not_found`
 */
export async function endOwnSession(parts: AuthParts, caller: Caller, text: string): Promise<void> {
  const { userId, tenantId, sessionId } = ownSession(caller);
  const id = sessionIdOf(text);
  const entry = { action: 'auth.end_session', target: { type: 'session', id }, existing: true } as const;
  await change(parts, caller, entry, async ({ trx, audit, checkPreconditions }) => {
    audit.tenant = tenantId;
    const session = await lockActiveSession(trx, userId, id, idleMs(parts));
    if (session === undefined) throw notFound('session');
    checkPreconditions(sessionResource(session, sessionId));
    await endSession(trx, id);
  });
}

/**
 * Ends all sessions but the caller's own.
 * @param own also that one
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
