/** A tenant's limits as the API shows them, and the pace at which it spends the tokens of a month. */

import { allModelRates } from '../../decision/model-rates.ts';
import type { ZonedMinute } from '../../metering/calendar.ts';
import type { TenantLimit, TenantLimits } from '../schema/tenant-limits.ts';
import type { TenantRow } from '../tenants/entity.ts';
import { type LimitsState, usedOf } from './limit-queries.ts';
import { daysIn, spanOfPeriod } from './period.ts';

const DAY_MS = 86_400_000;
/** A shorter part of a month says nothing about the rest of it. */
const LEAST_PACE_MS = 2 * DAY_MS;

export function limitsOf(
  { id, settings, quotas }: TenantRow,
  state: LimitsState,
  month: ZonedMinute,
  nowMs: number,
): TenantLimits {
  const { rate_limit_rpm: rate, max_tokens_per_request: perRequest } = settings;
  const runsOutMs = runsOutAtMs({ limit: quotas.monthly_tokens, used: state.spent }, month, nowMs);
  return {
    rate_limit_rpm:
      // Requests without a limit are not counted.
      rate === undefined ? NO_LIMIT : { ...used(rate, state.granted), resets_at: instant(state.windowEndsMs) },
    max_tokens_per_request: { ...NO_LIMIT, limit: perRequest ?? null },
    monthly_tokens: {
      ...used(quotas.monthly_tokens, state.spent),
      resets_at: instant(month.periodEndsMs),
      reserved: state.held,
      runs_out_at: runsOutMs === undefined ? null : instant(runsOutMs),
    },
    max_users: used(quotas.max_users, state.activeUsers),
    max_collections: { ...used(quotas.max_collections, state.collections), reserved: state.collectionsReserved },
    rate_limits: allModelRates({ id, settings }).map((rate) => ({
      models: rate.models,
      dimension: rate.dimension,
      ...used(rate.limit, usedOf(state, rate)),
      resets_at: rate.dimension === 'parallel' ? null : instant(state.windowEndsMs),
    })),
  };
}

/**
 * Returns when a quota is spent at the average pace of the month; undefined if that is after the reset, if it is spent
 * already, or if too little of the month has passed.
 */
export function runsOutAtMs(
  { limit, used }: { readonly limit: number | undefined; readonly used: number },
  month: Pick<ZonedMinute, 'period' | 'periodEndsMs'>,
  nowMs: number,
): number | undefined {
  const passed = passedOf(month, nowMs);
  if (limit === undefined || passed === undefined || used <= 0 || used >= limit) return undefined;
  const endsMs = nowMs + ((limit - used) / used) * passed.ms;
  return endsMs < month.periodEndsMs ? Math.floor(endsMs) : undefined;
}

/**
 * Returns the passed part of a month, in milliseconds and as a share; undefined if it is too short for a pace. Changes
 * of the clock make it wrong by an hour at most.
 */
export function passedOf(
  { period, periodEndsMs }: Pick<ZonedMinute, 'period' | 'periodEndsMs'>,
  nowMs: number,
): { readonly ms: number; readonly share: number } | undefined {
  const lengthMs = daysIn(spanOfPeriod(period)) * DAY_MS;
  const ms = nowMs - (periodEndsMs - lengthMs);
  return ms < LEAST_PACE_MS ? undefined : { ms, share: ms / lengthMs };
}

const NO_LIMIT: TenantLimit = { limit: null, used: null, reserved: null, remaining: null, resets_at: null };

function used(limit: number | undefined, count: number): TenantLimit {
  const counted = { ...NO_LIMIT, used: count, reserved: 0 };
  return limit === undefined ? counted : { ...counted, limit, remaining: Math.max(0, limit - count) };
}

function instant(ms: number): string {
  return new Date(ms).toISOString();
}
