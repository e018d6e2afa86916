/** Who may give a key which rate limit of its own. */

import type { Transaction } from '../../store/transaction.ts';
import type { Caller } from '../caller/caller.ts';
import { escalation } from '../caller/refusals.ts';
import { findKey } from './queries.ts';

/**
 * Requests per minute; null = no limit of the key's own.
 * @param before undefined = the key is new
 * @throws Refusal `escalation` when a key with a limit would lift it, of itself or by way of another key
 */
export async function refuseFaster(
  trx: Transaction,
  caller: Caller,
  before: number | null | undefined,
  after: number | null,
): Promise<void> {
  if (caller.principal.kind !== 'api_key' || !exceeds(after, before)) return;
  const own = await findKey(trx, caller.principal.tenantId, caller.principal.id);
  if (own !== undefined && !exceeds(after, own.rateLimitRpm)) return;
  throw escalation('An API key cannot set a rate limit higher than its own, for itself or for another key.');
}

function exceeds(limit: number | null, other: number | null | undefined): boolean {
  if (other === undefined) return true;
  return other !== null && (limit === null || limit > other);
}
