/** An administrator lists the active sessions of a user, and ends one or all of them. */

import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayActOnUser } from '../caller/escalation.ts';
import { orNotFound, requestedId } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { type List, type ListQuery, paged } from '../list/list.ts';
import { type UserResource, userResource } from '../users/entity.ts';
import { holdUser } from '../users/find.ts';
import { findUser } from '../users/queries.ts';
import { idleMs, type SessionResource, type SessionTimes, sessionResource } from './entity.ts';
import { countActiveSessions, findActiveSession, listActiveSessions } from './list-queries.ts';
import { endSession, endSessionsOfUser } from './queries.ts';

export type UserSessionParts = AdminParts & SessionTimes;

/** Lists the newest first. @throws Refusal `not_found`, `invalid_parameter` for a cursor of another list */
export async function listUserSessions(
  parts: UserSessionParts,
  caller: Caller,
  user: string,
  query: ListQuery,
): Promise<List<SessionResource>> {
  const { knex } = parts.db;
  const userId = await existing(parts, caller, user);
  return paged(
    caller,
    `sessions of user ${userId}`,
    query,
    (page) => listActiveSessions(knex, userId, idleMs(parts), page),
    (session) => [session.id],
    (session) => sessionResource(session, currentOf(caller)),
    (most) => countActiveSessions(knex, userId, idleMs(parts), most),
  );
}

/** @throws Refusal `not_found` */
export async function getUserSession(
  parts: UserSessionParts,
  caller: Caller,
  user: string,
  session: string,
): Promise<SessionResource> {
  const userId = await existing(parts, caller, user);
  const found = orNotFound(
    await findActiveSession(parts.db.knex, userId, requestedId('ses', session), idleMs(parts), 'read'),
    'session',
  );
  return sessionResource(found, currentOf(caller));
}

/**
 * Ends one session. After the commit, its refresh token and its access tokens are no longer valid.
 * @throws Refusal `not_found`, `escalation`
 */
export async function endUserSession(
  parts: UserSessionParts,
  caller: Caller,
  user: string,
  session: string,
): Promise<void> {
  const entry = { action: 'user.end_session', target: { type: 'user', id: user }, existing: true } as const;
  await change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const { user: owner } = await holdUser(trx, caller, user);
    await mayActOnUser(trx, caller, owner);
    const id = requestedId('ses', session);
    const found = orNotFound(await findActiveSession(trx, owner.id, id, idleMs(parts), 'update'), 'session');
    checkPreconditions(sessionResource(found, currentOf(caller)));
    await endSession(trx, id);
    audit.after = { ended_session: id };
  });
}

/** @throws Refusal `not_found`, `escalation` */
export async function endUserSessions(parts: AdminParts, caller: Caller, id: string): Promise<UserResource> {
  const entry = { action: 'user.end_sessions', target: { type: 'user', id }, existing: true } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const { user } = await holdUser(trx, caller, id);
    await mayActOnUser(trx, caller, user);
    checkPreconditions(userResource(user));
    audit.after = { ended_sessions: await endSessionsOfUser(trx, user.id) };
    return userResource(user);
  });
}

async function existing({ db }: UserSessionParts, caller: Caller, text: string) {
  const user = orNotFound(await findUser(db.knex, caller.tenant, requestedId('usr', text)), 'user');
  return user.id;
}

function currentOf({ principal }: Pick<Caller, 'principal'>) {
  return principal.kind === 'user' ? principal.sessionId : undefined;
}
