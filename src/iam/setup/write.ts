/** Does the actions of a plan, in the order in which they can be done; users and audit rows many at a time. */

import { makeOneTimeToken } from '../../identity/one-time.ts';
import { type AuditRow, insertAudits } from '../../store/audit-rows.ts';
import type { Transaction } from '../../store/transaction.ts';
import { auditRow, OPERATOR } from '../change/audit-row.ts';
import { putPasswordSetup } from '../users/password-queries.ts';
import { userResource } from '../users/resource.ts';
import { type ActionAudit, type ApplyContext, inOrder, type PlannedAction } from './action.ts';
import { insertUsers, type NewSetupUser } from './queries.ts';

/** With it a new user sets a first password. */
export interface SetupToken {
  readonly email: string;
  /** A secret, to be shown once. */
  readonly token: string;
  readonly expiresAt: Date;
}

export interface WriteOptions {
  /** Make a one-time token for each user that is made, unless it is deactivated. */
  readonly setupTokens: boolean;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  /** Bytes from a secure source. */
  readonly random: (size: number) => Uint8Array;
}

const AT_ONCE = 500;

export async function runActions(
  trx: Transaction,
  actions: readonly PlannedAction[],
  { setupTokens, nowMs, random }: WriteOptions,
): Promise<readonly SetupToken[]> {
  const tokens: SetupToken[] = [];
  const rows = gathering<AuditRow>((some) => insertAudits(trx, some));
  const audit = (row: ActionAudit): Promise<void> => rows.add(auditRow(OPERATOR, row.action, row, 'success'));
  const users = gathering<NewSetupUser>(async (some) => {
    for (const user of await insertUsers(trx, some)) {
      await audit({
        action: 'user.create',
        target: { type: 'user', id: user.id },
        tenant: user.tenantId,
        after: userResource(user),
      });
    }
    for (const { id, email, status } of some) {
      if (!setupTokens || status !== 'active') continue;
      const { text, digest } = makeOneTimeToken(random);
      tokens.push({
        email,
        token: text,
        expiresAt: new Date(await putPasswordSetup(trx, id, digest, { kind: 'system' })),
      });
    }
  });
  const context: ApplyContext = { trx, nowMs, random, audit, makeUser: users.add };
  for (const action of inOrder(actions)) await action.run(context);
  await users.end();
  await rows.end();
  return tokens;
}

/** Hands on what it is given, many at a time. */
function gathering<T>(write: (some: readonly T[]) => Promise<void>): {
  add(one: T): Promise<void>;
  end(): Promise<void>;
} {
  let held: T[] = [];
  const end = async (): Promise<void> => {
    if (held.length === 0) return;
    const some = held;
    held = [];
    await write(some);
  };
  return {
    async add(one) {
      held.push(one);
      if (held.length >= AT_ONCE) await end();
    },
    end,
  };
}
