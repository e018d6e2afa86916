/** The definition of a tenant, with its settings and quotas. */

import { type Static, Type } from 'typebox';
import { validateTimezone } from '../../decision/validate.ts';
import type { TenantId } from '../../domain/ids.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import type { TenantQuotas, TenantSettings } from '../../domain/records.ts';
import { ordersBy } from '../list/sort.ts';
import {
  changedBy,
  changesComponent,
  column,
  type Members,
  newComponent,
  type ResourceOf,
  type RowOf,
  resourceOf,
  shownBy,
  shownComponent,
  unselected,
} from '../schema/entity.ts';
import { aTenantId } from '../schema/grammar.ts';
import { component, nullable } from '../schema/keywords.ts';
import { rateLimitErrors, rateLimits, rateLimitsOrNull } from '../schema/rate-limits.ts';
import { instant, limit, metadataPairs, text } from '../schema/resource-parts.ts';
import { closed, limitOrNull, metadata, oneOf, title } from '../schema/schemas.ts';
import { TenantActivity, TenantLimits } from '../schema/tenant-limits.ts';

const amount = column(limit, { accepts: limitOrNull, changes: true });
const toggle = column(Type.Boolean(), { accepts: nullable(Type.Boolean()), changes: true });

const settings = {
  default_model: column(text, { accepts: nullable(title(512)), changes: true }),
  max_tokens_per_request: amount,
  rate_limit_rpm: amount,
  timezone: column(text, {
    accepts: nullable(Type.String({ maxLength: 64, description: 'A name of the IANA time zone database.' })),
    changes: true,
  }),
  allow_keys_without_expiry: toggle,
  require_stream_usage: toggle,
  rate_limits: column(rateLimits, { accepts: rateLimitsOrNull, changes: true }),
};
const quotas = { monthly_tokens: amount, max_users: amount, max_collections: amount };

const LIMITS = { description: 'If a limit is absent, there is none. 0 allows nothing.' };
const Settings = component('TenantSettings', Type.Partial(Type.Object(shownBy(settings)), LIMITS));
const Quotas = component('TenantQuotas', Type.Partial(Type.Object(shownBy(quotas)), LIMITS));
export const settingsChanges = Type.Object(changedBy(settings), closed);
export const quotasChanges = Type.Object(changedBy(quotas), closed);
export type SettingsChanges = Static<typeof settingsChanges>;
export type QuotasChanges = Static<typeof quotasChanges>;

export const tenantStatus = oneOf('active', 'suspended');

export const tenant = {
  id: column(Type.Unsafe<TenantId>(Type.String()), {
    accepts: Type.String({ maxLength: 64, ...aTenantId }),
    changes: false,
  }),
  name: column(text, { accepts: title(200), changes: true }),
  status: column(tenantStatus),
  settings: column(Settings, { accepts: Type.Optional(nullable(settingsChanges)), changes: true }),
  quotas: column(Quotas, { accepts: Type.Optional(nullable(quotasChanges)), changes: true }),
  metadata: column(metadataPairs, { accepts: Type.Optional(metadata), changes: true }),
  created_at: column(instant),
  updated_at: column(instant),
  deleted_at: unselected<Date | null>(),
};

export interface TenantRow extends RowOf<typeof tenant> {}
/** The columns that a change sets. */
export type TenantValues = Omit<TenantRow, 'created_at' | 'updated_at'>;
export type TenantResource = ResourceOf<typeof tenant>;

export const Tenant = shownComponent('Tenant', tenant, {
  limits: Type.Optional(TenantLimits),
  activity: Type.Optional(TenantActivity),
});

/** Members of tenants in a list with `include=limits`. */
export interface TenantNumbers {
  readonly limits?: TenantLimits;
  readonly activity?: TenantActivity;
}

export const tenantOrders = ordersBy(['id', 'tokens', 'requests', 'denied', 'share'], 'id');
export type TenantOrder = ReturnType<typeof tenantOrders.orderOf>;

export const newTenant = newComponent('NewTenant', tenant, {
  examples: [{ id: 'acme', name: 'Acme', settings: { timezone: 'Europe/Berlin', max_tokens_per_request: 4096 } }],
});
export type NewTenant = Static<typeof newTenant>;

export const tenantChanges = changesComponent('TenantChanges', tenant, {
  examples: [{ settings: { timezone: 'Europe/Berlin', default_model: null } }],
});
export type TenantChanges = Static<typeof tenantChanges>;

export function tenantResource(row: TenantRow): TenantResource {
  return resourceOf(tenant, row, {});
}

/** Returns the settings after a change. Null removes all of them. */
export function mergeSettings(stored: TenantSettings, changes: SettingsChanges | null = {}): TenantSettings {
  return changes === null ? {} : merge(settings, stored, changes);
}

/** Returns the quotas after a change. Null removes all of them. */
export function mergeQuotas(stored: TenantQuotas, changes: QuotasChanges | null = {}): TenantQuotas {
  return changes === null ? {} : merge(quotas, stored, changes);
}

/** Merges one level of members: a present member replaces the stored one, and null or an empty list removes it. */
function merge<T extends object>(members: Members, stored: T, changes: object): T;
function merge(members: Members, stored: object, changes: object): object {
  const values = new Map(Object.entries({ ...stored, ...changes }));
  return Object.fromEntries(
    Object.keys(members)
      .map((name) => [name, values.get(name)] as const)
      .filter(([, value]) => value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0)),
  );
}

export function settingsErrors({ timezone, rate_limits: rates }: SettingsChanges): readonly FieldError[] {
  return [
    ...(timezone === undefined || timezone === null ? [] : validateTimezone(timezone, '/settings/timezone')),
    ...rateLimitErrors(rates, '/settings/rate_limits'),
  ];
}
