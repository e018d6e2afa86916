/** Making a key: for oneself, for the tenant, or for another user. */

import { parseConstraints, validateKeyConstraints, validatePatterns } from '../../decision/validate.ts';
import { makeId, parseId, type UserId } from '../../domain/ids.ts';
import type { Metadata } from '../../domain/records.ts';
import { makeApiKey } from '../../identity/api-keys.ts';
import type { Transaction } from '../../store/transaction.ts';
import { authorize, isAuthorized } from '../caller/authorize.ts';
import { type AdminParts, type Caller, selfId } from '../caller/caller.ts';
import { mayActOnUser, mayGive } from '../caller/escalation.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { invalidField, tenantGone, throwIfInvalid, valid } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { revealOnce } from '../change/idempotency.ts';
import { shareTenantNow } from '../tenants/queries.ts';
import { findUser, lockUser } from '../users/queries.ts';
import { type ExpiryRequest, permittedExpiry, refuseOutliving, requestedExpiry } from './expiry.ts';
import { insertKey } from './queries.ts';
import { refuseManyNewKeys, takeKeyPlace } from './quota.ts';
import { refuseFaster } from './rate-limit.ts';
import { type IssuedKey, keyResource } from './resource.ts';

export interface NewKeyRequest extends ExpiryRequest {
  readonly name?: string | null;
  readonly description: string;
  /** Absent or null: none. */
  readonly metadata?: Metadata | null;
  readonly scopes: readonly string[];
  /** Absent or null: oneself without `admin:keys`, else the tenant itself. */
  readonly user_id?: string | null;
  readonly resource_constraints?: unknown;
  readonly rate_limit_rpm?: number | null;
}

/** @throws Refusal of the decision; `invalid_field`, `escalation`, `quota_exceeded`, `rate_limit_exceeded` */
export async function createKey(parts: AdminParts, caller: Caller, request: NewKeyRequest): Promise<IssuedKey> {
  mayMakeFor(caller, ownerOf(caller, request));
  throwIfInvalid([
    ...validatePatterns(request.scopes, '/scopes'),
    ...validateKeyConstraints(request.resource_constraints),
  ]);
  const constraints = valid(parseConstraints(request.resource_constraints));
  const id = makeId('key', caller.nowMs, parts.random(10));
  const secret = makeApiKey(parts.random);
  const key = await change(
    parts,
    caller,
    { action: 'api_key.create', target: { type: 'api_key', id } },
    async ({ trx, caller, audit }) => {
      const owner = ownerOf(caller, request);
      mayMakeFor(caller, owner);
      mayGive(caller, { permissions: request.scopes, constraints });
      const held = await shareTenantNow(trx, caller.tenant);
      if (held === undefined) throw tenantGone();
      const { tenant, at } = held;
      await mayOwn(trx, caller, owner);
      await takeKeyPlace(trx, caller.tenant, owner);
      await refuseManyNewKeys(trx, caller.tenant, owner, at.date.getTime());
      const expiresAt = permittedExpiry(tenant, requestedExpiry(request, caller.nowMs));
      await refuseOutliving(trx, caller, expiresAt);
      const { name = null, description, scopes, rate_limit_rpm: rateLimitRpm = null } = request;
      const metadata = request.metadata ?? {};
      await refuseFaster(trx, caller, undefined, rateLimitRpm);
      const key = {
        ...{ id, tenantId: caller.tenant, userId: owner, name, description, metadata, imported: false },
        ...{ scopes, constraints, rateLimitRpm, expiresAt },
      };
      await insertKey(trx, key, secret, caller.principal.id, at);
      const { prefix, lastFour } = secret;
      const created = {
        createdBy: caller.principal.id,
        createdAt: at.date,
        updatedAt: at.date,
        revokedAt: null,
        lastUsedAt: null,
      };
      const made = keyResource({ ...key, prefix, lastFour, ...created }, caller.nowMs);
      audit.after = made;
      return made;
    },
  );
  return { ...key, ...revealOnce(caller, { key: secret.text }) };
}

/** Undefined = the tenant itself. Without a name it depends on what the caller may do, so it is asked again inside the transaction. */
function ownerOf(caller: Caller, { user_id: text = null }: NewKeyRequest): UserId | undefined {
  if (text === null) return isAuthorized(caller, 'admin:keys') ? undefined : selfId(caller);
  const id = parseId('usr', text);
  if (id === undefined) throw unknownOwner();
  return id;
}

/** @throws Refusal of the decision */
function mayMakeFor(caller: Caller, owner: UserId | undefined): void {
  authorize(caller, 'admin:keys', { self: owner !== undefined && owner === selfId(caller) });
}

/** Holds the owner, so that a deletion meanwhile does not leave the key behind. */
async function mayOwn(trx: Transaction, caller: HeldCaller, owner: UserId | undefined): Promise<void> {
  if (owner === undefined) return;
  if (!(await lockUser(trx, caller.tenant, owner, 'share'))) throw unknownOwner();
  const user = await findUser(trx, caller.tenant, owner);
  if (user === undefined) throw unknownOwner();
  await mayActOnUser(trx, caller, user);
}

function unknownOwner() {
  return invalidField('/user_id', 'This user does not exist in the tenant.');
}
