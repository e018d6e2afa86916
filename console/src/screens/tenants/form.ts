/** What the form of a tenant holds, and what of it has to be sent. */

import type { NewTenant, Tenant, TenantChanges } from '../../../../client/index.ts';

export const SETTING_LIMITS = ['max_tokens_per_request', 'rate_limit_rpm'] as const;
export const QUOTA_LIMITS = ['monthly_tokens', 'max_users', 'max_collections'] as const;
export type LimitName = (typeof SETTING_LIMITS)[number] | (typeof QUOTA_LIMITS)[number];

/** An empty text, and a limit that is undefined, is one that the tenant does not have. */
export interface TenantForm extends Readonly<Record<LimitName, number | undefined>> {
  readonly name: string;
  readonly timezone: string;
  readonly default_model: string;
  readonly allow_keys_without_expiry: boolean;
}

export const EMPTY: TenantForm = {
  name: '',
  timezone: '',
  default_model: '',
  allow_keys_without_expiry: false,
  max_tokens_per_request: undefined,
  rate_limit_rpm: undefined,
  monthly_tokens: undefined,
  max_users: undefined,
  max_collections: undefined,
};

export function formOf({ name, settings, quotas }: Pick<Tenant, 'name' | 'settings' | 'quotas'>): TenantForm {
  return { ...EMPTY, name, ...settings, ...quotas };
}

/** The members that differ; null takes a setting or a limit away. Undefined: nothing differs. */
export function changesOf(before: TenantForm, after: TenantForm): TenantChanges | undefined {
  const name = after.name === before.name ? {} : { name: after.name };
  const settings = {
    ...changed(before, after, 'timezone', after.timezone === '' ? null : after.timezone),
    ...changed(before, after, 'default_model', after.default_model === '' ? null : after.default_model),
    ...changed(before, after, 'allow_keys_without_expiry', after.allow_keys_without_expiry),
    ...changed(before, after, 'max_tokens_per_request', after.max_tokens_per_request ?? null),
    ...changed(before, after, 'rate_limit_rpm', after.rate_limit_rpm ?? null),
  };
  const quotas = {
    ...changed(before, after, 'monthly_tokens', after.monthly_tokens ?? null),
    ...changed(before, after, 'max_users', after.max_users ?? null),
    ...changed(before, after, 'max_collections', after.max_collections ?? null),
  };
  const changes = {
    ...name,
    ...(Object.keys(settings).length === 0 ? {} : { settings }),
    ...(Object.keys(quotas).length === 0 ? {} : { quotas }),
  };
  return Object.keys(changes).length === 0 ? undefined : changes;
}

function changed<N extends keyof TenantForm, V>(
  before: TenantForm,
  after: TenantForm,
  name: N,
  value: V,
): { readonly [K in N]?: V } {
  const none: { readonly [K in N]?: V } = {};
  return before[name] === after[name] ? none : { ...none, [name]: value };
}

/** What a new tenant is made of: of the form only what is set. */
export function newTenantOf(id: string, form: TenantForm): NewTenant {
  return { id, ...changesOf(EMPTY, form), name: form.name };
}

/** The form on top of what somebody else saved meanwhile: what was typed stays, all else is as it is now. */
export function rebased(before: TenantForm, typed: TenantForm, theirs: TenantForm): TenantForm {
  const mine = Object.entries(typed).filter(([name, value]) => value !== Object.entries(before).find(([n]) => n === name)?.[1]);
  return { ...theirs, ...Object.fromEntries(mine) };
}
