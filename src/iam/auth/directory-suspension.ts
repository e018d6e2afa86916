/**
 * Suspends a user of a directory: its sessions end permanently, it loses the directory's roles, and every replica
 * rejects its keys after the commit, as for a deactivated owner. When the directory reports the person as active again,
 * `directory-user.ts` ends the suspension.
 */

import { Fault } from '../../domain/errors.ts';
import type { UserId } from '../../domain/ids.ts';
import type { DirectorySuspension } from '../../domain/records.ts';
import { insertAudit } from '../../store/audit-rows.ts';
import type { Transaction } from '../../store/transaction.ts';
import { holdAlone } from '../caller/queries.ts';
import { lockRemovals, type RemovalCounts } from '../directory/queries.ts';
import { endSessions } from '../sessions/queries.ts';
import {
  type DirectoryIdentity,
  findDirectoryUser,
  giveDirectoryRoles,
  holdDirectoryUser,
  noteDirectoryCheck,
  suspendDirectoryUser,
} from '../users/directory-queries.ts';
import type { SuspensionReason } from './directory-refresh.ts';
import { bySystem, resource } from './directory-user.ts';
import type { Provenance } from './parts.ts';

/** The server accepts this number of removals within a day for any share. */
const MAX_REMOVALS = 10;
/** The server accepts removals up to this share of the directory's persons that were checked within a day. */
const MAX_REMOVED_SHARE = 0.2;

/**
 * Too many persons of a directory were removed within a day. The directory or its configuration is more probably at
 * fault.
 */
export class RemovalsFault extends Fault {}

/**
 * Returns the suspension for a reason. Undefined for a reason that suspends no user: `locked`, because every client can
 * lock a person by failed logins, `ambiguous_user`, because a colleague with write access to usernames can cause it,
 * and `not_readable`, which is no fact about the person.
 */
export function suspensionOf(reason: SuspensionReason): DirectorySuspension | undefined {
  switch (reason) {
    case 'removed':
    case 'disabled':
    case 'expired':
    case 'tenant_changed':
    case 'several_names':
    case 'several_ids':
      return reason;
    case 'locked':
    case 'ambiguous_user':
    case 'not_readable':
      return undefined;
    default:
      return reason satisfies never;
  }
}

/** Reports whether the server accepts one more removal. */
export function isBelievable({ checked, removed }: RemovalCounts): boolean {
  return removed + 1 <= MAX_REMOVALS || removed + 1 <= (checked + 1) * MAX_REMOVED_SHARE;
}

export interface Suspended {
  readonly id: UserId;
  readonly sessionsEnded: number;
  /** False for a user that was suspended for the same reason before. */
  readonly changed: boolean;
}

/**
 * Suspends the user, with an audit row once for each reason.
 * @returns undefined if the user does not exist
 * @throws RemovalsFault: then the transaction must not be committed
 */
export async function suspend(
  trx: Transaction,
  identity: DirectoryIdentity,
  suspension: DirectorySuspension,
  from: Provenance,
): Promise<Suspended | undefined> {
  const found = await findDirectoryUser(trx, identity);
  if (found === undefined) return undefined;
  // First, so that the user cannot delay it by a series of its own changes.
  await holdAlone(trx, found.tenantId, found.id);
  // Absence is inferred, and one wrong setting would make all persons absent. The state of an account is reported by
  // the directory itself.
  const isInferred = suspension === 'removed' || suspension === 'tenant_changed';
  const removals = isInferred ? await lockRemovals(trx, identity.directory) : undefined;
  const user = await holdDirectoryUser(trx, identity);
  if (user === undefined) return undefined;
  const { id, tenantId } = user;
  if (user.suspension === suspension && user.roles.length === 0) {
    await noteDirectoryCheck(trx, id);
    return { id, sessionsEnded: await endSessions(trx, { user_id: id }), changed: false };
  }
  if (user.suspension === null && removals !== undefined && !isBelievable(removals)) throw tooMany(identity.directory);
  const before = await resource(trx, tenantId, id);
  await suspendDirectoryUser(trx, id, suspension);
  await giveDirectoryRoles(trx, id, []);
  const sessionsEnded = await endSessions(trx, { user_id: id });
  const after = await resource(trx, tenantId, id);
  await insertAudit(trx, {
    ...bySystem(from, after),
    action: 'user.suspend',
    result: 'success',
    before,
    after: { ...after, directory: identity.directory, directory_id: identity.stableId, sessions_ended: sessionsEnded },
  });
  return { id, sessionsEnded, changed: true };
}

function tooMany(directory: string): RemovalsFault {
  return new RemovalsFault(
    `more than ${MAX_REMOVALS} users, and more than ${MAX_REMOVED_SHARE * 100} % of the users checked within a day, are missing from the directory ${directory}. The server ignores further removals. Check user-search-base, user-search-filter, group-tenant-mapping and the permissions of the service account.`,
  );
}
