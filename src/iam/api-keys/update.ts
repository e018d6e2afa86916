/** Updates, rotates, disables, enables and revokes a key. */

import { Refusal } from '../../domain/errors.ts';
import { makeApiKey } from '../../identity/api-keys.ts';
import type { Transaction } from '../../store/transaction.ts';
import { applyingBudgets } from '../budgets/applying.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayActOnKey, mayChangeKey, mayGive, mayWiden } from '../caller/escalation.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { invalidField, tenantGone } from '../caller/refusals.ts';
import { type AuditDraft, change } from '../change/change.ts';
import { revealOnce } from '../change/idempotency.ts';
import { endSessionsOfKey } from '../sessions/queries.ts';
import { lockTenant } from '../tenants/queries.ts';
import { type IssuedKey, isExpired, type KeyChanges, type KeyResource, type KeyRow, keyResource } from './entity.ts';
import { changedProof } from './proof.ts';
import { markRevoked, replaceColumns, replaceSecret, setKeyDisabled } from './queries.ts';
import { reserveActiveKey } from './quota.ts';
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
 * Absent members stay as they are.
 * @throws Refusal of the decision; `not_found`, `revoked`, `invalid_field`, `escalation`, `quota_exceeded`
 */
export async function updateKey(
  parts: AdminParts,
  caller: Caller,
  text: string,
  request: KeyChanges,
): Promise<KeyResource> {
  const entry = { action: 'api_key.update', target: { type: 'api_key', id: text }, existing: true } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const key = await holdUsableKey(trx, caller, text);
    const columns = requestedColumns(request, key);
    await mayChangeKey(trx, caller, key);
    checkPreconditions(keyResource(key, caller.nowMs));
    const changes = { ...columns, expires_at: await expiryAfter(trx, caller, key, request) };
    refuseWidening(caller, key, changes);
    const proof = await changedProof(trx, caller, key, request.proof);
    if (proof !== undefined) {
      await mayProveAgain(trx, caller, changes);
      await endSessionsOfKey(trx, key.id);
    }
    await refuseFaster(trx, caller, key, changes);
    const revives = isExpired(key, caller.nowMs) && !isExpired(changes, caller.nowMs);
    if (revives) await reserveActiveKey(trx, key.tenant_id, key.user_id);
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
}

function refuseWidening(caller: HeldCaller, before: Grant, after: Grant): void {
  if (outlives(after.expires_at, before.expires_at)) mayGive(caller, granted(after));
  else mayWiden(caller, granted(before), granted(after));
}

export function audited({ nowMs }: HeldCaller, audit: AuditDraft, before: KeyRow, after: KeyRow): KeyResource {
  audit.before = keyResource(before, nowMs);
  audit.after = keyResource(after, nowMs);
  return keyResource(after, nowMs);
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
