/** The active sessions of a user, as the user itself and administrators read and end them. */

import type { UserId } from '../../domain/ids.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { orNotFound, requestedId } from '../caller/refusals.ts';
import type { ChangeWork } from '../change/change.ts';
import { type List, type ListQuery, paged } from '../list/list.ts';
import { idleMs, type SessionResource, type SessionRow, type SessionTimes, sessionResource } from './entity.ts';
import { countActiveSessions, findActiveSession, listActiveSessions } from './list-queries.ts';
import { endSession } from './queries.ts';

export type SessionParts = AdminParts & SessionTimes;

/** Lists the newest first. @throws Refusal `invalid_parameter` for a cursor of another list */
export async function listSessionsOf(
  parts: SessionParts,
  caller: Caller,
  user: UserId,
  query: ListQuery,
): Promise<List<SessionResource>> {
  const { knex } = parts.db;
  return paged(
    caller,
    `sessions of ${user}`,
    query,
    (page) => listActiveSessions(knex, user, idleMs(parts), page),
    (session) => [session.id],
    (session) => shown(session, caller),
    (most) => countActiveSessions(knex, user, idleMs(parts), most),
  );
}

/** @throws Refusal `not_found` */
export async function getSessionOf(
  parts: SessionParts,
  caller: Caller,
  user: UserId,
  text: string,
): Promise<SessionResource> {
  const found = await findActiveSession(parts.db.knex, user, requestedId('ses', text), idleMs(parts), 'read');
  return shown(orNotFound(found, 'session'), caller);
}

/**
 * Ends one session. After the commit, its refresh token and its access tokens are no longer valid.
 * @throws Refusal `not_found`
 */
export async function endSessionOf(
  parts: SessionParts,
  { trx, caller, checkPreconditions }: ChangeWork,
  user: UserId,
  text: string,
): Promise<void> {
  const id = requestedId('ses', text);
  const session = orNotFound(await findActiveSession(trx, user, id, idleMs(parts), 'update'), 'session');
  checkPreconditions(shown(session, caller));
  await endSession(trx, id);
}

function shown(session: SessionRow, { principal }: Pick<Caller, 'principal'>): SessionResource {
  return sessionResource(session, principal.kind === 'user' ? principal.sessionId : undefined);
}
