/** Revokes the keys with the given ids, or those that a filter matches, or reports which keys it would revoke. */

import type { Static } from 'typebox';
import type { Refusal } from '../../domain/errors.ts';
import { type KeyId, parseId } from '../../domain/ids.ts';
import type { Callers } from '../../http/endpoint.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayActOnKey } from '../caller/escalation.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { invalidField, refusalIn } from '../caller/refusals.ts';
import { type AuditedTarget, change, refusedTargets } from '../change/change.ts';
import { enabledAllowPolicies } from '../policies/queries.ts';
import { tenantsOf } from '../tenants/queries.ts';
import { type KeyRow, keyResource } from './entity.ts';
import { findKeys, keysSize, listKeyIds } from './list-queries.ts';
import { revokeKeys } from './queries.ts';
import { keyFilterOf } from './read.ts';
import { type ApiKeyRevocations, MAX_REVOKED, type revocation } from './schemas.ts';

/** The largest number of bytes of the keys of one request, as stored: the audit log holds each key twice. */
const MAX_BYTES = 8 * 1024 * 1024;

type Revocations = Static<typeof ApiKeyRevocations>;
type KeyRevocation = Revocations['data'][number];

/** @throws Refusal of the decision; `invalid_parameter`, `invalid_field` */
export async function revokeSeveralKeys(
  parts: AdminParts,
  caller: Caller,
  request: Static<typeof revocation>,
  dryRun: boolean,
): Promise<Revocations> {
  const { requested, ids, filter, hasMore } = await chosenKeys(parts, caller, request);
  const entry = { action: 'api_key.revoke', keys: dryRun ? [] : ids };
  return change(parts, caller, entry, async ({ trx, caller, audit }) => {
    if ((await keysSize(trx, caller.tenant, ids)) > MAX_BYTES) {
      throw invalidField(
        'ids' in request ? '/ids' : '/filter',
        'The keys are too large to revoke in one request. Name fewer keys.',
      );
    }
    // The keys are locked now. Any of them may have changed since the filter was evaluated.
    const found = await findKeys(trx, caller.tenant, ids, filter ?? {}, new Date(caller.nowMs));
    const keys = new Map<string, KeyRow>(found.map((key) => [key.id, key]));
    const unrevoked = found.filter((key) => key.revoked_at === null);
    const rejected = await refusalsOf(trx, caller, unrevoked);
    const chosen = unrevoked.filter((key) => !rejected.has(key.id));
    const outcomeOf = (text: string): KeyRevocation => {
      const key = keys.get(text);
      if (key === undefined) return { id: text, outcome: 'not_found' };
      const refusal = rejected.get(key.id);
      if (refusal !== undefined) {
        return { id: key.id, outcome: 'rejected', code: refusal.code, detail: refusal.message, key: shownKey(key) };
      }
      if (key.revoked_at !== null) return { id: key.id, outcome: 'already_revoked', key: shownKey(key) };
      return { id: key.id, outcome: dryRun ? 'would_revoke' : 'revoked', key: shownKey(key) };
    };
    audit.each = dryRun ? [] : [...(await revoked(trx, caller, chosen)), ...refusedTargets('api_key', rejected)];
    const listed = filter === undefined ? requested : requested.filter((id) => keys.has(id));
    return { dry_run: dryRun, revoked: chosen.length, has_more: hasMore, data: listed.map(outcomeOf) };
  });
}

/**
 * Revokes keys by id in the tenants that they belong to, for a platform administrator that names no tenant. Each tenant
 * has a change of its own.
 * @throws Refusal as `revokeSeveralKeys`
 */
export async function revokeKeysOfTenants(
  parts: AdminParts,
  { caller, callerIn }: Pick<Callers, 'caller' | 'callerIn'>,
  requested: readonly string[],
  dryRun: boolean,
): Promise<Revocations> {
  const ids = [...new Set(requested)];
  const homes = await tenantsOf(
    parts.db.knex,
    'api_keys',
    ids.map((text) => parseId('key', text)).filter((id) => id !== undefined),
  );
  const rows = new Map<string, KeyRevocation>();
  let revoked = 0;
  for (const [tenant, own] of Map.groupBy(ids, (id) => homes.get(id) ?? caller.tenant)) {
    const there = tenant === caller.tenant ? caller : await callerIn(tenant);
    const part = await revokeSeveralKeys(parts, there, { ids: own }, dryRun);
    for (const row of part.data) rows.set(row.id, row);
    revoked += part.revoked;
  }
  return { dry_run: dryRun, revoked, has_more: false, data: ids.flatMap((id) => rows.get(id) ?? []) };
}

interface ChosenKeys {
  /** The texts that the response lists. */
  readonly requested: readonly string[];
  /** The requested texts that are ids, each once. */
  readonly ids: readonly KeyId[];
  readonly filter: ReturnType<typeof keyFilterOf>;
  readonly hasMore: boolean;
}

async function chosenKeys(parts: AdminParts, caller: Caller, request: Static<typeof revocation>): Promise<ChosenKeys> {
  if ('ids' in request) {
    const requested = [...new Set(request.ids)];
    const ids = requested.map((text) => parseId('key', text)).filter((id) => id !== undefined);
    return { requested, ids, filter: undefined, hasMore: false };
  }
  const filter = keyFilterOf(caller, { status: 'active', ...request.filter });
  if (filter === undefined) return { requested: [], ids: [], filter: {}, hasMore: false };
  const scope = { kind: 'one', tenant: caller.tenant } as const;
  const found = await listKeyIds(parts.db.knex, scope, filter, MAX_REVOKED + 1, new Date(caller.nowMs));
  const ids = found.slice(0, MAX_REVOKED);
  return { requested: ids, ids, filter, hasMore: found.length > MAX_REVOKED };
}

/** The keys that the caller may not act on. */
async function refusalsOf(
  trx: Transaction,
  caller: HeldCaller,
  keys: readonly KeyRow[],
): Promise<ReadonlyMap<KeyId, Refusal>> {
  const allowPolicies = await enabledAllowPolicies(trx, caller.tenant);
  // Keys of one owner with the same scopes and constraints have the same permissions, so one check is enough for them.
  const known = new Map<string, Refusal | undefined>();
  const refusals = new Map<KeyId, Refusal>();
  for (const key of keys) {
    const grant = JSON.stringify([key.user_id, key.scopes, key.resource_constraints, key.id === caller.principal.id]);
    if (!known.has(grant)) known.set(grant, await refusalIn(() => mayActOnKey(trx, caller, key, allowPolicies)));
    const refusal = known.get(grant);
    if (refusal !== undefined) refusals.set(key.id, refusal);
  }
  return refusals;
}

async function revoked(
  trx: Transaction,
  caller: HeldCaller,
  keys: readonly KeyRow[],
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

function shownKey(key: KeyRow): NonNullable<KeyRevocation['key']> {
  const { name, description, user_id, prefix, last_four, expires_at, last_used_at } = key;
  return { name, description, user_id, prefix, last_four, expires_at, last_used_at };
}
