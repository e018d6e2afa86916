/** The columns, the expiry and the rate limit that a request may set on a key. */

import { parseConstraints, validateKeyConstraints, validatePatterns } from '../../decision/validate.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { Caller } from '../caller/caller.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { escalation, invalidField, throwIfInvalid, valid } from '../caller/refusals.ts';
import { rateLimitErrors, sameRateLimits, storedRateLimits } from '../schema/rate-limits.ts';
import type { TenantRow } from '../tenants/entity.ts';
import type { KeyChanges, KeyRow } from './entity.ts';
import { findKey } from './queries.ts';

/** The columns that a request sets as it says, except the expiry and the proof, which depend on the tenant. */
export type RequestedColumns = Omit<Pick<KeyRow, keyof KeyChanges & keyof KeyRow>, 'expires_at' | 'proof'>;

const NEW_KEY: RequestedColumns = {
  name: null,
  description: '',
  metadata: {},
  scopes: [],
  resource_constraints: {},
  rate_limit_rpm: null,
  rate_limits: null,
};

/**
 * Returns the columns after a request.
 * @param before the columns that absent members leave as they are; default: those of a new key
 * @throws Refusal `invalid_field`
 */
export function requestedColumns(request: KeyChanges, before: RequestedColumns = NEW_KEY): RequestedColumns {
  throwIfInvalid([
    ...validatePatterns(request.scopes ?? [], '/scopes'),
    ...validateKeyConstraints(request.resource_constraints),
    ...rateLimitErrors(request.rate_limits),
  ]);
  const { name = before.name, rate_limit_rpm = before.rate_limit_rpm } = request;
  return {
    name,
    description: request.description ?? before.description,
    metadata: request.metadata === undefined ? before.metadata : (request.metadata ?? {}),
    scopes: request.scopes ?? before.scopes,
    resource_constraints:
      request.resource_constraints === undefined
        ? before.resource_constraints
        : valid(parseConstraints(request.resource_constraints)),
    rate_limit_rpm,
    rate_limits: request.rate_limits === undefined ? before.rate_limits : storedRateLimits(request.rate_limits),
  };
}

type ExpiryRequest = Pick<KeyChanges, 'expires_at' | 'expires_in_days'>;

const DAY_MS = 86_400_000;

/**
 * Returns the expiry that a request names, at most ten years away; null = never, undefined = the request names none.
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

function tenYearsAfter(nowMs: number): number {
  const date = new Date(nowMs);
  return date.setUTCFullYear(date.getUTCFullYear() + 10);
}

/** @throws Refusal `invalid_field` without an expiry, unless the tenant allows keys without one */
export function permittedExpiry(tenant: TenantRow, expiry: Date | null | undefined): Date | null {
  if (expiry !== undefined && expiry !== null) return expiry;
  if (tenant.settings.allow_keys_without_expiry === true) return null;
  throw invalidField('/expires_at', 'The tenant requires an expiry. Give expires_at or expires_in_days.');
}

/** @throws Refusal `escalation` when a key would create, prolong or rotate another key that outlives it */
export async function refuseOutliving(trx: Transaction, caller: HeldCaller, expiry: Date | null): Promise<void> {
  if (caller.principal.kind !== 'api_key') return;
  const own = await findKey(trx, caller.principal.tenantId, caller.principal.id);
  if (own !== undefined && !outlives(expiry, own.expires_at)) return;
  throw escalation('An API key cannot give another key a later expiry than its own.');
}

export function outlives(after: Date | null, before: Date | null): boolean {
  return before !== null && (after === null || after > before);
}

type Rates = Pick<KeyRow, 'rate_limit_rpm' | 'rate_limits'>;

/**
 * Compares the rate limits of a key before and after a change; null = no limit of the key's own. A key with limits by
 * model may give only these: whether other rules permit more depends on the models that exist.
 * @param before undefined = the caller may receive the key: it is new, enabled again, or gets another secret or proof
 * @throws Refusal `escalation` when a key with a limit would raise its own limit, or give another key a higher one
 */
export async function refuseFaster(
  trx: Transaction,
  caller: Caller,
  before: Rates | undefined,
  after: Rates,
): Promise<void> {
  if (caller.principal.kind !== 'api_key') return;
  const isFaster = exceeds(after.rate_limit_rpm, before?.rate_limit_rpm);
  const isOther = before === undefined || !sameRateLimits(after.rate_limits, before.rate_limits);
  if (!isFaster && !isOther) return;
  const own = await findKey(trx, caller.principal.tenantId, caller.principal.id);
  if (isFaster && (own === undefined || exceeds(after.rate_limit_rpm, own.rate_limit_rpm)))
    throw escalation('An API key cannot set a rate limit higher than its own, for itself or for another key.');
  if (!isOther || own?.rate_limits === null) return;
  if (own === undefined || !sameRateLimits(after.rate_limits, own.rate_limits))
    throw escalation('An API key with rate_limits can set only the same rate_limits, for itself or for another key.');
}

function exceeds(limit: number | null, other: number | null | undefined): boolean {
  if (other === undefined) return true;
  return other !== null && (limit === null || limit > other);
}
