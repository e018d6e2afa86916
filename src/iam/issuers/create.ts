/** Creates an issuer. Its keys are fetched within about a second after the commit, unless they are pasted. */

import { Refusal } from '../../domain/errors.ts';
import { makeId, type TenantId } from '../../domain/ids.ts';
import { brokenConstraint } from '../../store/faults.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { Caller } from '../caller/caller.ts';
import { mayGiveRoles } from '../caller/escalation.ts';
import { tenantGone, throwIfInvalid } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { lockTenant } from '../tenants/queries.ts';
import { sealRequested } from './client-secret.ts';
import type { IssuerResource, NewIssuer } from './entity.ts';
import { insertKeyState } from './key-queries.ts';
import type { IssuerParts } from './parts.ts';
import { countIssuersOf, type IssuerColumns, insertIssuer, type StoredIssuer, writtenIssuer } from './queries.ts';
import { issuerResource } from './read.ts';
import { rolesOfMapping, unknownRoles } from './users.ts';
import { type IssuerValues, readNewIssuer } from './values.ts';

/** The largest number of issuers of one tenant. */
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
    const created = issuerResource(row, parts.issuers, caller.nowMs);
    audit.after = created;
    return created;
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
