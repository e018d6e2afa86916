/**
 * Creates, renews and revokes keys without a caller. The demo does so, because every caller of the API needs a session
 * or a key. No permission is checked; the rules of requests and the number of active keys apply.
 */

import { type KeyId, makeId, type TenantId } from '../../domain/ids.ts';
import { digestOfProof, makeApiKey } from '../../identity/api-keys.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts } from '../caller/caller.ts';
import { orNotFound, tenantGone } from '../caller/refusals.ts';
import { OPERATOR } from '../change/audit-row.ts';
import { type AuditDraft, changeAsSystem } from '../change/change.ts';
import { shareTenantNow } from '../tenants/queries.ts';
import { lockUser } from '../users/queries.ts';
import { type KeyChanges, type KeyRow, keyResource, type NewKey } from './entity.ts';
import { boundProof } from './proof.ts';
import { insertKey, lockKey, markRevoked, replaceColumns, replaceSecret } from './queries.ts';
import { reserveActiveKey } from './quota.ts';
import { permittedExpiry, requestedColumns, requestedExpiry } from './request.ts';
import { parseOwner, unknownOwner } from './write.ts';

interface CreatedKey {
  readonly id: KeyId;
  /** The whole key, which is stored nowhere. A key with a proof has no secret: the text works for nothing. */
  readonly text: string;
}

/** @throws Refusal `invalid_field`, `quota_exceeded` */
export async function createKeyAsSystem(parts: AdminParts, tenant: TenantId, request: NewKey): Promise<CreatedKey> {
  const id = makeId('key', parts.now(), parts.random(10));
  const { digest, prefix, lastFour, text } = makeApiKey(parts.random);
  const owner = typeof request.user_id === 'string' ? parseOwner(request.user_id) : null;
  await changeKey(parts, tenant, 'create', id, async (trx, audit) => {
    const held = await shareTenantNow(trx, tenant);
    if (held === undefined) throw tenantGone();
    if (owner !== null && !(await lockUser(trx, tenant, owner, 'share'))) throw unknownOwner();
    const proof = request.proof ? (await boundProof(trx, tenant, request.proof)).proof : undefined;
    await reserveActiveKey(trx, tenant, owner);
    const key = await insertKey(trx, {
      ...requestedColumns(request),
      ...{ id, tenant_id: tenant, user_id: owner },
      expires_at: permittedExpiry(held.tenant, requestedExpiry(request, parts.now())),
      ...(proof === undefined
        ? { digest, prefix, last_four: lastFour }
        : { proof, digest: digestOfProof(id), prefix: '', last_four: '' }),
      ...{ imported: false, created_by: 'system', at: held.at },
    });
    audit.after = keyResource(key, parts.now());
  });
  return { id, text };
}

/**
 * Gives the key a new secret and other members. The former secret stops working.
 * @throws Refusal `not_found`, `invalid_field`
 */
export async function renewKeyAsSystem(
  parts: AdminParts,
  { tenant_id: tenant, id }: Pick<KeyRow, 'tenant_id' | 'id'>,
  changes: KeyChanges,
): Promise<CreatedKey> {
  const secret = makeApiKey(parts.random);
  await changeKey(parts, tenant, 'rotate', id, async (trx, audit) => {
    const held = await shareTenantNow(trx, tenant);
    if (held === undefined) throw tenantGone();
    const key = orNotFound(await lockKey(trx, tenant, id, 'update'), 'key');
    const expiry = requestedExpiry(changes, parts.now());
    await replaceColumns(trx, key, {
      ...requestedColumns(changes, key),
      expires_at: expiry === undefined ? key.expires_at : permittedExpiry(held.tenant, expiry),
    });
    audit.before = keyResource(key, parts.now());
    audit.after = keyResource(await replaceSecret(trx, key, secret, null), parts.now());
  });
  return { id, text: secret.text };
}

/** @throws Refusal `not_found` */
export function revokeKeyAsSystem(parts: AdminParts, tenant: TenantId, id: KeyId): Promise<void> {
  return changeKey(parts, tenant, 'revoke', id, async (trx, audit) => {
    const key = orNotFound(await lockKey(trx, tenant, id, 'update'), 'key');
    audit.before = keyResource(key, parts.now());
    audit.after = keyResource(key.revoked_at === null ? await markRevoked(trx, key) : key, parts.now());
  });
}

function changeKey(
  parts: AdminParts,
  tenant: TenantId,
  verb: 'create' | 'rotate' | 'revoke',
  id: KeyId,
  work: (trx: Transaction, audit: AuditDraft) => Promise<void>,
): Promise<void> {
  const entry = { action: `api_key.${verb}`, target: { type: 'api_key', id } } as const;
  return changeAsSystem(parts, { ...OPERATOR, tenant }, entry, work);
}
