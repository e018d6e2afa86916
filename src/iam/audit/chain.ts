/** How far the audit log is sealed, for platform administrators. */

import { isPlatformAdmin } from '../../decision/tenant.ts';
import { Refusal } from '../../domain/errors.ts';
import { hex } from '../../store/audit-chain.ts';
import { chainState } from '../../store/audit-seal-queries.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';

export interface ChainResource {
  /** Rows that seals name. */
  readonly rows: number;
  readonly seals: number;
  /** Rows that wait for a seal, at most `MAX_UNSEALED`. */
  readonly unsealed: number;
  /** null while there is none. */
  readonly newest_seal: { readonly number: number; readonly hash: string; readonly time: string } | null;
}

/** Rows that wait are counted up to here. A running server seals them within seconds. */
export const MAX_UNSEALED = 100_000;

/**
 * Shows what the tables say. `postern verify-audit` checks whether it is true.
 * @throws Refusal `insufficient_permission` for callers other than platform administrators: the chain is one for all tenants
 */
export async function auditChain(parts: Pick<AdminParts, 'db'>, caller: Caller): Promise<ChainResource> {
  if (!isPlatformAdmin(caller.principal)) {
    throw new Refusal('insufficient_permission', 'Only platform administrators may read the state of the audit chain.');
  }
  const { newest, ...counts } = await chainState(parts.db.knex, MAX_UNSEALED);
  return {
    ...counts,
    newest_seal:
      newest === undefined ? null : { number: newest.seq, hash: hex(newest.hash), time: newest.sealedAt.toISOString() },
  };
}
