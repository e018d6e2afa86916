/** Changing, rotating and revoking keys. */

import { parseConstraints, validateKeyConstraints, validatePatterns } from '../../decision/validate.ts';
import { Refusal } from '../../domain/errors.ts';
import type { Metadata } from '../../domain/records.ts';
import { makeApiKey } from '../../identity/api-keys.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayActOnKey, mayChangeKey, mayGive, mayWiden } from '../caller/escalation.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { notFound, tenantGone, throwIfInvalid, valid } from '../caller/refusals.ts';
import { type AuditDraft, change } from '../change/change.ts';
import { revealOnce } from '../change/idempotency.ts';
import { lockTenant } from '../tenants/queries.ts';
import { holdKey } from './access.ts';
import { type ExpiryRequest, permittedExpiry, refuseOutliving, requestedExpiry } from './expiry.ts';
import {
  revokeKey as endKey,
  findKey,
  rotateKey as replaceSecret,
  type StoredKey,
  updateKey as writeKey,
} from './queries.ts';
import { takeKeyPlace } from './quota.ts';
import { refuseFaster } from './rate-limit.ts';
import { type IssuedKey, type KeyResource, keyResource } from './resource.ts';

/** Long enough to give every client of the key the new secret by hand. */
export const DEFAULT_GRACE_SECONDS = 3600;

/** Absent members stay as they are. */
export interface KeyChanges extends ExpiryRequest {
  /** null = none. */
  readonly name?: string | null;
  readonly description?: string;
  /** Replaces all pairs; null = none. */
  readonly metadata?: Metadata | null;
  readonly scopes?: readonly string[];
  readonly resource_constraints?: unknown;
  readonly rate_limit_rpm?: number | null;
}

/** @throws Refusal of the decision; `not_found`, `revoked`, `invalid_field`, `escalation`, `quota_exceeded` */
export async function updateKey(
  parts: AdminParts,
  caller: Caller,
  text: string,
  changes: KeyChanges,
): Promise<KeyResource> {
  return change(
    parts,
    caller,
    { action: 'api_key.update', target: { type: 'api_key', id: text }, existing: true },
    async ({ trx, caller, audit, checkPreconditions }) => {
      const key = await holdUsableKey(trx, caller, text);
      throwIfInvalid([
        ...validatePatterns(changes.scopes ?? [], '/scopes'),
        ...validateKeyConstraints(changes.resource_constraints),
      ]);
      await mayChangeKey(trx, caller, key);
      checkPreconditions(keyResource(key, caller.nowMs));
      const changed: StoredKey = {
        ...key,
        name: changes.name === undefined ? key.name : changes.name,
        description: changes.description ?? key.description,
        metadata: changes.metadata === undefined ? key.metadata : (changes.metadata ?? {}),
        scopes: changes.scopes ?? key.scopes,
        constraints:
          changes.resource_constraints === undefined
            ? key.constraints
            : valid(parseConstraints(changes.resource_constraints)),
        rateLimitRpm: changes.rate_limit_rpm === undefined ? key.rateLimitRpm : changes.rate_limit_rpm,
        expiresAt: await expiryAfter(trx, caller, key, changes),
      };
      refuseWidening(caller, key, changed);
      await refuseFaster(trx, caller, key.rateLimitRpm, changed.rateLimitRpm);
      if (revives(key, changed, caller.nowMs)) await takeKeyPlace(trx, key.tenantId, key.userId);
      await writeKey(trx, changed);
      return shown(trx, caller, audit, key);
    },
  );
}

/**
 * The key keeps its id and gets a new secret.
 * @param graceSeconds how long the old secret works beside the new one; default: 3600. An older secret that is still in its grace ends at once.
 * @throws Refusal of the decision; `not_found`, `revoked`, `escalation`
 */
export async function rotateKey(
  parts: AdminParts,
  caller: Caller,
  text: string,
  graceSeconds: number = DEFAULT_GRACE_SECONDS,
): Promise<IssuedKey> {
  const secret = makeApiKey(parts.random);
  const key = await change(
    parts,
    caller,
    { action: 'api_key.rotate', target: { type: 'api_key', id: text }, existing: true },
    async ({ trx, caller, audit, checkPreconditions }) => {
      const before = await holdUsableKey(trx, caller, text);
      await mayChangeKey(trx, caller, before);
      await refuseOutliving(trx, caller, before.expiresAt);
      checkPreconditions(keyResource(before, caller.nowMs));
      const until = graceSeconds === 0 ? null : new Date(caller.nowMs + graceSeconds * 1000);
      await replaceSecret(trx, before.tenantId, before.id, secret, until);
      return shown(trx, caller, audit, before);
    },
  );
  return { ...key, ...revealOnce(caller, { key: secret.text }) };
}

/**
 * For good; saying it again does nothing.
 * @throws Refusal of the decision; `not_found`, `escalation`
 */
export async function revokeKey(parts: AdminParts, caller: Caller, text: string): Promise<void> {
  await change(
    parts,
    caller,
    { action: 'api_key.revoke', target: { type: 'api_key', id: text }, existing: true },
    async ({ trx, caller, audit, checkPreconditions }) => {
      const key = await holdKey(trx, caller, text);
      await mayActOnKey(trx, caller, key);
      checkPreconditions(keyResource(key, caller.nowMs));
      await endKey(trx, key.tenantId, key.id);
      await shown(trx, caller, audit, key);
    },
  );
}

async function holdUsableKey(trx: Transaction, caller: HeldCaller, text: string): Promise<StoredKey> {
  const key = await holdKey(trx, caller, text);
  if (key.revokedAt !== null)
    throw new Refusal('revoked', 'The key is revoked, and a revoked key cannot be changed. Create another key.');
  return key;
}

/** A longer life is given like anything else: within what the caller lives and holds. */
async function expiryAfter(
  trx: Transaction,
  caller: HeldCaller,
  key: StoredKey,
  changes: ExpiryRequest,
): Promise<Date | null> {
  const requested = requestedExpiry(changes, caller.nowMs);
  if (requested === undefined) return key.expiresAt;
  const tenant = await lockTenant(trx, key.tenantId, 'share');
  if (tenant === undefined) throw tenantGone();
  const expiry = permittedExpiry(tenant, requested);
  if (outlives(expiry, key.expiresAt)) await refuseOutliving(trx, caller, expiry);
  return expiry;
}

function refuseWidening(caller: HeldCaller, before: StoredKey, after: StoredKey): void {
  const given = { permissions: after.scopes, constraints: after.constraints };
  if (outlives(after.expiresAt, before.expiresAt)) mayGive(caller, given);
  else mayWiden(caller, { permissions: before.scopes, constraints: before.constraints }, given);
}

/** Whether an expired key becomes active again. */
function revives(before: StoredKey, after: StoredKey, nowMs: number): boolean {
  const expired = ({ expiresAt }: StoredKey): boolean => expiresAt !== null && expiresAt.getTime() <= nowMs;
  return expired(before) && !expired(after);
}

function outlives(after: Date | null, before: Date | null): boolean {
  return before !== null && (after === null || after > before);
}

async function shown(trx: Transaction, caller: HeldCaller, audit: AuditDraft, before: StoredKey): Promise<KeyResource> {
  const key = await findKey(trx, before.tenantId, before.id);
  if (key === undefined) throw notFound('key');
  audit.before = keyResource(before, caller.nowMs);
  audit.after = keyResource(key, caller.nowMs);
  return keyResource(key, caller.nowMs);
}
