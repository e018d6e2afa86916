/** Tenants. A deleted one keeps its row, so that its id is never used again; to every query here but the maker's it is missing. */

import type { TenantId } from '../../domain/ids.ts';
import type { Metadata, TenantQuotas, TenantSettings } from '../../domain/records.ts';
import { storedTenant } from '../../store/paging.ts';
import { type Prepared, runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { DatabaseTime } from '../../store/time.ts';

export interface StoredTenant {
  readonly id: TenantId;
  readonly name: string;
  readonly status: 'active' | 'suspended';
  readonly settings: TenantSettings;
  readonly quotas: TenantQuotas;
  readonly metadata: Metadata;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** A tenant as a statement with `COLUMNS` gives it. */
export interface TenantRow {
  readonly id: string;
  readonly name: string;
  readonly status: 'active' | 'suspended';
  readonly settings: TenantSettings;
  readonly quotas: TenantQuotas;
  readonly metadata: Metadata;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export const COLUMNS = 'id, name, status, settings, quotas, metadata, created_at, updated_at';

const TENANT = `select ${COLUMNS} from tenants`;

const STATEMENTS = {
  find: { name: 'find_tenant', text: `${TENANT} where id = $1 and deleted_at is null` },
  lock: { name: 'lock_tenant', text: `${TENANT} where id = $1 and deleted_at is null for update` },
  lockPlaces: { name: 'lock_places', text: 'select pg_advisory_xact_lock(726543485, hashtext($1))' },
  share: { name: 'share_tenant', text: `${TENANT} where id = $1 and deleted_at is null for share` },
  shareNow: {
    name: 'share_tenant_now',
    text: `select ${COLUMNS}, now::text as now_text, now as now_date from tenants cross join clock_timestamp() now
      where id = $1 and deleted_at is null for share of tenants`,
  },
} as const satisfies Readonly<Record<string, Prepared>>;

export function toTenant(row: TenantRow): StoredTenant {
  return {
    id: storedTenant(row.id),
    name: row.name,
    status: row.status,
    settings: row.settings,
    quotas: row.quotas,
    metadata: row.metadata,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

export async function findTenant(q: Queryable, id: TenantId): Promise<StoredTenant | undefined> {
  const [row] = await runPrepared<TenantRow>(q, STATEMENTS.find, [id]);
  return row && toTenant(row);
}

/**
 * Holds a tenant until the transaction ends and answers it as it then is. `share`: rows may be added to it and it cannot go; `update`:
 * nobody else adds any.
 */
export async function lockTenant(
  q: Queryable,
  id: TenantId,
  mode: 'update' | 'share',
): Promise<StoredTenant | undefined> {
  const [row] = await runPrepared<TenantRow>(q, mode === 'update' ? STATEMENTS.lock : STATEMENTS.share, [id]);
  return row && toTenant(row);
}

/** Like `lockTenant` with `share`, and says what time it is: for what is added to the tenant. */
export async function shareTenantNow(
  q: Queryable,
  id: TenantId,
): Promise<{ readonly tenant: StoredTenant; readonly at: DatabaseTime } | undefined> {
  const [row] = await runPrepared<TenantRow & { now_text: string; now_date: Date }>(q, STATEMENTS.shareNow, [id]);
  return row && { tenant: toTenant(row), at: { text: row.now_text, date: row.now_date } };
}

/**
 * Serves the transactions that add an active user to a tenant one after the other, until they end. The tenant's row cannot serve them: a
 * change holds it `for share` by then, and two such changes could not go on.
 */
export async function lockPlaces(q: Queryable, id: TenantId): Promise<void> {
  await runPrepared(q, STATEMENTS.lockPlaces, [id]);
}

/** Fails with a broken `tenants_pkey` when the id is or ever was in use. @param tenant default: without metadata */
export async function insertTenant(
  q: Queryable,
  tenant: Pick<StoredTenant, 'id' | 'name' | 'settings' | 'quotas'> & Partial<Pick<StoredTenant, 'metadata'>>,
): Promise<void> {
  await q.raw(
    `insert into tenants (id, name, settings, quotas, metadata)
     values (:id, :name, cast(:settings as jsonb), cast(:quotas as jsonb), cast(:metadata as jsonb))`,
    {
      id: tenant.id,
      name: tenant.name,
      settings: JSON.stringify(tenant.settings),
      quotas: JSON.stringify(tenant.quotas),
      metadata: JSON.stringify(tenant.metadata ?? {}),
    },
  );
}

export async function updateTenant(q: Queryable, tenant: Omit<StoredTenant, 'createdAt' | 'updatedAt'>): Promise<void> {
  await q.raw(
    `update tenants set name = :name, status = :status, settings = cast(:settings as jsonb), quotas = cast(:quotas as jsonb),
       metadata = cast(:metadata as jsonb), updated_at = clock_timestamp()
     where id = :id and deleted_at is null`,
    {
      id: tenant.id,
      name: tenant.name,
      status: tenant.status,
      settings: JSON.stringify(tenant.settings),
      quotas: JSON.stringify(tenant.quotas),
      metadata: JSON.stringify(tenant.metadata),
    },
  );
}

/** Marks it deleted; what it still has of roles and policies goes. */
export async function deleteTenant(q: Queryable, id: TenantId): Promise<void> {
  await q.raw(`delete from policies where coalesce(tenant_id, '') = :id`, { id });
  await q.raw('delete from roles where tenant_id = :id', { id });
  await q.raw('update tenants set deleted_at = clock_timestamp(), updated_at = clock_timestamp() where id = :id', {
    id,
  });
}

export async function hasUsers(q: Queryable, id: TenantId): Promise<boolean> {
  const { rows } = await q.raw<{ rows: unknown[] }>('select from users where tenant_id = :id limit 1', { id });
  return rows.length > 0;
}

export async function hasActiveKeys(q: Queryable, id: TenantId, now: Date): Promise<boolean> {
  const { rows } = await q.raw<{ rows: unknown[] }>(
    `select from api_keys where tenant_id = :id and not revoked and expiry_month >= expiry_month_of(:now)
       and revoked_at is null and (expires_at is null or expires_at > :now) limit 1`,
    { id, now },
  );
  return rows.length > 0;
}
