/** Runs the actions of a plan in their order. It inserts users and audit rows in batches. */

import { makeOneTimeToken } from '../../identity/opaque-tokens.ts';
import { type AuditRow, insertAudits } from '../../store/audit-rows.ts';
import type { Transaction } from '../../store/transaction.ts';
import { auditRow, OPERATOR } from '../change/audit-row.ts';
import { userResource } from '../users/entity.ts';
import { putPasswordSetup } from '../users/password-queries.ts';
import { type ActionAudit, type ApplyContext, inOrder, type PlannedAction } from './action.ts';
import { insertUsers, type NewSetupUser } from './queries.ts';

/** A one-time token with which a new user sets the first password. */
export interface SetupToken {
  readonly email: string;
  /** A secret, to be shown once. */
  readonly token: string;
  readonly expiresAt: Date;
}

export interface WriteOptions {
  /** Creates a one-time token for each new active user. */
  readonly setupTokens: boolean;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  /** Bytes from a secure source. */
  readonly random: (size: number) => Uint8Array;
}

const BATCH = 500;

export async function runActions(
  trx: Transaction,
  actions: readonly PlannedAction[],
  { setupTokens, nowMs, random }: WriteOptions,
): Promise<readonly SetupToken[]> {
  const tokens: SetupToken[] = [];
  const rows = batching<AuditRow>((some) => insertAudits(trx, some));
  const audit = (row: ActionAudit): Promise<void> => rows.add(auditRow(OPERATOR, row.action, row, 'success'));
  const users = batching<NewSetupUser>(async (some) => {
    for (const user of await insertUsers(trx, some)) {
      await audit({
        action: 'user.create',
        target: { type: 'user', id: user.id },
        tenant: user.tenant_id,
        after: userResource(user),
      });
    }
    for (const { id, email, status } of some) {
      if (!setupTokens || status !== 'active') continue;
      const { text, digest } = makeOneTimeToken(random);
      tokens.push({
        email,
        token: text,
        expiresAt: await putPasswordSetup(trx, id, digest, { kind: 'system' }),
      });
    }
  });
  const context: ApplyContext = { trx, nowMs, random, audit, insertUser: users.add, flushUsers: users.flush };
  for (const action of inOrder(actions)) await action.run(context);
  await users.flush();
  await rows.flush();
  return tokens;
}

/** Collects values and writes them in batches. */
function batching<T>(write: (batch: readonly T[]) => Promise<void>): {
  add(one: T): Promise<void>;
  flush(): Promise<void>;
} {
  let pending: T[] = [];
  const flush = async (): Promise<void> => {
    if (pending.length === 0) return;
    const batch = pending;
    pending = [];
    await write(batch);
  };
  return {
    async add(one) {
      pending.push(one);
      if (pending.length >= BATCH) await flush();
    },
    flush,
  };
}
