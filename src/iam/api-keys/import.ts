/**
 * Imports keys of another system by the SHA-256 digests of their texts, so that clients keep the keys that they have. The server never sees
 * such a key before a client uses it. Each row has an outcome of its own: a rejected row does not prevent the import of the others.
 */

import type { Static } from 'typebox';
import { isPlatformAdmin } from '../../decision/tenant.ts';
import { Refusal } from '../../domain/errors.ts';
import { type KeyDigest, makeId, parseKeyDigest, type UserId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayActOnUser, mayGive } from '../caller/escalation.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { invalidField, orRefusal, tenantGone } from '../caller/refusals.ts';
import { type AuditedTarget, change } from '../change/change.ts';
import { enabledAllowPolicies } from '../policies/queries.ts';
import { type StoredTenant, shareTenantNow } from '../tenants/queries.ts';
import { findUser, lockUser } from '../users/queries.ts';
import { parseOwner, unknownOwner } from './create.ts';
import { keyResource } from './entity.ts';
import { insertNewKey, lockActiveKeys, type NewKeyRow, shareKeysOfDigests } from './queries.ts';
import { reserveActiveKey } from './quota.ts';
import { permittedExpiry, requestedColumns, requestedExpiry } from './request.ts';
import type { ApiKeyImport, ImportedKey } from './schemas.ts';

type Import = Static<typeof ApiKeyImport>;
type ImportedRow = Import['data'][number];

/** @throws Refusal of the decision; `insufficient_permission` unless the caller is a platform administrator */
export async function importKeys(parts: AdminParts, caller: Caller, requests: readonly ImportedKey[]): Promise<Import> {
  requirePlatformAdmin(caller);
  return change(parts, caller, { action: 'api_key.import' }, async ({ trx, caller, audit }) => {
    requirePlatformAdmin(caller);
    const held = await shareTenantNow(trx, caller.tenant);
    if (held === undefined) throw tenantGone();
    const rows: (ReadRow | Refusal)[] = [];
    for (const request of requests) rows.push(await orRefusal(() => readRow(caller, held.tenant, request)));
    const refusedOwners = await lockOwners(trx, caller, rows);
    const digests = rows.flatMap((row) => (row instanceof Refusal ? [] : [row.digest]));
    const existing = new Map(await shareKeysOfDigests(trx, digests));
    const audited: AuditedTarget[] = [];
    const data: ImportedRow[] = [];
    for (const [index, row] of rows.entries()) {
      const refusal = row instanceof Refusal ? row : row.user_id === null ? undefined : refusedOwners.get(row.user_id);
      if (row instanceof Refusal || refusal !== undefined) {
        data.push(rejected(index, refusal ?? alreadyExists()));
        continue;
      }
      const present = existing.get(row.digest);
      if (present !== undefined) {
        const own = present.tenant_id === caller.tenant;
        data.push(own ? { index, outcome: 'exists', id: present.id } : rejected(index, alreadyExists()));
        continue;
      }
      const full = await orRefusal(() => reserveActiveKey(trx, caller.tenant, row.user_id));
      if (full instanceof Refusal) {
        data.push(rejected(index, full));
        continue;
      }
      const id = makeId('key', caller.nowMs, parts.random(10));
      const key = await insertNewKey(trx, { ...row, id, at: held.at });
      if (key === undefined) {
        data.push(rejected(index, alreadyExists()));
        continue;
      }
      existing.set(row.digest, key);
      audited.push({
        target: { type: 'api_key', id },
        result: 'success',
        after: keyResource(key, caller.nowMs),
      });
      data.push({ index, outcome: 'imported', id });
    }
    audit.each = audited;
    return { imported: audited.length, data };
  });
}

/** An import gives permissions to the unknown holders of the keys. @throws Refusal `insufficient_permission` */
function requirePlatformAdmin(caller: Caller): void {
  if (isPlatformAdmin(caller.principal)) return;
  throw new Refusal('insufficient_permission', 'Only platform administrators may import keys.', {
    scope: 'admin:keys',
  });
}

/** A row that is valid by itself. */
type ReadRow = Omit<NewKeyRow, 'id' | 'at'>;

/** @throws Refusal `invalid_field`, `escalation` */
function readRow(caller: HeldCaller, tenant: StoredTenant, request: ImportedKey): ReadRow {
  const digest = digestOf(request);
  const columns = requestedColumns(request);
  mayGive(caller, { permissions: columns.scopes, constraints: columns.resource_constraints });
  const { user_id: owner = null, prefix, last_four } = request;
  return {
    ...columns,
    tenant_id: caller.tenant,
    user_id: owner === null ? null : parseOwner(owner),
    expires_at: permittedExpiry(tenant, requestedExpiry(request, caller.nowMs)),
    digest,
    prefix,
    last_four,
    imported: true,
    created_by: caller.principal.id,
  };
}

function digestOf({ digest: text }: ImportedKey): KeyDigest {
  const digest = parseKeyDigest(text.toLowerCase());
  if (digest === undefined) throw invalidField('/digest', 'Must be a SHA-256 digest: 64 hexadecimal digits.');
  return digest;
}

/**
 * Locks the owners, so that a concurrent deletion of an owner does not leave keys behind.
 * @returns the owners that must not get a key, with the reasons
 */
async function lockOwners(
  trx: Transaction,
  caller: HeldCaller,
  rows: readonly (ReadRow | Refusal)[],
): Promise<ReadonlyMap<UserId, Refusal>> {
  const ids = rows.flatMap((row) => (row instanceof Refusal || row.user_id === null ? [] : [row.user_id]));
  const allowPolicies = await enabledAllowPolicies(trx, caller.tenant);
  const refusals = new Map<UserId, Refusal>();
  // In one order, whatever the order of the rows is: each key is reserved under its owner's lock.
  await lockActiveKeys(trx, caller.tenant, null);
  for (const id of [...new Set(ids)].sort((left, right) => (left < right ? -1 : 1))) {
    const user = (await lockUser(trx, caller.tenant, id, 'share')) ? await findUser(trx, caller.tenant, id) : undefined;
    if (user === undefined) {
      refusals.set(id, unknownOwner());
      continue;
    }
    await lockActiveKeys(trx, caller.tenant, id);
    const refusal = await orRefusal(() => mayActOnUser(trx, caller, user, allowPolicies));
    if (refusal instanceof Refusal) refusals.set(id, refusal);
  }
  return refusals;
}

function rejected(index: number, { code, message, extras }: Refusal): ImportedRow {
  const errors = extras.errors;
  return { index, outcome: 'rejected', id: null, code, detail: message, ...(errors === undefined ? {} : { errors }) };
}

function alreadyExists(): Refusal {
  return new Refusal('already_exists', 'A key with this digest already exists.');
}
