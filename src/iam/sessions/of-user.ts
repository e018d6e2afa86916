/** An administrator ends one or all active sessions of a user. */

import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayActOnUser } from '../caller/escalation.ts';
import { change } from '../change/change.ts';
import { type UserResource, userResource } from '../users/entity.ts';
import { holdUser } from '../users/find.ts';
import { endSessionOf, type SessionParts } from './active.ts';
import { endSessions } from './queries.ts';

/** @throws Refusal `not_found`, `escalation` */
export async function endUserSession(
  parts: SessionParts,
  caller: Caller,
  user: string,
  session: string,
): Promise<void> {
  const entry = { action: 'user.end_session', target: { type: 'user', id: user }, existing: true } as const;
  await change(parts, caller, entry, async (work) => {
    const { user: owner } = await holdUser(work.trx, work.caller, user);
    await mayActOnUser(work.trx, work.caller, owner);
    await endSessionOf(parts, work, owner.id, session);
    work.audit.after = { ended_session: session };
  });
}

/** @throws Refusal `not_found`, `escalation` */
export async function endUserSessions(parts: AdminParts, caller: Caller, id: string): Promise<UserResource> {
  const entry = { action: 'user.end_sessions', target: { type: 'user', id }, existing: true } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const { user } = await holdUser(trx, caller, id);
    await mayActOnUser(trx, caller, user);
    checkPreconditions(userResource(user));
    audit.after = { ended_sessions: await endSessions(trx, { user_id: user.id }) };
    return userResource(user);
  });
}
