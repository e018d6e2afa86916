/**
 * Suspending a user of a directory: sessions end for good, the directory's roles are taken, and every replica rejects the user's keys from
 * the commit on, as for a deactivated owner. When the directory shows the person as active again, `directory-user.ts` ends the suspension.
 */

import { Fault } from '../../domain/errors.ts';
import type { UserId } from '../../domain/ids.ts';
import type { DirectorySuspension } from '../../domain/records.ts';
import { insertAudit } from '../../store/audit-rows.ts';
import type { Transaction } from '../../store/transaction.ts';
import { holdAlone } from '../caller/queries.ts';
import { lockRemovals, type RemovalCounts } from '../directory/queries.ts';
import { endSessionsOfUser } from '../sessions/queries.ts';
import {
  type DirectoryIdentity,
  findDirectoryUser,
  giveDirectoryRoles,
  holdDirectoryUser,
  noteDirectoryCheck,
  suspendDirectoryUser,
} from '../users/directory-queries.ts';
import type { GoneReason } from './directory-refresh.ts';
import { bySystem, resource } from './directory-user.ts';
import type { Provenance } from './parts.ts';

/** Removals within a day that are believed whatever their share is. */
const MAX_REMOVALS = 10;
/** The share of a directory's persons who were checked within a day up to which removals are believed. */
const MAX_REMOVED_SHARE = 0.2;

/** So many persons of a directory were removed within a day that the directory, or its configuration, is more probably at fault. */
export class RemovalsFault extends Fault {}

/**
 * Returns the suspension that a reason leads to; undefined for one that suspends no user: `locked`, because anybody can have a person
 * locked by guessing at the directory, `ambiguous_user`, because a colleague who may write a user name can cause it, and `not_readable`,
 * which says nothing about the person.
 */
export function suspensionOf(reason: GoneReason): DirectorySuspension | undefined {
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

/** Reports whether one removal more is to be believed. */
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
 * Suspends the user and writes it down, once per reason.
 * @returns undefined when there is no such user
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
  // First, so that the user's own changes, one after the other, cannot put this off.
  await holdAlone(trx, found.tenantId, found.id);
  // That a person is absent is inferred, and one wrong setting would make everybody absent. An account's state is what the directory says.
  const isInferred = suspension === 'removed' || suspension === 'tenant_changed';
  const removals = isInferred ? await lockRemovals(trx, identity.directory) : undefined;
  const user = await holdDirectoryUser(trx, identity);
  if (user === undefined) return undefined;
  const { id, tenantId } = user;
  if (user.suspension === suspension && user.roles.length === 0) {
    await noteDirectoryCheck(trx, id);
    return { id, sessionsEnded: await endSessionsOfUser(trx, id), changed: false };
  }
  if (user.suspension === null && removals !== undefined && !isBelievable(removals)) throw tooMany(identity.directory);
  const before = await resource(trx, tenantId, id);
  await suspendDirectoryUser(trx, id, suspension);
  await giveDirectoryRoles(trx, id, []);
  const sessionsEnded = await endSessionsOfUser(trx, id);
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
