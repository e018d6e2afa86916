/** Creates a tenant. */

import { Refusal } from '../../domain/errors.ts';
import { parseTenantId } from '../../domain/ids.ts';
import { brokenConstraint } from '../../store/faults.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { invalidField, throwIfInvalid } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import {
  mergeQuotas,
  mergeSettings,
  type NewTenant,
  settingsErrors,
  type TenantResource,
  tenantResource,
} from './entity.ts';
import { insertTenant } from './queries.ts';

/** @throws Refusal `invalid_field`; `already_exists`, also for the id of a deleted tenant */
export async function createTenant(parts: AdminParts, caller: Caller, request: NewTenant): Promise<TenantResource> {
  const id = parseTenantId(request.id);
  if (id === undefined) {
    throw invalidField(
      '/id',
      'An id must be 1 to 63 lowercase letters, digits or hyphens, and must not start with a hyphen.',
    );
  }
  throwIfInvalid(settingsErrors(request.settings ?? {}));
  const values = {
    id,
    name: request.name,
    settings: mergeSettings({}, request.settings ?? {}),
    quotas: mergeQuotas({}, request.quotas ?? {}),
    metadata: request.metadata ?? {},
  };
  return change(parts, caller, { action: 'tenant.create', target: { type: 'tenant', id } }, async ({ trx, audit }) => {
    audit.tenant = id;
    const created = tenantResource(await insertTenant(trx, values).catch(refuseTaken));
    audit.after = created;
    return created;
  });
}

function refuseTaken(error: unknown): never {
  if (brokenConstraint(error) !== 'tenants_pkey') throw error;
  throw new Refusal('already_exists', 'This id belongs to an existing or deleted tenant. Choose another id.', {
    param: 'id',
  });
}
