/**
 * Finds the tenant of a user or key, because an id does not contain it and a platform administrator may not know it.
 */

import { parseId, type TenantId } from '../../domain/ids.ts';
import { tenantOfKey } from '../api-keys/queries.ts';
import { tenantOfUser } from '../users/queries.ts';
import type { AdminParts } from './caller.ts';

/**
 * For platform administrators alone.
 * @returns the tenant of the user or key; undefined where there is none of that id
 */
export async function homeOf({ db }: Pick<AdminParts, 'db'>, text: string): Promise<TenantId | undefined> {
  const user = parseId('usr', text);
  if (user !== undefined) return tenantOfUser(db.knex, { kind: 'every' }, user);
  const key = parseId('key', text);
  return key && tenantOfKey(db.knex, key);
}
