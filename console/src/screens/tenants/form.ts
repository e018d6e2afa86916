/** The values of the form of a tenant, and the changes to send. */

import type { NewTenant, Tenant, TenantChanges } from '../../../../client/index.ts';
import { changedMembers } from '../../api/edit.ts';
import { type RateFields, rateMembers, ratesOf } from '../rates/rates.ts';

export const SETTING_LIMITS = ['max_tokens_per_request', 'rate_limit_rpm'] as const;
export const QUOTA_LIMITS = ['monthly_tokens', 'max_users', 'max_collections'] as const;
export type LimitName = (typeof SETTING_LIMITS)[number] | (typeof QUOTA_LIMITS)[number];

/** An empty text, and a limit that is undefined, is one that the tenant does not have. */
export interface TenantForm extends Readonly<Record<LimitName, number | undefined>> {
  readonly name: string;
  readonly timezone: string;
  readonly default_model: string;
  readonly allow_keys_without_expiry: boolean;
  readonly require_stream_usage: boolean;
  readonly rate_limits: readonly RateFields[];
}

export const EMPTY: TenantForm = {
  name: '',
  timezone: '',
  default_model: '',
  allow_keys_without_expiry: false,
  require_stream_usage: false,
  rate_limits: [],
  max_tokens_per_request: undefined,
  rate_limit_rpm: undefined,
  monthly_tokens: undefined,
  max_users: undefined,
  max_collections: undefined,
};

export function formOf({ name, settings, quotas }: Pick<Tenant, 'name' | 'settings' | 'quotas'>): TenantForm {
  return { ...EMPTY, name, ...settings, ...quotas, rate_limits: ratesOf(settings.rate_limits ?? []) };
}

/** The changes as the API takes them; null takes a setting or a limit away. */
export function changesOf(changes: Partial<TenantForm>): TenantChanges {
  const of = <N extends keyof TenantForm, V>(name: N, value: V): { readonly [K in N]?: V } => {
    const none: { readonly [K in N]?: V } = {};
    return name in changes ? { ...none, [name]: value } : none;
  };
  const settings = {
    ...of('timezone', orNull(changes.timezone)),
    ...of('default_model', orNull(changes.default_model)),
    ...of('allow_keys_without_expiry', changes.allow_keys_without_expiry),
    ...of('require_stream_usage', changes.require_stream_usage),
    ...of('max_tokens_per_request', changes.max_tokens_per_request ?? null),
    ...of('rate_limit_rpm', changes.rate_limit_rpm ?? null),
    ...of('rate_limits', rateMembers(changes.rate_limits ?? [])),
  };
  const quotas = {
    ...of('monthly_tokens', changes.monthly_tokens ?? null),
    ...of('max_users', changes.max_users ?? null),
    ...of('max_collections', changes.max_collections ?? null),
  };
  return {
    ...of('name', changes.name),
    ...(Object.keys(settings).length === 0 ? {} : { settings }),
    ...(Object.keys(quotas).length === 0 ? {} : { quotas }),
  };
}

function orNull(text: string | undefined): string | null {
  return text === undefined || text === '' ? null : text;
}

/** Returns the request for a new tenant: only the members that are set. */
export function newTenantOf(id: string, form: TenantForm): NewTenant {
  return { id, ...changesOf(changedMembers(EMPTY, form)), name: form.name };
}
