/** A tenant's limits and their usage, and the correction of the usage. */

import { allModelRates } from '../../decision/model-rates.ts';
import { isPlatformAdmin } from '../../decision/tenant.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { notFound, orNotFound } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import type { TenantLimits } from '../schema/tenant-limits.ts';
import type { TenantRow } from '../tenants/entity.ts';
import { findTenant, lockTenant } from '../tenants/queries.ts';
import { tenantIdOf } from '../tenants/read.ts';
import { noteQuotaAlerts, readLimits, setCollections, setSpent } from './limit-queries.ts';
import type { MeteringParts } from './parts.ts';
import { momentOf } from './period.ts';
import type { UsageCorrection } from './schemas.ts';
import { limitsOf } from './tenant-limits.ts';

/**
 * @throws Refusal `not_found`; also for another tenant than the caller's own, unless the caller is a platform
 *   administrator
 */
export async function getLimits(
  parts: AdminParts & MeteringParts,
  caller: Caller,
  text: string,
): Promise<TenantLimits> {
  const id = tenantIdOf(text);
  if (!isPlatformAdmin(caller.principal) && id !== caller.principal.tenantId) throw notFound('tenant');
  const tenant = orNotFound(await findTenant(parts.db.knex, id), 'tenant');
  return currentLimits(parts, caller, tenant, parts.db.knex);
}

/**
 * Sets the usage to counted values: of collections that were created or deleted without Envoy, and of tokens.
 * @throws Refusal `not_found`
 */
export async function correctUsage(
  parts: AdminParts & MeteringParts,
  caller: Caller,
  text: string,
  { collections, monthly_tokens_used: spent }: UsageCorrection,
): Promise<TenantLimits> {
  const entry = { action: 'tenant.correct_usage', target: { type: 'tenant', id: text } } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit }) => {
    const tenant = orNotFound(await lockTenant(trx, tenantIdOf(text), 'share'), 'tenant');
    audit.tenant = tenant.id;
    const before = await currentLimits(parts, caller, tenant, trx);
    if (spent !== undefined) {
      const { period } = momentOf(tenant.settings.timezone, caller.nowMs);
      await setSpent(trx, tenant.id, period, spent);
      await noteQuotaAlerts(trx, tenant.id, period);
    }
    if (collections !== undefined) await setCollections(trx, tenant.id, collections);
    const after = await currentLimits(parts, caller, tenant, trx);
    audit.before = usedIn(before);
    audit.after = usedIn(after);
    return after;
  });
}

async function currentLimits(
  { metering }: MeteringParts,
  { nowMs }: Caller,
  tenant: TenantRow,
  q: Queryable,
): Promise<TenantLimits> {
  const month = momentOf(tenant.settings.timezone, nowMs);
  return limitsOf(
    tenant,
    await readLimits(q, { tenant: tenant.id, period: month.period, rates: allModelRates(tenant) }, metering.windowMs),
    month,
    nowMs,
  );
}

function usedIn({ monthly_tokens, max_collections }: TenantLimits) {
  return { monthly_tokens_used: monthly_tokens.used, collections: max_collections.used };
}
