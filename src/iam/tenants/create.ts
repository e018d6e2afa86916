/** Making a tenant. */

import { Refusal } from '../../domain/errors.ts';
import { parseTenantId, type TenantId } from '../../domain/ids.ts';
import type { Metadata } from '../../domain/records.ts';
import { brokenConstraint } from '../../store/faults.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { invalidField, notFound, throwIfInvalid } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { mergeQuotas, mergeSettings, type QuotasRequest, type SettingsRequest, settingsErrors } from './merge.ts';
import { findTenant, insertTenant, type StoredTenant } from './queries.ts';
import { type TenantResource, tenantResource } from './resource.ts';

export interface NewTenantRequest {
  readonly id: string;
  readonly name: string;
  readonly settings?: SettingsRequest;
  readonly quotas?: QuotasRequest;
  readonly metadata?: Metadata | null;
}

/** @throws Refusal `invalid_field`, `already_exists` also for the id of a tenant that was deleted */
export async function createTenant(
  parts: AdminParts,
  caller: Caller,
  request: NewTenantRequest,
): Promise<TenantResource> {
  const id = newTenantId(request.id);
  throwIfInvalid(settingsErrors(request.settings ?? {}));
  return change(parts, caller, { action: 'tenant.create', target: { type: 'tenant', id } }, async ({ trx, audit }) => {
    audit.tenant = id;
    await insertUnlessTaken(trx, {
      id,
      name: request.name,
      settings: mergeSettings({}, request.settings ?? {}),
      quotas: mergeQuotas({}, request.quotas ?? {}),
      metadata: request.metadata ?? {},
    });
    const made = await findTenant(trx, id);
    if (made === undefined) throw notFound('tenant');
    audit.after = tenantResource(made);
    return tenantResource(made);
  });
}

function newTenantId(text: string): TenantId {
  const id = parseTenantId(text);
  if (id === undefined)
    throw invalidField(
      '/id',
      'An id must be 1 to 63 lowercase letters, digits or hyphens, and must not start with a hyphen.',
    );
  return id;
}

async function insertUnlessTaken(
  trx: Transaction,
  tenant: Pick<StoredTenant, 'id' | 'name' | 'settings' | 'quotas' | 'metadata'>,
): Promise<void> {
  try {
    await insertTenant(trx, tenant);
  } catch (error) {
    if (brokenConstraint(error) !== 'tenants_pkey') throw error;
    throw new Refusal('already_exists', 'This id belongs to an existing or deleted tenant. Choose another id.', {
      param: 'id',
    });
  }
}
