/** Whether a directory still stands by a user whose session is refreshed, and what follows when it does not. */

import type { DirectoryPerson, LookupAnswer } from '../../directory/model.ts';
import { Fault } from '../../domain/errors.ts';
import type { DirectoryIdentity } from '../../store/queries/directory-users.ts';
import { endSession, endSessionsOfUser, type RefreshFacts } from '../../store/queries/sessions.ts';
import { lockUser } from '../../store/queries/users.ts';
import { transaction } from '../../store/transaction.ts';
import { record } from './audit.ts';
import { asking } from './directory-room.ts';
import type { AuthParts, Provenance } from './parts.ts';

export type GoneReason = Extract<LookupAnswer, { readonly kind: 'gone' }>['reason'] | 'tenant_changed';

export type Standing =
  | { readonly kind: 'stands'; readonly person: DirectoryPerson }
  | { readonly kind: 'gone'; readonly reason: GoneReason };

/**
 * Asks the directory. Never call it in a transaction: a directory may take seconds.
 * @throws Fault when it cannot be asked, or is not configured any more; Refusal `unavailable` when too many are asking
 */
export async function standing(
  { directory: room }: AuthParts,
  identity: DirectoryIdentity,
  facts: RefreshFacts,
): Promise<Standing> {
  const { directory, stableId } = identity;
  if (room === undefined) throw new Fault(`the user is of the directory ${directory}, and no directory is configured`);
  const answer = await asking(room, 'refresh', directory, () => room.directories.lookup(directory, stableId));
  const found = standingOf(answer, facts);
  room.report({ operation: 'refresh', directory, outcome: found.kind === 'stands' ? 'success' : found.reason });
  return found;
}

function standingOf(answer: LookupAnswer, { tenantId }: RefreshFacts): Standing {
  switch (answer.kind) {
    case 'found':
      return answer.person.tenantId === tenantId
        ? { kind: 'stands', person: answer.person }
        : { kind: 'gone', reason: 'tenant_changed' };
    case 'gone':
      return answer;
    default:
      return answer satisfies never;
  }
}

/** Anybody can have somebody locked by guessing at the directory: that takes no more than the session that asked. */
const ENDS_ALL: ReadonlySet<GoneReason> = new Set(['removed', 'disabled', 'expired', 'tenant_changed']);

/** Ends the session that asked; every session of the user when the person is gone for good. */
export async function endForDirectory(
  parts: AuthParts,
  { userId, tenantId, sessionId }: RefreshFacts,
  identity: DirectoryIdentity,
  reason: GoneReason,
  from: Provenance,
): Promise<void> {
  await transaction(parts.db, async (trx) => {
    if (!(await lockUser(trx, tenantId, userId, 'update'))) return;
    const ended = ENDS_ALL.has(reason) ? await endSessionsOfUser(trx, userId) : Number(await endSession(trx, sessionId));
    await record(trx, from, {
      action: 'auth.refresh',
      actor: userId,
      tenant: tenantId,
      target: { type: 'session', id: sessionId },
      result: 'refused',
      after: { reason, directory: identity.directory, directory_id: identity.stableId, sessions_ended: ended },
    });
  });
}
