/**
 * Imports keys of another system by the SHA-256 digests of their texts, so that clients keep the keys that they have. The server never sees
 * such a key before a client uses it. Each row has an outcome of its own: a row that is rejected keeps no other from being imported.
 */

import { isPlatformAdmin } from '../../decision/tenant.ts';
import { parseConstraints, validateKeyConstraints, validatePatterns } from '../../decision/validate.ts';
import { type ErrorCode, Refusal } from '../../domain/errors.ts';
import { type KeyDigest, makeId, parseId, parseKeyDigest, type UserId } from '../../domain/ids.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import type { Metadata, ResourceConstraints } from '../../domain/records.ts';
import type { DatabaseTime } from '../../store/time.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayActOnUser, mayGive } from '../caller/escalation.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { invalidField, tenantGone, throwIfInvalid, valid } from '../caller/refusals.ts';
import { type AuditedTarget, change } from '../change/change.ts';
import { enabledAllowPolicies } from '../policies/queries.ts';
import { type StoredTenant, shareTenantNow } from '../tenants/queries.ts';
import { findUser, lockUser } from '../users/queries.ts';
import { type ExpiryRequest, permittedExpiry, requestedExpiry } from './expiry.ts';
import { holdKeysOf, insertNewKey, type KeySecret, type NewKey, shareKeysOfDigests } from './queries.ts';
import { takeKeyPlace } from './quota.ts';
import { keyResource } from './resource.ts';

/** Rows of one request. */
export const MAX_IMPORTED = 1000;
/** Characters of a prefix that is shown. */
export const MAX_PREFIX_LENGTH = 32;

export interface ImportedKeyRequest extends ExpiryRequest {
  /** SHA-256 of the key's text, 64 hexadecimal digits. */
  readonly digest: string;
  readonly prefix: string;
  readonly last_four: string;
  readonly name?: string | null;
  readonly description: string;
  readonly metadata?: Metadata | null;
  readonly scopes: readonly string[];
  /** Absent or null: the tenant itself. */
  readonly user_id?: string | null;
  readonly resource_constraints?: unknown;
  readonly rate_limit_rpm?: number | null;
}

export interface ImportedRow {
  /** Of the request's row, from 0. */
  readonly index: number;
  /** `exists`: the tenant has a key with this digest. It stays as it is. */
  readonly outcome: 'imported' | 'exists' | 'rejected';
  /** Of the key; null for `rejected`. */
  readonly id: string | null;
  /** Of `rejected`. */
  readonly code?: ErrorCode;
  readonly detail?: string;
  readonly errors?: readonly FieldError[];
}

export interface Import {
  readonly imported: number;
  readonly data: readonly ImportedRow[];
}

/** @throws Refusal of the decision; `insufficient_permission` for all but platform administrators */
export async function importKeys(
  parts: AdminParts,
  caller: Caller,
  requests: readonly ImportedKeyRequest[],
): Promise<Import> {
  refuseOthers(caller);
  return change(parts, caller, { action: 'api_key.import' }, async ({ trx, caller, audit }) => {
    refuseOthers(caller);
    const held = await shareTenantNow(trx, caller.tenant);
    if (held === undefined) throw tenantGone();
    const rows: (ReadRow | Refusal)[] = [];
    for (const request of requests) rows.push(await orRefusal(() => readRow(caller, held.tenant, request)));
    const owners = await refusedOwners(trx, caller, rows);
    const digests = rows.flatMap((row) => (row instanceof Refusal ? [] : [row.digest]));
    const taken = new Map(await shareKeysOfDigests(trx, digests));
    const audited: AuditedTarget[] = [];
    const data: ImportedRow[] = [];
    for (const [index, row] of rows.entries()) {
      const refusal = row instanceof Refusal ? row : row.userId && owners.get(row.userId);
      if (row instanceof Refusal || refusal !== undefined) {
        data.push(rejected(index, refusal ?? alreadyExists()));
        continue;
      }
      const present = taken.get(row.digest);
      if (present !== undefined) {
        const ours = present.tenantId === caller.tenant;
        data.push(ours ? { index, outcome: 'exists', id: present.id } : rejected(index, alreadyExists()));
        continue;
      }
      const full = await orRefusal(() => takeKeyPlace(trx, caller.tenant, row.userId));
      if (full instanceof Refusal) {
        data.push(rejected(index, full));
        continue;
      }
      const id = makeId('key', caller.nowMs, parts.random(10));
      const made = await insertRow(trx, caller, { ...row.key, id }, row, held.at);
      if (made === undefined) {
        data.push(rejected(index, alreadyExists()));
        continue;
      }
      taken.set(row.digest, { id, tenantId: caller.tenant });
      audited.push(made);
      data.push({ index, outcome: 'imported', id });
    }
    audit.each = audited;
    return { imported: audited.length, data };
  });
}

/** A digest gives rights to an unknown holder of a text, so tenants do not import by themselves. @throws Refusal `insufficient_permission` */
function refuseOthers(caller: Caller): void {
  if (isPlatformAdmin(caller.principal)) return;
  throw new Refusal('insufficient_permission', 'Only platform administrators may import keys.', {
    scope: 'admin:keys',
  });
}

/** A row that is valid by itself. */
interface ReadRow extends KeySecret {
  readonly userId: UserId | undefined;
  readonly key: Omit<NewKey, 'id'>;
}

/** @throws Refusal `invalid_field`, `escalation` */
function readRow(caller: HeldCaller, tenant: StoredTenant, request: ImportedKeyRequest): ReadRow {
  const digest = digestOfRow(request.digest);
  throwIfInvalid([
    ...validatePatterns(request.scopes, '/scopes'),
    ...validateKeyConstraints(request.resource_constraints),
  ]);
  const constraints: ResourceConstraints = valid(parseConstraints(request.resource_constraints));
  const {
    prefix,
    last_four: lastFour,
    name = null,
    description,
    scopes,
    rate_limit_rpm: rateLimitRpm = null,
  } = request;
  mayGive(caller, { permissions: scopes, constraints });
  const userId = ownerOfRow(request);
  const expiresAt = permittedExpiry(tenant, requestedExpiry(request, caller.nowMs));
  const metadata = request.metadata ?? {};
  const key = {
    ...{ tenantId: caller.tenant, userId, name, description, metadata, imported: true },
    ...{ scopes, constraints, rateLimitRpm, expiresAt },
  };
  return { digest, prefix, lastFour, userId, key };
}

function digestOfRow(text: string): KeyDigest {
  const digest = parseKeyDigest(text.toLowerCase());
  if (digest === undefined) throw invalidField('/digest', 'Must be a SHA-256 digest: 64 hexadecimal digits.');
  return digest;
}

function ownerOfRow({ user_id: text = null }: ImportedKeyRequest): UserId | undefined {
  if (text === null) return undefined;
  const id = parseId('usr', text);
  if (id === undefined) throw unknownOwner();
  return id;
}

/** Holds the owners, so that a deletion that runs beside it does not leave keys behind, and returns why some may not own a key. */
async function refusedOwners(
  trx: Transaction,
  caller: HeldCaller,
  rows: readonly (ReadRow | Refusal)[],
): Promise<ReadonlyMap<UserId, Refusal>> {
  const ids = rows.flatMap((row) => (row instanceof Refusal || row.userId === undefined ? [] : [row.userId]));
  const allowPolicies = await enabledAllowPolicies(trx, caller.tenant);
  const refusals = new Map<UserId, Refusal>();
  // In one order, whatever that of the rows: each place is taken under its owner's lock.
  await holdKeysOf(trx, caller.tenant, undefined);
  for (const id of [...new Set(ids)].sort((left, right) => (left < right ? -1 : 1))) {
    const user = (await lockUser(trx, caller.tenant, id, 'share')) ? await findUser(trx, caller.tenant, id) : undefined;
    if (user === undefined) {
      refusals.set(id, unknownOwner());
      continue;
    }
    await holdKeysOf(trx, caller.tenant, id);
    const refusal = await orRefusal(() => mayActOnUser(trx, caller, user, allowPolicies));
    if (refusal instanceof Refusal) refusals.set(id, refusal);
  }
  return refusals;
}

async function insertRow(
  trx: Transaction,
  caller: HeldCaller,
  key: NewKey,
  secret: KeySecret,
  at: DatabaseTime,
): Promise<AuditedTarget | undefined> {
  if (!(await insertNewKey(trx, key, secret, caller.principal.id, at))) return undefined;
  const { prefix, lastFour } = secret;
  const created = {
    createdBy: caller.principal.id,
    createdAt: at.date,
    updatedAt: at.date,
    revokedAt: null,
    lastUsedAt: null,
  };
  const after = keyResource({ ...key, prefix, lastFour, ...created }, caller.nowMs);
  return { target: { type: 'api_key', id: key.id }, result: 'success', after };
}

function rejected(index: number, { code, message, extras }: Refusal): ImportedRow {
  const errors = extras.errors;
  return { index, outcome: 'rejected', id: null, code, detail: message, ...(errors === undefined ? {} : { errors }) };
}

async function orRefusal<T>(read: () => T | Promise<T>): Promise<T | Refusal> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

function alreadyExists(): Refusal {
  return new Refusal('already_exists', 'A key with this digest already exists.');
}

function unknownOwner(): Refusal {
  return invalidField('/user_id', 'This user does not exist in the tenant.');
}
