/** Who may see and change which keys: with `admin:keys` all of the tenant, without it one's own. */

import { type KeyId, parseId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import { authorize } from '../caller/authorize.ts';
import { type AdminParts, type Caller, selfId } from '../caller/caller.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { notFound } from '../caller/refusals.ts';
import { findKey, lockKey, type StoredKey } from './queries.ts';

/** @throws Refusal of the decision; `not_found` */
export async function readableKey(parts: AdminParts, caller: Caller, text: string): Promise<StoredKey> {
  const id = parseId('key', text);
  return admitted(caller, id && (await findKey(parts.db.knex, caller.tenant, id)));
}

/**
 * Holds a key until the transaction ends.
 * @throws Refusal of the decision; `not_found`
 */
export async function holdKey(trx: Transaction, caller: HeldCaller, text: string): Promise<StoredKey> {
  const id: KeyId | undefined = parseId('key', text);
  return admitted(caller, id && (await lockKey(trx, caller.tenant, id)));
}

/** The right is asked first: who has none is told so, whether or not there is such a key. */
function admitted(caller: Caller, key: StoredKey | undefined): StoredKey {
  authorize(caller, 'admin:keys', { self: isOwn(caller, key) });
  if (key === undefined) throw notFound('key');
  return key;
}

function isOwn(caller: Caller, key: StoredKey | undefined): boolean {
  return key?.userId !== undefined && key.userId === selfId(caller);
}
