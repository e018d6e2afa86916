/**
 * Statements on tenants. A deleted tenant keeps its row, so that its id is not used again. No statement but the insert
 * sees it.
 */

import type { TenantId } from '../../domain/ids.ts';
import { runPrepared } from '../../store/prepared.ts';
import { type Queryable, writtenRow } from '../../store/queryable.ts';
import type { DatabaseTime } from '../../store/time.ts';
import { deleteIssuersOfTenant } from '../issuers/reference-queries.ts';
import { columnsOf, updateOf } from '../schema/entity.ts';
import { type TenantRow, type TenantValues, tenant } from './entity.ts';

export const COLUMNS = columnsOf(tenant);

const tenants = (q: Queryable) => q<TenantRow & { readonly deleted_at: Date | null }>('tenants');

const SHARE_NOW = {
  name: 'share_tenant_now',
  text: `select ${COLUMNS.join(', ')}, now::text as now_text, now as now_date from tenants cross join clock_timestamp() now
    where id = $1 and deleted_at is null for share of tenants`,
};

export function findTenant(q: Queryable, id: TenantId): Promise<TenantRow | undefined> {
  return tenants(q).where({ id, deleted_at: null }).first(COLUMNS);
}

/**
 * Locks a tenant until the transaction ends and returns it. `share`: other transactions may add rows to it, but not
 * delete it. `update`: they may do neither.
 */
export function lockTenant(q: Queryable, id: TenantId, mode: 'update' | 'share'): Promise<TenantRow | undefined> {
  const found = tenants(q).where({ id, deleted_at: null });
  return (mode === 'update' ? found.forUpdate() : found.forShare()).first(COLUMNS);
}

/**
 * Locks a tenant like `lockTenant` with `share`, and returns the time as well, for rows that are added to the tenant.
 */
export async function shareTenantNow(
  q: Queryable,
  id: TenantId,
): Promise<{ readonly tenant: TenantRow; readonly at: DatabaseTime } | undefined> {
  const [row] = await runPrepared<TenantRow & { now_text: string; now_date: Date }>(q, SHARE_NOW, [id]);
  return row && { tenant: row, at: { text: row.now_text, date: row.now_date } };
}

/** Throws an error of the constraint `tenants_pkey` if the id belongs to an existing or deleted tenant. */
export async function insertTenant(q: Queryable, values: Omit<TenantValues, 'status'>): Promise<TenantRow> {
  return writtenRow(await tenants(q).insert(values, COLUMNS));
}

export async function updateTenantRow(q: Queryable, values: TenantValues): Promise<TenantRow> {
  const { id, status } = values;
  const changes = { ...updateOf(tenant, values), status, updated_at: q.raw('clock_timestamp()') };
  return writtenRow(await tenants(q).where({ id, deleted_at: null }).update(changes, COLUMNS));
}

/** Marks a tenant as deleted, and deletes its roles, policies, issuers, budgets and webhooks. */
export async function deleteTenantRow(q: Queryable, id: TenantId): Promise<void> {
  await q.raw(`delete from policies where coalesce(tenant_id, '') = :id`, { id });
  await q('roles').where('tenant_id', id).delete();
  await deleteIssuersOfTenant(q, id);
  for (const table of ['budgets', 'webhooks']) await q(table).where('tenant_id', id).delete();
  await q('key_counts').where({ owner: id }).delete();
  const now = q.raw('clock_timestamp()');
  await tenants(q).where('id', id).update({ deleted_at: now, updated_at: now });
}

/** Returns the existing tenants of these resources. */
export async function tenantsOf(
  q: Queryable,
  table: 'users' | 'api_keys' | 'issuers' | 'budgets' | 'webhooks',
  ids: readonly string[],
): Promise<ReadonlyMap<string, TenantId>> {
  const { rows } = await q.raw<{ rows: { id: string; tenant_id: TenantId }[] }>(
    `select o.id, o.tenant_id from ${table} o join tenants t on t.id = o.tenant_id
     where o.id = any(:ids) and t.deleted_at is null`,
    { ids },
  );
  return new Map(rows.map(({ id, tenant_id }) => [id, tenant_id]));
}

export async function hasUsers(q: Queryable, id: TenantId): Promise<boolean> {
  return (await q('users').where('tenant_id', id).first('id')) !== undefined;
}

export async function hasActiveKeys(q: Queryable, id: TenantId, now: Date): Promise<boolean> {
  const { rows } = await q.raw<{ rows: unknown[] }>(
    `select from api_keys where tenant_id = :id and revoked_at is null and (expires_at is null or expires_at > :now) limit 1`,
    { id, now },
  );
  return rows.length > 0;
}
