/** The steps that make tenants be as a set-up says. */

import { Fault } from '../../domain/errors.ts';
import type { TenantQuotas } from '../../domain/records.ts';
import { mergeQuotas, mergeSettings } from '../tenants/merge.ts';
import { deleteTenant, findTenant, insertTenant, type StoredTenant, updateTenant } from '../tenants/queries.ts';
import { tenantResource } from '../tenants/resource.ts';
import { difference } from './difference.ts';
import type { SetupError } from './read.ts';
import type { WantedTenant } from './setup.ts';
import type { PlannedStep, Step, Writing } from './step.ts';
import { tenantView } from './view.ts';
import type { TenantWorld } from './world.ts';

type Parts = Pick<StoredTenant, 'id' | 'name' | 'status' | 'settings' | 'quotas' | 'metadata'>;

/** The step for a tenant that the set-up names; none when it is as it should be. */
export function tenantSteps(
  wanted: WantedTenant,
  { tenant, deleted }: TenantWorld,
  errors: SetupError[],
): readonly PlannedStep[] {
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
  const about = { thing: 'tenant', tenant: undefined, name: id, stage: 'write tenants' } as const;
  const changes = difference(tenant === undefined ? {} : tenantView(tenant), tenantView(after));
  if (tenant === undefined) return [{ ...about, verb: 'create', changes, run: (writing) => create(writing, after) }];
  return changes.length === 0
    ? []
    : [{ ...about, verb: 'change', changes, run: (writing) => change(writing, tenant, after) }];
}

/** The quotas that the tenant will have. */
export function quotasAfter({ quotas }: WantedTenant, stored: StoredTenant | undefined): TenantQuotas {
  return quotas === null ? {} : mergeQuotas(stored?.quotas ?? {}, quotas ?? {});
}

export function tenantDeletion(tenant: StoredTenant): PlannedStep {
  const step: Step = { verb: 'delete', thing: 'tenant', tenant: undefined, name: tenant.id, changes: [] };
  return { ...step, stage: 'delete tenants', run: (writing) => remove(writing, tenant) };
}

async function create(writing: Writing, after: Parts): Promise<void> {
  await insertTenant(writing.trx, after);
  if (after.status !== 'active') await updateTenant(writing.trx, after);
  await audit(writing, 'tenant.create', after, { after: tenantResource(await written(writing, after)) });
}

async function change(writing: Writing, before: StoredTenant, after: Parts): Promise<void> {
  await updateTenant(writing.trx, after);
  const action = before.status === after.status ? 'update' : after.status === 'suspended' ? 'suspend' : 'activate';
  await audit(writing, `tenant.${action}`, after, {
    before: tenantResource(before),
    after: tenantResource(await written(writing, after)),
  });
}

async function remove(writing: Writing, tenant: StoredTenant): Promise<void> {
  await deleteTenant(writing.trx, tenant.id);
  await audit(writing, 'tenant.delete', tenant, { before: tenantResource(tenant) });
}

async function written({ trx }: Writing, { id }: Parts): Promise<StoredTenant> {
  const tenant = await findTenant(trx, id);
  if (tenant === undefined) throw new Fault('a tenant that was just written no longer exists');
  return tenant;
}

function audit(
  writing: Writing,
  action: string,
  { id }: Parts,
  states: { before?: unknown; after?: unknown },
): Promise<void> {
  return writing.audit({ action, target: { type: 'tenant', id }, tenant: id, ...states });
}
