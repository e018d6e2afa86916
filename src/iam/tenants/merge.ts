/** `settings` and `quotas` merge one level: members that are present replace, null removes, the others stay. */

import { validateTimezone } from '../../decision/validate.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import type { TenantQuotas, TenantSettings } from '../../domain/records.ts';

type OrNull<T> = { readonly [Name in keyof T]?: T[Name] | null };

export type SettingsRequest = OrNull<TenantSettings>;
export type QuotasRequest = OrNull<TenantQuotas>;

export function mergeSettings(settings: TenantSettings, changes: SettingsRequest): TenantSettings {
  return {
    ...member('default_model', settings.default_model, changes.default_model),
    ...member('max_tokens_per_request', settings.max_tokens_per_request, changes.max_tokens_per_request),
    ...member('rate_limit_rpm', settings.rate_limit_rpm, changes.rate_limit_rpm),
    ...member('timezone', settings.timezone, changes.timezone),
    ...member('allow_keys_without_expiry', settings.allow_keys_without_expiry, changes.allow_keys_without_expiry),
    ...member('require_stream_usage', settings.require_stream_usage, changes.require_stream_usage),
  };
}

export function mergeQuotas(quotas: TenantQuotas, changes: QuotasRequest): TenantQuotas {
  return {
    ...member('monthly_tokens', quotas.monthly_tokens, changes.monthly_tokens),
    ...member('max_users', quotas.max_users, changes.max_users),
    ...member('max_collections', quotas.max_collections, changes.max_collections),
  };
}

export function settingsErrors(settings: SettingsRequest): readonly FieldError[] {
  const { timezone } = settings;
  return timezone === undefined || timezone === null ? [] : validateTimezone(timezone, '/settings/timezone');
}

function member<N extends string, T>(
  name: N,
  old: T | undefined,
  change: T | null | undefined,
): { readonly [K in N]?: T } {
  const value = change === undefined ? old : change;
  const empty: { readonly [K in N]?: T } = {};
  return value === undefined || value === null ? empty : { ...empty, [name]: value };
}
