/** What a tenant's limits are, what is used of them, and setting what is used right. */

import { isPlatformAdmin } from '../../decision/tenant.ts';
import type { TenantId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { notFound } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import type { TenantRow } from '../tenants/entity.ts';
import { findTenant, lockTenant } from '../tenants/queries.ts';
import { tenantIdOf } from '../tenants/read.ts';
import { type LimitsState, readLimits, setCollections, setSpent } from './limit-queries.ts';
import type { MeteringParts } from './parts.ts';
import { momentOf } from './period.ts';

export interface LimitResource {
  /** null = none. */
  readonly limit: number | null;
  /** null where nobody counts. */
  readonly used: number | null;
  readonly remaining: number | null;
  /** RFC 3339; null = not by itself. */
  readonly resets_at: string | null;
  /** Of what remains: set aside for requests under way, and, of tokens, a little ahead of need. */
  readonly reserved?: number;
}

export interface LimitsResource {
  readonly rate_limit_rpm: LimitResource;
  readonly max_tokens_per_request: LimitResource;
  readonly monthly_tokens: LimitResource;
  readonly max_users: LimitResource;
  readonly max_collections: LimitResource;
}

export interface UsageCorrection {
  readonly collections?: number;
  /** Of the current period. */
  readonly monthly_tokens_used?: number;
}

/** @throws Refusal `not_found`, for others than platform administrators also of another tenant than their own */
export async function getLimits(
  parts: AdminParts & MeteringParts,
  caller: Caller,
  text: string,
): Promise<LimitsResource> {
  const id = tenantIdOf(text);
  if (!isPlatformAdmin(caller.principal) && id !== caller.principal.tenantId) throw notFound('tenant');
  const tenant = existing(await findTenant(parts.db.knex, id));
  return limitsOf(parts, caller, tenant, parts.db.knex);
}

/**
 * Sets what is used as whoever counted it found it: for collections that were made or removed past Envoy, and for tokens.
 * @throws Refusal `not_found`
 */
export async function correctUsage(
  parts: AdminParts & MeteringParts,
  caller: Caller,
  text: string,
  { collections, monthly_tokens_used: spent }: UsageCorrection,
): Promise<LimitsResource> {
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
  tenant: TenantRow & { readonly id: TenantId },
  q: Transaction | AdminParts['db']['knex'],
): Promise<LimitsResource> {
  const { period, periodEndsMs } = periodIn(tenant, caller);
  const state = await readLimits(q, tenant.id, period, metering.windowMs);
  return limitsResource(tenant, state, periodEndsMs);
}

function limitsResource({ settings, quotas }: TenantRow, state: LimitsState, periodEndsMs: number): LimitsResource {
  const { rate_limit_rpm: rate, max_tokens_per_request: perRequest } = settings;
  return {
    rate_limit_rpm:
      // Requests that nothing limits are not counted.
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

const NO_LIMIT: LimitResource = { limit: null, used: null, remaining: null, resets_at: null };

function used(limit: number | undefined, count: number): LimitResource {
  if (limit === undefined) return { ...NO_LIMIT, used: count };
  return { limit, used: count, remaining: Math.max(0, limit - count), resets_at: null };
}

function instant(ms: number): string {
  return new Date(ms).toISOString();
}

function usedIn({ monthly_tokens, max_collections }: LimitsResource) {
  return { monthly_tokens_used: monthly_tokens.used, collections: max_collections.used };
}
