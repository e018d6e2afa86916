/** Checks with the directory whether a user may refresh its session, and applies the result. */

import type { GoneReason as DirectoryGoneReason, DirectoryPerson, LookupAnswer } from '../../directory/model.ts';
import { Fault } from '../../domain/errors.ts';
import type { TenantId } from '../../domain/ids.ts';
import { tenantTransaction } from '../../store/transaction.ts';
import { endSession, type RefreshFacts } from '../sessions/queries.ts';
import type { DirectoryIdentity } from '../users/directory-queries.ts';
import { lockUser } from '../users/queries.ts';
import { record } from './audit.ts';
import { queryDirectory } from './directory-service.ts';
import { suspend, suspensionOf } from './directory-suspension.ts';
import type { AuthParts, Provenance } from './parts.ts';

export type SuspensionReason = DirectoryGoneReason | 'tenant_changed';

export type Standing =
  | { readonly kind: 'stands'; readonly person: DirectoryPerson }
  | { readonly kind: 'gone'; readonly reason: SuspensionReason };

/**
 * Queries the directory. Must not be called in a transaction, because a directory may take seconds.
 * @throws Fault if the directory does not respond or is no longer configured; Refusal `unavailable` if too many
 * requests are in progress
 */
export async function standing(
  { directory: service }: AuthParts,
  identity: DirectoryIdentity,
  facts: RefreshFacts,
): Promise<Standing> {
  const { directory, stableId } = identity;
  if (service === undefined)
    throw new Fault(`the user belongs to the directory ${directory}, but no directory is configured`);
  const answer = await queryDirectory(service, 'refresh', directory, () =>
    service.directories.lookup(directory, stableId),
  );
  const found = standingOf(answer, facts.tenantId);
  service.report({ operation: 'refresh', directory, outcome: found.kind === 'stands' ? 'success' : found.reason });
  return found;
}

/** Returns the meaning of the directory's response for a user of this tenant. */
export function standingOf(answer: LookupAnswer, tenantId: TenantId): Standing {
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

/**
 * Suspends the user, which ends all sessions, or ends only the session of the request if the reason does not suspend.
 * @returns whether it wrote an audit row; false if the session or the user no longer exists
 * @throws Fault if the directory removed more persons within a day than the server trusts; then
 * nothing is written
 */
export async function endForDirectory(
  parts: AuthParts,
  { userId, tenantId, sessionId }: RefreshFacts,
  identity: DirectoryIdentity,
  reason: SuspensionReason,
  from: Provenance,
): Promise<boolean> {
  return tenantTransaction(parts.db, tenantId, async (trx) => {
    const suspension = suspensionOf(reason);
    let ended: number;
    if (suspension === undefined) {
      if (!(await lockUser(trx, tenantId, userId, 'update'))) return false;
      ended = Number(await endSession(trx, sessionId));
    } else {
      const suspended = await suspend(trx, identity, suspension, from);
      if (suspended === undefined) return false;
      ended = suspended.sessionsEnded;
    }
    await record(trx, from, {
      action: 'auth.refresh',
      actor: userId,
      tenant: tenantId,
      target: { type: 'session', id: sessionId },
      result: 'refused',
      after: { reason, directory: identity.directory, directory_id: identity.stableId, sessions_ended: ended },
    });
    return true;
  });
}
