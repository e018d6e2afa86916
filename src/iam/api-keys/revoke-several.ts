/** Revokes several keys at once: those with the given ids, or those that a filter matches; or shows which ones it would revoke. */

import { type ErrorCode, Refusal } from '../../domain/errors.ts';
import { type KeyId, parseId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayActOnKey } from '../caller/escalation.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { invalidField } from '../caller/refusals.ts';
import { type AuditedTarget, change } from '../change/change.ts';
import { enabledAllowPolicies } from '../policies/queries.ts';
import { findKeys, keysSize, listKeyIds, revokeKeys, type StoredKey } from './queries.ts';
import { type KeyFilterQuery, keyFilterOf } from './read.ts';
import { keyResource } from './resource.ts';

/** Keys of one request. */
export const MAX_REVOKED = 1000;
/** Of these keys as stored: the audit log has each twice. */
const MAX_BYTES = 8 * 1024 * 1024;

export type RevocationRequest =
  | { readonly ids: readonly string[] }
  /** Absent `status`: active. */
  | { readonly filter: KeyFilterQuery & { readonly status?: 'active' | 'expired' } };

/** What happened to one key, with what a person needs to know it by. */
export interface KeyRevocation {
  readonly id: string;
  readonly outcome: 'revoked' | 'would_revoke' | 'already_revoked' | 'not_found' | 'rejected';
  /** Of `rejected`. */
  readonly code?: ErrorCode;
  readonly detail?: string;
  readonly key?: ShownKey;
}

interface ShownKey {
  readonly name: string | null;
  readonly description: string;
  readonly user_id: string | null;
  readonly prefix: string;
  readonly last_four: string;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
}

export interface Revocations {
  readonly dry_run: boolean;
  /** Keys that were revoked, or that would be. */
  readonly revoked: number;
  /** True when the filter matched more keys than one request takes. */
  readonly has_more: boolean;
  readonly data: readonly KeyRevocation[];
}

/** @throws Refusal of the decision; `invalid_parameter`, `invalid_field` */
export async function revokeSeveralKeys(
  parts: AdminParts,
  caller: Caller,
  request: RevocationRequest,
  dryRun: boolean,
): Promise<Revocations> {
  const { asked, ids, filter, hasMore } = await chosenKeys(parts, caller, request);
  const entry = { action: 'api_key.revoke', keys: dryRun ? [] : ids };
  return change(parts, caller, entry, async ({ trx, caller, audit }) => {
    if ((await keysSize(trx, caller.tenant, ids)) > MAX_BYTES) {
      throw invalidField(
        'ids' in request ? '/ids' : '/filter',
        'The keys are too large to revoke in one request. Name fewer keys.',
      );
    }
    // As they are under the locks: since the filter was asked, a key may have changed.
    const found = await findKeys(trx, caller.tenant, ids, filter ?? {}, new Date(caller.nowMs));
    const keys = new Map<string, StoredKey>(found.map((key) => [key.id, key]));
    const standing = found.filter((key) => key.revokedAt === null);
    const rejected = await refusalsOf(trx, caller, standing);
    const chosen = standing.filter((key) => !rejected.has(key.id));
    const outcomeOf = (text: string): KeyRevocation => {
      const key = keys.get(text);
      if (key === undefined) return { id: text, outcome: 'not_found' };
      const refusal = rejected.get(key.id);
      if (refusal !== undefined) {
        return { id: key.id, outcome: 'rejected', code: refusal.code, detail: refusal.message, key: shownKey(key) };
      }
      if (key.revokedAt !== null) return { id: key.id, outcome: 'already_revoked', key: shownKey(key) };
      return { id: key.id, outcome: dryRun ? 'would_revoke' : 'revoked', key: shownKey(key) };
    };
    audit.each = dryRun ? [] : [...(await revoked(trx, caller, chosen)), ...refusedRows(rejected)];
    const listed = filter === undefined ? asked : asked.filter((id) => keys.has(id));
    return { dry_run: dryRun, revoked: chosen.length, has_more: hasMore, data: listed.map(outcomeOf) };
  });
}

interface ChosenKeys {
  /** As the answer shows them. */
  readonly asked: readonly string[];
  /** Those of them that are ids, each once. */
  readonly ids: readonly KeyId[];
  readonly filter: ReturnType<typeof keyFilterOf>;
  readonly hasMore: boolean;
}

async function chosenKeys(parts: AdminParts, caller: Caller, request: RevocationRequest): Promise<ChosenKeys> {
  if ('ids' in request) {
    const asked = [...new Set(request.ids)];
    const ids = asked.map((text) => parseId('key', text)).filter((id) => id !== undefined);
    return { asked, ids, filter: undefined, hasMore: false };
  }
  const filter = keyFilterOf(caller, { status: 'active', ...request.filter });
  if (filter === undefined) return { asked: [], ids: [], filter: {}, hasMore: false };
  const scope = { kind: 'one', tenant: caller.tenant } as const;
  const page = { after: undefined, take: MAX_REVOKED + 1 };
  const found = await listKeyIds(parts.db.knex, scope, filter, page, new Date(caller.nowMs));
  const ids = found.slice(0, MAX_REVOKED);
  return { asked: ids, ids, filter, hasMore: found.length > MAX_REVOKED };
}

/** The keys that the caller may not act on. */
async function refusalsOf(
  trx: Transaction,
  caller: HeldCaller,
  keys: readonly StoredKey[],
): Promise<ReadonlyMap<KeyId, Refusal>> {
  const allowPolicies = await enabledAllowPolicies(trx, caller.tenant);
  // Keys of one owner with the same rights are equally strong.
  const known = new Map<string, Refusal | undefined>();
  const refusals = new Map<KeyId, Refusal>();
  for (const key of keys) {
    const strength = JSON.stringify([key.userId ?? null, key.scopes, key.constraints, key.id === caller.principal.id]);
    if (!known.has(strength)) {
      known.set(strength, await refusalOf(() => mayActOnKey(trx, caller, key, allowPolicies)));
    }
    const refusal = known.get(strength);
    if (refusal !== undefined) refusals.set(key.id, refusal);
  }
  return refusals;
}

async function refusalOf(check: () => Promise<void>): Promise<Refusal | undefined> {
  try {
    await check();
    return undefined;
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

async function revoked(
  trx: Transaction,
  caller: HeldCaller,
  keys: readonly StoredKey[],
): Promise<readonly AuditedTarget[]> {
  if (keys.length === 0) return [];
  const before = new Map(keys.map((key) => [key.id, key]));
  const after = await revokeKeys(
    trx,
    caller.tenant,
    keys.map((key) => key.id),
  );
  return after.map((key) => {
    const was = before.get(key.id);
    return {
      target: { type: 'api_key', id: key.id },
      result: 'success',
      before: was && keyResource(was, caller.nowMs),
      after: keyResource(key, caller.nowMs),
    };
  });
}

function refusedRows(refusals: ReadonlyMap<KeyId, Refusal>): readonly AuditedTarget[] {
  return [...refusals].map(([id, { code, message }]) => ({
    target: { type: 'api_key', id },
    result: 'refused',
    after: { code, detail: message },
  }));
}

function shownKey(key: StoredKey): ShownKey {
  return {
    name: key.name,
    description: key.description,
    user_id: key.userId ?? null,
    prefix: key.prefix,
    last_four: key.lastFour,
    expires_at: key.expiresAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
  };
}
