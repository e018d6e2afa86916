/**
 * Imports keys of another system by the SHA-256 digests of their texts, so that clients keep the keys that they have.
 * The server never sees such a key before a client uses it. Each row has an outcome of its own: a rejected row does not
 * prevent the import of the others.
 */

import type { Static } from 'typebox';
import { isPlatformAdmin } from '../../decision/tenant.ts';
import { Refusal } from '../../domain/errors.ts';
import { type KeyDigest, makeId, parseKeyDigest, type UserId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import { type ApplyingBudgets, applyingBudgets } from '../budgets/applying.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayActOnUser, mayGive } from '../caller/escalation.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { invalidField, orRefusal, refusalIn, tenantGone } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { enabledAllowPolicies } from '../policies/queries.ts';
import type { TenantRow } from '../tenants/entity.ts';
import { shareTenantNow } from '../tenants/queries.ts';
import { findUser, lockUser } from '../users/queries.ts';
import { keyResource } from './entity.ts';
import { insertNewKeys, type KeyRef, type NewKeyRow, shareKeysOfDigests } from './queries.ts';
import { ActiveKeyReservations } from './quota.ts';
import { permittedExpiry, requestedColumns, requestedExpiry } from './request.ts';
import type { ApiKeyImport, ImportedKey } from './schemas.ts';
import { parseOwner, unknownOwner } from './write.ts';

type Import = Static<typeof ApiKeyImport>;
type ImportedRow = Import['data'][number];

/** @throws Refusal of the decision; `insufficient_permission` unless the caller is still a platform administrator */
export async function importKeys(parts: AdminParts, caller: Caller, requests: readonly ImportedKey[]): Promise<Import> {
  return change(parts, caller, { action: 'api_key.import' }, async ({ trx, caller, audit }) => {
    // An import gives permissions to the unknown holders of the keys.
    if (!isPlatformAdmin(caller.principal))
      throw new Refusal('insufficient_permission', 'Only platform administrators may import keys.');
    const held = await shareTenantNow(trx, caller.tenant);
    if (held === undefined) throw tenantGone();
    const rows: (ReadRow | Refusal)[] = [];
    for (const request of requests) rows.push(await orRefusal(() => readRow(caller, held.tenant, request)));
    const reservations = new ActiveKeyReservations(trx, rows.length);
    const refusedOwners = await lockOwners(trx, caller, rows, reservations);
    const digests = rows.flatMap((row) => (row instanceof Refusal ? [] : [row.digest]));
    const existing = await shareKeysOfDigests(trx, digests);
    const budgets = await applyingBudgets(trx, caller.tenant);
    const decisions = await decide({ reservations, budgets }, rows, refusedOwners, existing, (row) => ({
      ...row,
      id: makeId('key', caller.nowMs, parts.random(10)),
      at: held.at,
    }));
    const accepted = decisions.flatMap((decision) => (decision.kind === 'accepted' ? [decision.key] : []));
    const inserted = await insertNewKeys(trx, accepted);
    audit.each = inserted.map((key) => ({
      target: { type: 'api_key', id: key.id },
      result: 'success',
      after: keyResource(key, caller.nowMs),
    }));
    // A concurrent request may have inserted the digest of an accepted key.
    const imported = new Set(inserted.map(({ id }) => id));
    const lost = new Set(accepted.map(({ id }) => id).filter((id) => !imported.has(id)));
    const data = decisions.map((decision, index): ImportedRow => {
      if (decision.kind === 'rejected') return rejected(index, decision.refusal);
      const { id, tenant_id: tenant } = decision.key;
      if (tenant !== caller.tenant || lost.has(id)) return rejected(index, alreadyExists());
      return { index, outcome: decision.kind === 'accepted' ? 'imported' : 'exists', id };
    });
    return { imported: inserted.length, data };
  });
}

type Decision =
  | { readonly kind: 'accepted'; readonly key: NewKeyRow }
  | { readonly kind: 'exists'; readonly key: KeyRef }
  | { readonly kind: 'rejected'; readonly refusal: Refusal };

/** Decides each row in the order of the request. A digest that occurs twice is accepted once. */
async function decide(
  { reservations, budgets }: { readonly reservations: ActiveKeyReservations; readonly budgets: ApplyingBudgets },
  rows: readonly (ReadRow | Refusal)[],
  refusedOwners: ReadonlyMap<UserId, Refusal>,
  existing: ReadonlyMap<KeyDigest, KeyRef>,
  newKey: (row: ReadRow) => NewKeyRow,
): Promise<readonly Decision[]> {
  const known = new Map(existing);
  const decisions: Decision[] = [];
  for (const row of rows) {
    if (row instanceof Refusal) {
      decisions.push({ kind: 'rejected', refusal: row });
      continue;
    }
    const refusal = row.user_id === null ? undefined : refusedOwners.get(row.user_id);
    const present = known.get(row.digest);
    if (refusal !== undefined) decisions.push({ kind: 'rejected', refusal });
    else if (present !== undefined) decisions.push({ kind: 'exists', key: present });
    else {
      const key = newKey(row);
      const full = await refusalIn(async () => {
        await budgets.refuseManyOfKey(key);
        await reservations.reserve(row.tenant_id, row.user_id);
      });
      if (full !== undefined) {
        decisions.push({ kind: 'rejected', refusal: full });
        continue;
      }
      known.set(row.digest, key);
      decisions.push({ kind: 'accepted', key });
    }
  }
  return decisions;
}

/** A row that is valid by itself. */
type ReadRow = Omit<NewKeyRow, 'id' | 'at'>;

/** @throws Refusal `invalid_field`, `escalation` */
function readRow(caller: HeldCaller, tenant: TenantRow, request: ImportedKey): ReadRow {
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
  reservations: ActiveKeyReservations,
): Promise<ReadonlyMap<UserId, Refusal>> {
  const ids = rows.flatMap((row) => (row instanceof Refusal || row.user_id === null ? [] : [row.user_id]));
  const allowPolicies = await enabledAllowPolicies(trx, caller.tenant);
  const refusals = new Map<UserId, Refusal>();
  // Sorted, so that concurrent imports lock the owners in one order.
  await reservations.lock(caller.tenant, null);
  for (const id of [...new Set(ids)].sort((left, right) => (left < right ? -1 : 1))) {
    const user = (await lockUser(trx, caller.tenant, id, 'share')) ? await findUser(trx, caller.tenant, id) : undefined;
    if (user === undefined) {
      refusals.set(id, unknownOwner());
      continue;
    }
    await reservations.lock(caller.tenant, id);
    const refusal = await refusalIn(() => mayActOnUser(trx, caller, user, allowPolicies));
    if (refusal !== undefined) refusals.set(id, refusal);
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
