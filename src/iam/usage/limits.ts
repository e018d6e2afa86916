/** A tenant's limits and their usage, and the correction of the usage. */

import { isPlatformAdmin } from '../../decision/tenant.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { notFound } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import type { TenantRow } from '../tenants/entity.ts';
import { findTenant, lockTenant } from '../tenants/queries.ts';
import { tenantIdOf } from '../tenants/read.ts';
import { readLimits, setCollections, setSpent } from './limit-queries.ts';
import type { MeteringParts } from './parts.ts';
import { momentOf } from './period.ts';
import type { TenantLimit, TenantLimits, UsageCorrection } from './schemas.ts';

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
  const tenant = existing(await findTenant(parts.db.knex, id));
  return limitsOf(parts, caller, tenant, parts.db.knex);
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
    const tenant = existing(await lockTenant(trx, tenantIdOf(text), 'share'));
    audit.tenant = tenant.id;
    const before = await limitsOf(parts, caller, tenant, trx);
    if (spent !== undefined) await setSpent(trx, tenant.id, periodIn(tenant, caller).period, spent);
    if (collections !== undefined) await setCollections(trx, tenant.id, collections);
    const after = await limitsOf(parts, caller, tenant, trx);
    audit.before = usedIn(before);
    audit.after = usedIn(after);
    return after;
  });
}

function existing(tenant: TenantRow | undefined): TenantRow {
  if (tenant === undefined) throw notFound('tenant');
  return tenant;
}

function periodIn({ settings }: TenantRow, { nowMs }: Caller) {
  return momentOf(settings.timezone, nowMs);
}

async function limitsOf(
  { metering }: MeteringParts,
  caller: Caller,
  tenant: TenantRow,
  q: Queryable,
): Promise<TenantLimits> {
  const { settings, quotas } = tenant;
  const { rate_limit_rpm: rate, max_tokens_per_request: perRequest } = settings;
  const { period, periodEndsMs } = periodIn(tenant, caller);
  const state = await readLimits(q, tenant.id, period, metering.windowMs);
  return {
    rate_limit_rpm:
      // Requests without a limit are not counted.
      rate === undefined ? NO_LIMIT : { ...used(rate, state.granted), resets_at: instant(state.windowEndsMs) },
    max_tokens_per_request: { ...NO_LIMIT, limit: perRequest ?? null },
    monthly_tokens: {
      ...used(quotas.monthly_tokens, state.spent),
      resets_at: instant(periodEndsMs),
      reserved: state.held,
    },
    max_users: used(quotas.max_users, state.activeUsers),
    max_collections: { ...used(quotas.max_collections, state.collections), reserved: state.collectionsReserved },
  };
}

const NO_LIMIT: TenantLimit = { limit: null, used: null, remaining: null, resets_at: null };

function used(limit: number | undefined, count: number): TenantLimit {
  if (limit === undefined) return { ...NO_LIMIT, used: count };
  return { limit, used: count, remaining: Math.max(0, limit - count), resets_at: null };
}

function instant(ms: number): string {
  return new Date(ms).toISOString();
}

function usedIn({ monthly_tokens, max_collections }: TenantLimits) {
  return { monthly_tokens_used: monthly_tokens.used, collections: max_collections.used };
}
