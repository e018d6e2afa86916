/** Audits that failed logins have locked an account: once for each lock, over all servers. */

import { transaction } from '../../store/transaction.ts';
import { record } from './audit.ts';
import { hasNewLock, markLock, userOfAccount } from './failure-queries.ts';
import type { LoginParts, Provenance } from './parts.ts';
import type { LoginAttempt } from './throttle.ts';

/**
 * Call it after a failed attempt. An account that does not exist costs the same work, so that the time of an answer does
 * not reveal which accounts exist.
 * @param username as the audit log shows it
 */
export async function recordLock(
  { db }: Pick<LoginParts, 'db'>,
  attempt: LoginAttempt,
  from: Provenance,
  username: string,
): Promise<void> {
  if (!(await hasNewLock(db.knex, attempt))) return;
  await transaction(db, async (trx) => {
    if (!(await markLock(trx, attempt))) return;
    const user = await userOfAccount(trx, attempt);
    await record(trx, from, {
      action: 'user.lock',
      tenant: user?.tenant_id,
      target: { type: 'user', id: user?.id ?? username },
      result: 'success',
      after: { username },
    });
  });
}
