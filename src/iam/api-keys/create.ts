/** Creates a key: for the caller, for the tenant, or for another user. */

import { makeId, parseId, type UserId } from '../../domain/ids.ts';
import { digestOfProof, makeApiKey } from '../../identity/api-keys.ts';
import type { Transaction } from '../../store/transaction.ts';
import { applyingBudgets } from '../budgets/applying.ts';
import { authorize, isAuthorized } from '../caller/authorize.ts';
import { type AdminParts, type Caller, selfId } from '../caller/caller.ts';
import { mayActOnUser, mayGive } from '../caller/escalation.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { invalidField, tenantGone } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { revealOnce } from '../change/idempotency.ts';
import { shareTenantNow } from '../tenants/queries.ts';
import { findUser, lockUser } from '../users/queries.ts';
import { type IssuedKey, keyResource, type NewKey } from './entity.ts';
import { mayProve, requestedProof } from './proof.ts';
import { insertKey } from './queries.ts';
import { reserveNewKey } from './quota.ts';
import { permittedExpiry, refuseFaster, refuseOutliving, requestedColumns, requestedExpiry } from './request.ts';

/**
 * A key with a proof has no secret.
 * @throws Refusal of the decision; `invalid_field`, `escalation`, `quota_exceeded`, `rate_limit_exceeded`
 */
export async function createKey(parts: AdminParts, caller: Caller, request: NewKey): Promise<IssuedKey> {
  mayCreateFor(caller, ownerOf(caller, request));
  const columns = requestedColumns(request);
  const id = makeId('key', caller.nowMs, parts.random(10));
  const secret = makeApiKey(parts.random);
  const { proof: wanted = null } = request;
  if (wanted !== null) mayProve(caller);
  const entry = { action: 'api_key.create', target: { type: 'api_key', id } } as const;
  const resource = await change(parts, caller, entry, async ({ trx, caller, audit }) => {
    const owner = ownerOf(caller, request);
    mayCreateFor(caller, owner);
    mayGive(caller, { permissions: columns.scopes, constraints: columns.resource_constraints });
    const held = await shareTenantNow(trx, caller.tenant);
    if (held === undefined) throw tenantGone();
    await mayOwn(trx, caller, owner);
    const proof = wanted === null ? undefined : await requestedProof(trx, caller, wanted);
    await reserveNewKey(trx, caller.tenant, owner, held.at.date.getTime());
    const expiresAt = permittedExpiry(held.tenant, requestedExpiry(request, caller.nowMs));
    await refuseOutliving(trx, caller, expiresAt);
    await refuseFaster(trx, caller, undefined, columns);
    const key = await insertKey(trx, {
      ...columns,
      id,
      tenant_id: caller.tenant,
      user_id: owner,
      expires_at: expiresAt,
      ...(proof === undefined
        ? { digest: secret.digest, prefix: secret.prefix, last_four: secret.lastFour }
        : { proof, digest: digestOfProof(id), prefix: '', last_four: '' }),
      imported: false,
      created_by: caller.principal.id,
      at: held.at,
    });
    await (await applyingBudgets(trx, caller.tenant)).refuseManyOfKey(key);
    audit.after = keyResource(key, caller.nowMs);
    return keyResource(key, caller.nowMs);
  });
  return wanted === null ? { ...resource, ...revealOnce(caller, { key: secret.text }) } : resource;
}

/**
 * Returns the owner that a request names; null = the tenant itself. The default depends on the caller's permissions, so
 * a change computes it again inside its transaction.
 */
function ownerOf(caller: Caller, { user_id: text = null }: NewKey): UserId | null {
  if (text === null) return isAuthorized(caller, 'admin:keys') ? null : (selfId(caller) ?? null);
  return parseOwner(text);
}

/** @throws Refusal `invalid_field` */
export function parseOwner(text: string): UserId {
  const id = parseId('usr', text);
  if (id === undefined) throw unknownOwner();
  return id;
}

/** @throws Refusal of the decision */
function mayCreateFor(caller: Caller, owner: UserId | null): void {
  authorize(caller, 'admin:keys', { self: owner !== null && owner === selfId(caller) });
}

/** Locks the owner, so that a concurrent deletion of the owner does not leave the key behind. */
async function mayOwn(trx: Transaction, caller: HeldCaller, owner: UserId | null): Promise<void> {
  if (owner === null) return;
  if (!(await lockUser(trx, caller.tenant, owner, 'share'))) throw unknownOwner();
  const user = await findUser(trx, caller.tenant, owner);
  if (user === undefined) throw unknownOwner();
  await mayActOnUser(trx, caller, user);
}

export function unknownOwner() {
  return invalidField('/user_id', 'This user does not exist in the tenant.');
}
