/** Creates, updates, suspends, activates and deletes tenants. The first tenant, `default`, is always active. */

import { Refusal } from '../../domain/errors.ts';
import { DEFAULT_TENANT, parseTenantId } from '../../domain/ids.ts';
import { brokenConstraint } from '../../store/faults.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { invalidField, orNotFound, throwIfInvalid } from '../caller/refusals.ts';
import { type AuditDraft, change, recorded } from '../change/change.ts';
import { noteQuotaAlerts } from '../usage/limit-queries.ts';
import { momentOf } from '../usage/period.ts';
import { localAdministrators, lockAdministrators } from '../users/administrator-queries.ts';
import { refuseWithoutAdministrator } from '../users/checks.ts';
import {
  mergeQuotas,
  mergeSettings,
  type NewTenant,
  settingsErrors,
  type TenantChanges,
  type TenantResource,
  type TenantRow,
  tenantResource,
} from './entity.ts';
import { deleteTenantRow, hasActiveKeys, hasUsers, insertTenant, lockTenant, updateTenantRow } from './queries.ts';
import { tenantIdOf } from './read.ts';

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
    settings: mergeSettings({}, request.settings),
    quotas: mergeQuotas({}, request.quotas),
    metadata: request.metadata ?? {},
  };
  return change(parts, caller, { action: 'tenant.create', target: { type: 'tenant', id } }, async ({ trx, audit }) => {
    audit.tenant = id;
    return recorded(audit, undefined, tenantResource(await insertTenant(trx, values).catch(refuseTaken)));
  });
}

function refuseTaken(error: unknown): never {
  if (brokenConstraint(error) !== 'tenants_pkey') throw error;
  throw new Refusal('already_exists', 'This id belongs to an existing or deleted tenant. Choose another id.', {
    param: 'id',
  });
}

/** @throws Refusal `not_found`, `invalid_field` */
export async function updateTenant(
  parts: AdminParts,
  caller: Caller,
  text: string,
  changes: TenantChanges,
): Promise<TenantResource> {
  const entry = { action: 'tenant.update', target: { type: 'tenant', id: text }, existing: true } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const tenant = await holdTenant(trx, text, audit);
    checkPreconditions(tenantResource(tenant));
    throwIfInvalid(settingsErrors(changes.settings ?? {}));
    const changed = await written(trx, audit, tenant, {
      ...tenant,
      name: changes.name ?? tenant.name,
      settings: mergeSettings(tenant.settings, changes.settings),
      quotas: mergeQuotas(tenant.quotas, changes.quotas),
      metadata: changes.metadata === undefined ? tenant.metadata : (changes.metadata ?? {}),
    });
    if (changes.quotas !== undefined) {
      await noteQuotaAlerts(trx, tenant.id, momentOf(changed.settings.timezone, caller.nowMs).period);
    }
    return changed;
  });
}

/**
 * @param force suspends the tenant even if it is the caller's own, which locks the caller out
 * @throws Refusal `not_found`, `in_use` for the first tenant, `last_admin`, `would_lock_out`
 */
export async function suspendTenant(
  parts: AdminParts,
  caller: Caller,
  text: string,
  force: boolean,
): Promise<TenantResource> {
  const entry = { action: 'tenant.suspend', target: { type: 'tenant', id: text }, existing: true } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    await lockAdministrators(trx);
    const tenant = await holdTenant(trx, text, audit);
    refuseDefault(tenant, 'suspended');
    const administrators = await localAdministrators(trx);
    refuseWithoutAdministrator(
      administrators,
      administrators.filter((administrator) => administrator.tenantId !== tenant.id),
    );
    if (tenant.id === caller.principal.tenantId && !force) {
      throw new Refusal(
        'would_lock_out',
        'Suspending your own tenant locks you out. Use force=true to suspend it anyway.',
      );
    }
    checkPreconditions(tenantResource(tenant));
    return written(trx, audit, tenant, { ...tenant, status: 'suspended' });
  });
}

/** @throws Refusal `not_found` */
export async function activateTenant(parts: AdminParts, caller: Caller, text: string): Promise<TenantResource> {
  const entry = { action: 'tenant.activate', target: { type: 'tenant', id: text }, existing: true } as const;
  return change(parts, caller, entry, async ({ trx, audit, checkPreconditions }) => {
    const tenant = await holdTenant(trx, text, audit);
    checkPreconditions(tenantResource(tenant));
    return written(trx, audit, tenant, { ...tenant, status: 'active' });
  });
}

/** @throws Refusal `not_found`; `in_use` for a tenant with users or active keys and for the first tenant */
export async function deleteTenant(parts: AdminParts, caller: Caller, text: string): Promise<void> {
  const entry = { action: 'tenant.delete', target: { type: 'tenant', id: text }, existing: true } as const;
  await change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const tenant = await holdTenant(trx, text, audit);
    refuseDefault(tenant, 'deleted');
    if ((await hasUsers(trx, tenant.id)) || (await hasActiveKeys(trx, tenant.id, new Date(caller.nowMs)))) {
      throw new Refusal(
        'in_use',
        'The tenant still has users or active keys. Delete the users and revoke the keys first.',
      );
    }
    checkPreconditions(tenantResource(tenant));
    await deleteTenantRow(trx, tenant.id);
    audit.before = tenantResource(tenant);
  });
}

/** Locks the tenant. The audit row belongs to it, and not to the caller's effective tenant. */
async function holdTenant(trx: Transaction, text: string, audit: AuditDraft): Promise<TenantRow> {
  const tenant = orNotFound(await lockTenant(trx, tenantIdOf(text), 'update'), 'tenant');
  audit.tenant = tenant.id;
  return tenant;
}

function refuseDefault(tenant: TenantRow, what: string): void {
  if (tenant.id === DEFAULT_TENANT) throw new Refusal('in_use', `The first tenant cannot be ${what}.`);
}

async function written(
  trx: Transaction,
  audit: AuditDraft,
  before: TenantRow,
  after: TenantRow,
): Promise<TenantResource> {
  return recorded(audit, tenantResource(before), tenantResource(await updateTenantRow(trx, after)));
}
