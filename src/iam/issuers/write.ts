/**
 * Creates and updates issuers. Keys that are not pasted are fetched within about a second after the commit. A change that
 * accepts more tokens, or gives more roles, needs the permissions that it gives, and applies to tokens that are issued
 * after it.
 */

import { Refusal } from '../../domain/errors.ts';
import { makeId, type TenantId } from '../../domain/ids.ts';
import type { IssuerKey } from '../../domain/records.ts';
import { brokenConstraint } from '../../store/faults.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { Caller } from '../caller/caller.ts';
import { mayGiveByIssuer, mayGiveRoles } from '../caller/escalation.ts';
import { tenantGone, throwIfInvalid } from '../caller/refusals.ts';
import { change, recorded } from '../change/change.ts';
import { lockTenant } from '../tenants/queries.ts';
import { sealRequested } from './client-secret.ts';
import type { IssuerChanges, IssuerResource, NewIssuer } from './entity.ts';
import { insertKeyState, resetKeyState } from './key-queries.ts';
import type { IssuerParts } from './parts.ts';
import {
  countIssuersOf,
  fetchedKeys,
  type IssuerColumns,
  insertIssuer,
  type StoredIssuer,
  updateIssuerRow,
  writtenIssuer,
} from './queries.ts';
import { holdIssuer, issuerResource } from './read.ts';
import { type EndedSessions, endSessionsOfIssuer } from './reference-queries.ts';
import { rolesOfMapping, unknownRoles } from './users.ts';
import { type IssuerValues, readIssuerChanges, readNewIssuer } from './values.ts';
import { earlierAfter, loginIsWider, requiresMore, type Widening, wideningOf } from './widening.ts';

export const MAX_ISSUERS = 100;

/** @throws Refusal `invalid_field`, `escalation`, `already_exists`, `quota_exceeded` */
export async function createIssuer(parts: IssuerParts, caller: Caller, request: NewIssuer): Promise<IssuerResource> {
  const read = readNewIssuer(request, parts.issuers);
  const id = makeId('iss', caller.nowMs, parts.random(10));
  const target = { type: 'issuer', id } as const;
  return change(parts, caller, { action: 'issuer.create', target }, async ({ trx, caller, audit }) => {
    if ((await lockTenant(trx, caller.tenant, 'share')) === undefined) throw tenantGone();
    throwIfInvalid(await unknownRoles(trx, caller.tenant, read.values.users));
    await mayGiveRoles(trx, caller, rolesOfMapping(read.values.users));
    await reserveIssuer(trx, caller.tenant);
    const sealed = sealRequested(parts, id, read.clientSecret);
    const place = { id, tenant_id: caller.tenant, nowMs: caller.nowMs };
    const row = await writeNewIssuer(trx, place, { values: read.values, sealed });
    return recorded(audit, undefined, issuerResource(row, parts.issuers, caller.nowMs));
  });
}

/** Call it while no other transaction can add an issuer to the tenant. @throws Refusal `quota_exceeded` */
async function reserveIssuer(trx: Transaction, tenant: TenantId): Promise<void> {
  if ((await countIssuersOf(trx, tenant)) < MAX_ISSUERS) return;
  throw new Refusal('quota_exceeded', `The tenant already has ${MAX_ISSUERS} issuers, which is the limit.`);
}

/** The values of an issuer to write. */
export interface WrittenIssuer {
  readonly values: IssuerValues;
  /** The sealed secret of the client. Undefined: the stored one stays. Null: there is none. */
  readonly sealed: Buffer | null | undefined;
}

/** @throws Refusal `already_exists` */
export async function writeNewIssuer(
  trx: Transaction,
  { id, tenant_id, nowMs }: Pick<StoredIssuer, 'id' | 'tenant_id'> & { readonly nowMs: number },
  { values, sealed }: WrittenIssuer,
): Promise<StoredIssuer> {
  const columns: IssuerColumns = {
    ...values,
    jwks_set_at: values.jwks === null ? null : new Date(nowMs),
    revoked_before: null,
    earlier: null,
    users_since: null,
    value_since: null,
    sso_secret_sealed: sealed,
  };
  await insertIssuer(trx, { id, tenant_id, ...columns }).catch(refuseTaken);
  if (values.jwks === null) await insertKeyState(trx, id);
  return writtenIssuer(trx, tenant_id, id);
}

/** Throws the refusal for a taken name or value, or the error. */
export function refuseTaken(error: unknown): never {
  switch (brokenConstraint(error)) {
    case 'issuers_by_name':
      throw new Refusal('already_exists', 'An issuer with this name already exists. Choose another name.', {
        param: 'name',
      });
    case 'issuers_enabled_by_issuer':
      throw new Refusal(
        'already_exists',
        'This installation already has an enabled issuer with this value of iss. A token belongs to one issuer only.',
        { param: 'issuer' },
      );
    default:
      throw error;
  }
}

/** @throws Refusal `not_found`, `invalid_field`, `escalation`, `already_exists` */
export async function updateIssuer(
  parts: IssuerParts,
  caller: Caller,
  text: string,
  request: IssuerChanges,
): Promise<IssuerResource> {
  const entry = { action: 'issuer.update', target: { type: 'issuer', id: text } } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const { issuers } = parts;
    const before = await holdIssuer(trx, caller.tenant, text);
    checkPreconditions(issuerResource(before, issuers, caller.nowMs));
    const read = readIssuerChanges(before, request, issuers);
    if (request.users !== undefined) throwIfInvalid(await unknownRoles(trx, caller.tenant, read.values.users));
    const widening = wideningOf(before, read.values);
    const { users } = read.values;
    if (widening.everything) {
      const given = { mapped: rolesOfMapping(users), provesUsers: users !== null };
      await mayGiveByIssuer(trx, caller, before.id, given);
    } else {
      await mayGiveRoles(trx, caller, widening.roles);
    }
    const repasted = request.jwks !== undefined && request.jwks !== null;
    const sealed = sealRequested(parts, before.id, read.clientSecret);
    const row = await writeIssuer(trx, before, { values: read.values, sealed, repasted, nowMs: caller.nowMs });
    return recorded(audit, issuerResource(before, issuers, caller.nowMs), issuerResource(row, issuers, caller.nowMs));
  });
}

/**
 * Writes the new values of a locked issuer, with their consequences for older tokens, fetched keys and sessions.
 * @throws Refusal `already_exists`
 */
export async function writeIssuer(
  trx: Transaction,
  before: StoredIssuer,
  {
    values,
    sealed,
    repasted,
    nowMs,
  }: WrittenIssuer & {
    /** True if the key set was pasted again, so that its age begins at this change. */
    readonly repasted: boolean;
    readonly nowMs: number;
  },
): Promise<StoredIssuer> {
  const { id, tenant_id } = before;
  const widening = wideningOf(before, values);
  const columns: Partial<IssuerColumns> = {
    ...values,
    jwks_set_at: values.jwks === null ? null : repasted ? new Date(nowMs) : before.jwks_set_at,
    ...consequences(before, widening, await keysBefore(trx, before, widening), nowMs),
    ...(takesValue(before, values) ? { value_since: new Date(nowMs) } : {}),
    sso_secret_sealed: sealed,
  };
  await updateIssuerRow(trx, id, columns).catch(refuseTaken);
  if (widening.replacesKeys) await resetKeyState(trx, id);
  const ended = endedSessions(before, values, columns);
  for (const which of ended) await endSessionsOfIssuer(trx, id, which);
  return writtenIssuer(trx, tenant_id, id);
}

/** Reports whether the value of `iss` could be that of another issuer until now. */
function takesValue(before: IssuerValues, after: IssuerValues): boolean {
  return before.issuer !== after.issuer || (after.enabled && !before.enabled);
}

/** Returns the keys of an issuer before a change that replaces their source. */
async function keysBefore(
  trx: Transaction,
  { id, jwks }: StoredIssuer,
  { replacesKeys }: Widening,
): Promise<readonly IssuerKey[] | undefined> {
  if (!replacesKeys) return undefined;
  return jwks === null ? fetchedKeys(trx, id) : jwks.keys;
}

/** How a change treats tokens that were issued before it. */
function consequences(
  before: StoredIssuer,
  { acceptsMore, givesMore, refusesOlder }: Widening,
  keys: readonly IssuerKey[] | undefined,
  nowMs: number,
): Partial<Pick<IssuerColumns, 'earlier' | 'users_since' | 'revoked_before'>> {
  // Whole seconds, as `iat` has them: a token of the same second counts as issued after the change.
  const now = new Date(secondOf(nowMs));
  const { revoked_before } = before;
  const earlier = acceptsMore ? earlierAfter(before, keys, now.getTime()) : before.earlier;
  return {
    ...(givesMore ? { users_since: now } : {}),
    // `revoke-before` may have set a later time: it takes milliseconds, and a time up to a minute ahead.
    ...(refusesOlder || earlier === undefined
      ? { revoked_before: revoked_before !== null && revoked_before > now ? revoked_before : now }
      : {}),
    ...(acceptsMore ? { earlier: earlier ?? null } : {}),
  };
}

export function secondOf(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}

/** A session does not know the claims of its token, so a narrower change ends all that it may concern. */
function endedSessions(
  before: IssuerValues,
  after: IssuerValues,
  { revoked_before }: Partial<IssuerColumns>,
): readonly EndedSessions[] {
  if (!after.enabled || revoked_before !== undefined || requiresMore(before, after)) return ['all'];
  if (after.users === null && before.users !== null) return ['users'];
  return loginIsWider(after, before) ? ['logins'] : [];
}
