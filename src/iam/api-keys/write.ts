/** Creates, updates, rotates, disables, enables and revokes keys: of the caller, of the tenant, or of another user. */

import { Refusal } from '../../domain/errors.ts';
import { makeId, parseId, type UserId } from '../../domain/ids.ts';
import { digestOfProof, makeApiKey } from '../../identity/api-keys.ts';
import type { Transaction } from '../../store/transaction.ts';
import { applyingBudgets } from '../budgets/applying.ts';
import { authorize, isAuthorized } from '../caller/authorize.ts';
import { type AdminParts, type Caller, selfId } from '../caller/caller.ts';
import { mayActOnKey, mayActOnUser, mayChangeKey, mayGive, mayWiden } from '../caller/escalation.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { invalidField, tenantGone } from '../caller/refusals.ts';
import { type AuditDraft, change, recorded } from '../change/change.ts';
import { revealOnce } from '../change/idempotency.ts';
import { endSessions } from '../sessions/queries.ts';
import { lockTenant, shareTenantNow } from '../tenants/queries.ts';
import { findUser, lockUser } from '../users/queries.ts';
import {
  type IssuedKey,
  isExpired,
  type KeyChanges,
  type KeyResource,
  type KeyRow,
  keyResource,
  type NewKey,
} from './entity.ts';
import { changedProof, mayProve, requestedProof } from './proof.ts';
import { insertKey, markRevoked, replaceColumns, replaceSecret, setKeyDisabled } from './queries.ts';
import { reserveActiveKey, reserveNewKey } from './quota.ts';
import { holdKey } from './read.ts';
import {
  outlives,
  permittedExpiry,
  type RequestedColumns,
  refuseFaster,
  refuseOutliving,
  requestedColumns,
  requestedExpiry,
} from './request.ts';
import { DEFAULT_GRACE_SECONDS } from './schemas.ts';

/**
 * A key with a proof has no secret.
 * @throws Refusal of the decision; `invalid_field`, `escalation`, `quota_exceeded`, `rate_limit_exceeded`
 */
export async function createKey(parts: AdminParts, caller: Caller, request: NewKey): Promise<IssuedKey> {
  permittedOwner(caller, request);
  const columns = requestedColumns(request);
  const id = makeId('key', caller.nowMs, parts.random(10));
  const secret = makeApiKey(parts.random);
  const { proof: wanted = null } = request;
  if (wanted !== null) mayProve(caller);
  const entry = { action: 'api_key.create', target: { type: 'api_key', id } } as const;
  const resource = await change(parts, caller, entry, async ({ trx, caller, audit }) => {
    const owner = permittedOwner(caller, request);
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
    return recorded(audit, undefined, keyResource(key, caller.nowMs));
  });
  return wanted === null ? { ...resource, ...revealOnce(caller, { key: secret.text }) } : resource;
}

/**
 * Returns the owner that a request names; null = the tenant itself. The default depends on the caller's permissions, so
 * a change computes it again inside its transaction.
 * @throws Refusal of the decision; `invalid_field`, only for a caller that may create keys for others
 */
function permittedOwner(caller: Caller, { user_id: named = null }: NewKey): UserId | null {
  const self = selfId(caller) ?? null;
  const owner = named ?? (isAuthorized(caller, 'admin:keys') ? null : self);
  authorize(caller, 'admin:keys', { self: owner !== null && owner === self });
  return owner === null ? null : parseOwner(owner);
}

/** @throws Refusal `invalid_field` */
export function parseOwner(text: string): UserId {
  const id = parseId('usr', text);
  if (id === undefined) throw unknownOwner();
  return id;
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

/**
 * Absent members stay as they are.
 * @param check rejects values of the request, beside the rules for all requests
 * @throws Refusal of the decision; `not_found`, `revoked`, `invalid_field`, `escalation`, `quota_exceeded`
 */
export async function updateKey(
  parts: AdminParts,
  caller: Caller,
  text: string,
  request: KeyChanges,
  check?: () => void,
): Promise<KeyResource> {
  const entry = { action: 'api_key.update', target: { type: 'api_key', id: text }, existing: true } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const key = await holdUsableKey(trx, caller, text);
    await mayChangeKey(trx, caller, key);
    checkPreconditions(keyResource(key, caller.nowMs));
    check?.();
    const columns = requestedColumns(request, key);
    const changes = { ...columns, expires_at: await expiryAfter(trx, caller, key, request) };
    refuseWidening(caller, key, changes);
    const proof = await changedProof(trx, caller, key, request.proof);
    if (proof !== undefined) {
      await mayProveAgain(trx, caller, changes);
      await endSessions(trx, { api_key_id: key.id });
    }
    await refuseFaster(trx, caller, key, changes);
    const revives = isExpired(key, caller.nowMs) && !isExpired(changes, caller.nowMs);
    if (revives) await reserveActiveKey(trx, key.tenant_id, key.user_id);
    // An expired key takes no tokens from the other keys that they match.
    if (revives && key.proof !== null && proof === undefined) await requestedProof(trx, caller, key.proof, key.id);
    const changed = await replaceColumns(trx, key, changes, proof);
    if (request.metadata !== undefined) await (await applyingBudgets(trx, key.tenant_id)).refuseManyOfKey(changed);
    return audited(caller, audit, key, changed);
  });
}

/**
 * Gives the key a new secret. The key keeps its id.
 * @param graceSeconds the seconds during which the old secret also works. An older secret that is still in its grace
 *   period ends at once.
 * @throws Refusal of the decision; `not_found`, `revoked`, `escalation`; `invalid_field` for a key without a secret
 */
export async function rotateKey(
  parts: AdminParts,
  caller: Caller,
  text: string,
  graceSeconds: number = DEFAULT_GRACE_SECONDS,
): Promise<IssuedKey> {
  const secret = makeApiKey(parts.random);
  const entry = { action: 'api_key.rotate', target: { type: 'api_key', id: text }, existing: true } as const;
  const resource = await change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const key = await holdUsableKey(trx, caller, text);
    await mayChangeKey(trx, caller, key);
    if (key.proof !== null) throw invalidField('', 'The key has no secret to rotate. Change its proof instead.');
    await refuseOutliving(trx, caller, key.expires_at);
    await refuseFaster(trx, caller, undefined, key);
    checkPreconditions(keyResource(key, caller.nowMs));
    const until = graceSeconds === 0 ? null : new Date(caller.nowMs + graceSeconds * 1000);
    return audited(caller, audit, key, await replaceSecret(trx, key, secret, until));
  });
  return { ...resource, ...revealOnce(caller, { key: secret.text }) };
}

/**
 * Revokes the key permanently. A repeated revocation changes nothing.
 * @throws Refusal of the decision; `not_found`, `escalation`
 */
export async function revokeKey(parts: AdminParts, caller: Caller, text: string): Promise<void> {
  const entry = { action: 'api_key.revoke', target: { type: 'api_key', id: text }, existing: true } as const;
  await change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const key = await holdKey(trx, caller, text);
    await mayActOnKey(trx, caller, key);
    checkPreconditions(keyResource(key, caller.nowMs));
    audited(caller, audit, key, key.revoked_at === null ? await markRevoked(trx, key) : key);
  });
}

/** @throws Refusal of the decision; `not_found`, `revoked` */
export async function holdUsableKey(trx: Transaction, caller: HeldCaller, text: string): Promise<KeyRow> {
  const key = await holdKey(trx, caller, text);
  if (key.revoked_at !== null)
    throw new Refusal('revoked', 'The key is revoked, and a revoked key cannot be changed. Create another key.');
  // The deletion of a user does not write the user's expired keys.
  if (key.user_id !== null && (await findUser(trx, key.tenant_id, key.user_id)) === undefined)
    throw new Refusal('revoked', 'The owner of the key was deleted, so the key cannot be changed. Create another key.');
  return key;
}

/** A longer lifetime is a grant: the caller must outlive it, and must hold what the key holds. */
async function expiryAfter(
  trx: Transaction,
  caller: HeldCaller,
  key: KeyRow,
  request: KeyChanges,
): Promise<Date | null> {
  const requested = requestedExpiry(request, caller.nowMs);
  if (requested === undefined) return key.expires_at;
  const tenant = await lockTenant(trx, key.tenant_id, 'share');
  if (tenant === undefined) throw tenantGone();
  const expiry = permittedExpiry(tenant, requested);
  if (outlives(expiry, key.expires_at)) await refuseOutliving(trx, caller, expiry);
  return expiry;
}

type Grant = Pick<KeyRow, keyof RequestedColumns | 'expires_at'>;

function granted({ scopes, resource_constraints }: Grant) {
  return { permissions: scopes, constraints: resource_constraints };
}

/** Another proof gives the key to other tokens, as a rotation gives it to the holder of another secret. */
async function mayProveAgain(trx: Transaction, caller: HeldCaller, key: Grant): Promise<void> {
  mayGive(caller, granted(key));
  await refuseOutliving(trx, caller, key.expires_at);
  await refuseFaster(trx, caller, undefined, key);
}

function refuseWidening(caller: HeldCaller, before: Grant, after: Grant): void {
  if (outlives(after.expires_at, before.expires_at)) mayGive(caller, granted(after));
  else mayWiden(caller, granted(before), granted(after));
}

export function audited({ nowMs }: HeldCaller, audit: AuditDraft, before: KeyRow, after: KeyRow): KeyResource {
  return recorded(audit, keyResource(before, nowMs), keyResource(after, nowMs));
}

/**
 * Disables a key, which keeps its secret, its rights and its place among the active keys. Needs what a revocation needs. A second request changes nothing.
 * @throws Refusal of the decision; `not_found`, `revoked`, `escalation`
 */
export async function disableKey(parts: AdminParts, caller: Caller, text: string): Promise<KeyResource> {
  const entry = { action: 'api_key.disable', target: { type: 'api_key', id: text }, existing: true } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const key = await holdUsableKey(trx, caller, text);
    await mayActOnKey(trx, caller, key);
    checkPreconditions(keyResource(key, caller.nowMs));
    return audited(caller, audit, key, key.disabled_at === null ? await setKeyDisabled(trx, key, true) : key);
  });
}

/**
 * Gives the rights of a disabled key back, so that it needs what the creation of the key needs. A second request
 * changes nothing.
 * @throws Refusal of the decision; `not_found`, `revoked`, `escalation`
 */
export async function enableKey(parts: AdminParts, caller: Caller, text: string): Promise<KeyResource> {
  const entry = { action: 'api_key.enable', target: { type: 'api_key', id: text }, existing: true } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const key = await holdUsableKey(trx, caller, text);
    await mayChangeKey(trx, caller, key);
    mayGive(caller, { permissions: key.scopes, constraints: key.resource_constraints });
    await refuseOutliving(trx, caller, key.expires_at);
    await refuseFaster(trx, caller, undefined, key);
    checkPreconditions(keyResource(key, caller.nowMs));
    return audited(caller, audit, key, key.disabled_at === null ? key : await setKeyDisabled(trx, key, false));
  });
}
