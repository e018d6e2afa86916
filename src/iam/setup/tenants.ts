/** The actions that make tenants be as a set-up says. */

import { Fault } from '../../domain/errors.ts';
import type { TenantQuotas } from '../../domain/records.ts';
import { mergeQuotas, mergeSettings } from '../tenants/merge.ts';
import { deleteTenant, findTenant, insertTenant, type StoredTenant, updateTenant } from '../tenants/queries.ts';
import { tenantResource } from '../tenants/resource.ts';
import type { ApplyContext, PlanAction, PlannedAction } from './action.ts';
import type { TenantState } from './current-state.ts';
import { difference } from './difference.ts';
import type { SetupError } from './read.ts';
import type { WantedTenant } from './setup.ts';
import { tenantView } from './view.ts';

type Parts = Pick<StoredTenant, 'id' | 'name' | 'status' | 'settings' | 'quotas' | 'metadata'>;

/** The action for a tenant that the set-up names; none when it is as it should be. */
export function tenantActions(
  wanted: WantedTenant,
  { tenant, deleted }: TenantState,
  errors: SetupError[],
): readonly PlannedAction[] {
  if (deleted) {
    errors.push({
      path: `${wanted.at}/id`,
      message: 'This id belonged to a deleted tenant and cannot be reused. Choose another id.',
    });
    return [];
  }
  const { id } = wanted;
  const after: Parts = {
    id,
    name: wanted.name ?? tenant?.name ?? id,
    settings: wanted.settings === null ? {} : mergeSettings(tenant?.settings ?? {}, wanted.settings ?? {}),
    quotas: quotasAfter(wanted, tenant),
    metadata: wanted.metadata ?? tenant?.metadata ?? {},
    status: wanted.status ?? tenant?.status ?? 'active',
  };
  const about = { type: 'tenant', tenant: undefined, name: id, stage: 'write tenants' } as const;
  const changes = difference(tenant === undefined ? {} : tenantView(tenant), tenantView(after));
  if (tenant === undefined) return [{ ...about, verb: 'create', changes, run: (context) => create(context, after) }];
  return changes.length === 0
    ? []
    : [{ ...about, verb: 'change', changes, run: (context) => change(context, tenant, after) }];
}

/** The quotas that the tenant will have. */
export function quotasAfter({ quotas }: WantedTenant, stored: StoredTenant | undefined): TenantQuotas {
  return quotas === null ? {} : mergeQuotas(stored?.quotas ?? {}, quotas ?? {});
}

export function tenantDeletion(tenant: StoredTenant): PlannedAction {
  const action: PlanAction = { verb: 'delete', type: 'tenant', tenant: undefined, name: tenant.id, changes: [] };
  return { ...action, stage: 'delete tenants', run: (context) => remove(context, tenant) };
}

async function create(context: ApplyContext, after: Parts): Promise<void> {
  await insertTenant(context.trx, after);
  if (after.status !== 'active') await updateTenant(context.trx, after);
  await audit(context, 'tenant.create', after, { after: tenantResource(await written(context, after)) });
}

async function change(context: ApplyContext, before: StoredTenant, after: Parts): Promise<void> {
  await updateTenant(context.trx, after);
  const action = before.status === after.status ? 'update' : after.status === 'suspended' ? 'suspend' : 'activate';
  await audit(context, `tenant.${action}`, after, {
    before: tenantResource(before),
    after: tenantResource(await written(context, after)),
  });
}

async function remove(context: ApplyContext, tenant: StoredTenant): Promise<void> {
  await deleteTenant(context.trx, tenant.id);
  await audit(context, 'tenant.delete', tenant, { before: tenantResource(tenant) });
}

async function written({ trx }: ApplyContext, { id }: Parts): Promise<StoredTenant> {
  const tenant = await findTenant(trx, id);
  if (tenant === undefined) throw new Fault('a tenant that was just written no longer exists');
  return tenant;
}

function audit(
  context: ApplyContext,
  action: string,
  { id }: Parts,
  states: { before?: unknown; after?: unknown },
): Promise<void> {
  return context.audit({ action, target: { type: 'tenant', id }, tenant: id, ...states });
}
