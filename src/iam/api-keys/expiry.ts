/** When keys end: always, unless their tenant allows keys without expiry, and never more than ten years away. */

import type { Transaction } from '../../store/transaction.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { escalation, invalidField } from '../caller/refusals.ts';
import type { StoredTenant } from '../tenants/queries.ts';
import { findKey } from './queries.ts';

export interface ExpiryRequest {
  /** RFC 3339; null = never. */
  readonly expires_at?: string | null;
  readonly expires_in_days?: number;
}

const DAY_MS = 86_400_000;
export const MAX_DAYS = 3653;

/**
 * @returns null = never; undefined = the request says nothing about it
 * @throws Refusal `invalid_field`
 */
export function requestedExpiry(request: ExpiryRequest, nowMs: number): Date | null | undefined {
  const { expires_at: at, expires_in_days: days } = request;
  if (at !== undefined && days !== undefined)
    throw invalidField('/expires_in_days', 'Give expires_at or expires_in_days, not both.');
  if (days !== undefined) return within(new Date(nowMs + days * DAY_MS), nowMs, '/expires_in_days');
  return at === undefined || at === null ? at : within(new Date(at), nowMs, '/expires_at');
}

function within(expiry: Date, nowMs: number, path: string): Date {
  const ms = expiry.getTime();
  if (!(ms > nowMs)) throw invalidField(path, 'The expiry must be in the future.');
  if (ms > tenYearsAfter(nowMs)) throw invalidField(path, 'The expiry must be at most ten years in the future.');
  return expiry;
}

/** The same day and time ten years on, plus nothing. */
function tenYearsAfter(nowMs: number): number {
  const date = new Date(nowMs);
  date.setUTCFullYear(date.getUTCFullYear() + 10);
  return date.getTime();
}

/** @throws Refusal `invalid_field` for no expiry where the tenant demands one */
export function permittedExpiry(tenant: StoredTenant, expiry: Date | null | undefined): Date | null {
  if (expiry === undefined || expiry === null) {
    if (tenant.settings.allow_keys_without_expiry === true) return null;
    throw invalidField('/expires_at', 'The tenant requires an expiry. Give expires_at or expires_in_days.');
  }
  return expiry;
}

/** @throws Refusal `escalation` when a key would make, prolong or get hold of another that outlives it */
export async function refuseOutliving(trx: Transaction, caller: HeldCaller, expiry: Date | null): Promise<void> {
  if (caller.principal.kind !== 'api_key') return;
  const maker = await findKey(trx, caller.principal.tenantId, caller.principal.id);
  const limit = maker?.expiresAt;
  if (limit === null || (limit !== undefined && expiry !== null && expiry <= limit)) return;
  throw escalation('An API key cannot give another key a later expiry than its own.');
}
