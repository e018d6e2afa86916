/** The tenants in a setup file. */

import type { TenantId } from '../../domain/ids.ts';
import type { Metadata, TenantQuotas } from '../../domain/records.ts';
import {
  mergeQuotas,
  mergeSettings,
  type QuotasChanges,
  type SettingsChanges,
  type TenantRow,
  type TenantValues,
  tenantResource,
} from '../tenants/entity.ts';
import { deleteTenantRow, insertTenant, updateTenantRow } from '../tenants/queries.ts';
import type { PlannedAction } from './action.ts';
import type { WantedBudget } from './budgets.ts';
import type { TenantState } from './current-state.ts';
import type { WantedIssuer } from './issuers.ts';
import type { SetupMembers, View, Wanted } from './members.ts';
import type { SetupError } from './read.ts';
import { auditedResource, planRemoval, planResource } from './resource-plan.ts';
import type { WantedPolicy, WantedRole } from './rules.ts';
import type { WantedUser } from './users.ts';
import type { WantedWebhook } from './webhooks.ts';

type Values = Omit<TenantValues, 'id'>;

export interface WantedTenant extends Omit<Wanted<Values, TenantId>, 'settings' | 'quotas'> {
  /** Null removes all settings. */
  readonly settings?: SettingsChanges | null | undefined;
  readonly quotas?: QuotasChanges | null | undefined;
  /** Undefined: the file does not state the roles. The same applies to policies, issuers, webhooks, budgets and users. */
  readonly roles: readonly WantedRole[] | undefined;
  readonly policies: readonly WantedPolicy[] | undefined;
  readonly issuers: readonly WantedIssuer[] | undefined;
  readonly webhooks: readonly WantedWebhook[] | undefined;
  readonly budgets: readonly WantedBudget[] | undefined;
  readonly users: readonly WantedUser[] | undefined;
}

export const TENANT_MEMBERS: SetupMembers<Values> = {
  name: {},
  status: { initial: 'active' },
  settings: { empty: {}, view: (settings) => mergeSettings(settings, {}) },
  quotas: { empty: {}, view: (quotas) => mergeQuotas(quotas, {}) },
  metadata: { empty: {}, view: metadataView },
};

const TENANTS = auditedResource<TenantRow, Values, TenantId>({
  type: 'tenant',
  tenant: undefined,
  members: TENANT_MEMBERS,
  keyOf: (row) => row.id,
  idOf: (row) => row.id,
  tenantOf: (row) => row.id,
  show: tenantResource,
  insert: async ({ trx }, id, { status, ...values }) => {
    const row = await insertTenant(trx, { id, ...values });
    return status === row.status ? row : updateTenantRow(trx, { ...row, status });
  },
  update: ({ trx }, before, values) => updateTenantRow(trx, { ...before, ...values }),
  remove: ({ trx }, row) => deleteTenantRow(trx, row.id),
  updateVerb: (before, after) => {
    if (before.status === after.status) return 'update';
    return after.status === 'suspended' ? 'suspend' : 'activate';
  },
});

/** Plans a tenant that the file names. */
export function planTenant(
  wanted: WantedTenant,
  { tenant, deleted }: TenantState,
  errors: SetupError[],
): readonly PlannedAction[] {
  if (deleted) {
    const message = 'This id belonged to a deleted tenant and cannot be reused. Choose another id.';
    errors.push({ path: `${wanted.at}/id`, message });
    return [];
  }
  const { settings } = wanted;
  const merged: Wanted<Values, TenantId> = {
    ...wanted,
    name: wanted.name ?? tenant?.name ?? wanted.key,
    settings: settings === null ? {} : mergeSettings(tenant?.settings ?? {}, settings ?? {}),
    quotas: quotasAfter(wanted, tenant),
  };
  return planResource(TENANTS, merged, tenant, errors);
}

export function planTenantRemoval(tenant: TenantRow): PlannedAction {
  return planRemoval(TENANTS, tenant);
}

/** Returns the quotas of the tenant after the setup. */
export function quotasAfter({ quotas }: WantedTenant, stored: TenantRow | undefined): TenantQuotas {
  return quotas === null ? {} : mergeQuotas(stored?.quotas ?? {}, quotas ?? {});
}

/** Sorts the pairs by name, in the order of bytes. PostgreSQL stores shorter names first. */
export function metadataView(metadata: Metadata): View {
  return Object.fromEntries(Object.entries(metadata).toSorted(([left], [right]) => (left < right ? -1 : 1)));
}
