/** Locks of a tenant that gates also take. This file does not use the definition of a tenant, which loads schemas. */

import type { TenantId } from '../../domain/ids.ts';
import { runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { TenantRow } from './entity.ts';

const LOCK_PLACES = { name: 'lock_places', text: 'select pg_advisory_xact_lock(726543485, hashtext($1))' };

/** Locks a tenant like `lockTenant` with `share`, and returns the members that a new user depends on. */
export function shareTenant(q: Queryable, id: TenantId): Promise<Pick<TenantRow, 'status' | 'quotas'> | undefined> {
  return q<TenantRow & { readonly deleted_at: Date | null }>('tenants')
    .where({ id, deleted_at: null })
    .forShare()
    .first(['status', 'quotas']);
}

/**
 * Locks the number of active users of a tenant until the transaction ends. The tenant's row cannot serve as the lock:
 * each change already holds it `for share`, so two changes would block each other.
 */
export async function lockPlaces(q: Queryable, id: TenantId): Promise<void> {
  await runPrepared(q, LOCK_PLACES, [id]);
}
